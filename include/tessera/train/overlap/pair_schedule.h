// Interleaving a forward and a backward chunk on two resources, comp and comm, one task at a time each.
//
//   PairResult r = schedule_pair(graph, {.rule = PairRule::defer});
//   r.schedule.order   // the launch order
//   r.schedule.start   // start of each task under nominal durations
//
// Every task is scheduled, W included; nothing is preempted. Pure and thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/core/cost/block_cost.h"
#include "tessera/train/overlap/task_graph.h"

namespace tessera::train {

enum class PairRule : std::uint8_t {
  serial,         ///< forward chunk, then backward chunk, nothing overlapped: the baseline
  fifo,           ///< topological order, first ready first
  align,          ///< backbone first, the ready task that fits the other resource's remaining window best
  defer_literal,  ///< Align, and movable tasks put off and filled back into gaps that hold them whole
  defer,          ///< the same, where a filled-back task may also overshoot without extending the pair; and
                  ///< nothing is put off when the pair would grow by it, so it is never longer than align
};
[[nodiscard]] std::string_view name(PairRule rule) noexcept;

struct PairSchedule {
  std::vector<Seconds> start;  ///< per task
  std::vector<Seconds> end;    ///< per task; start + duration, later where interference slowed it down
  std::vector<TaskId> order;   ///< all tasks by launch; each resource runs its own in this order
  Seconds makespan;
};

struct PairOptions {
  PairRule rule = PairRule::defer;
};

enum class PairReason : std::uint8_t {
  feasible,  ///< a rule's schedule; see bound and gap
  optimal,   ///< makespan = bound
};

struct PairResult {
  PairSchedule schedule;
  PairReason reason = PairReason::feasible;
  Seconds bound;       ///< no schedule is shorter under nominal durations: loads and longest chain
  double gap = 0;      ///< makespan / bound − 1; 0 for an empty graph
  Seconds solve_time;  ///< wall clock
};
[[nodiscard]] PairResult schedule_pair(const TaskGraph& graph, const PairOptions& options);

/// The best of all rules' orders under interference: nominal makespan breaks ties, then the order of
/// PairRule. The schedule returned is the order's nominal one; run_order gives its times under interference.
[[nodiscard]] PairResult best_pair(const TaskGraph& graph, const Interference& interference);

/// Runs an order as two in-order streams (a serial order overlaps here too). With interference, compute slows
/// down while a comm task runs (and only then): task by task, SM-bound share at compute_bound_rate, the rest
/// at memory_bound_rate. The order must hold every task once, after its predecessors (see check_pair).
[[nodiscard]] PairSchedule run_order(const TaskGraph& graph, std::span<const TaskId> order,
                                     const Interference& interference = {});

/// max(comp load, comm load, longest chain).
[[nodiscard]] Seconds pair_bound(const TaskGraph& graph);

/// A hand-written sequence of task names, as in a plan file: every task of the graph once, in a legal order.
[[nodiscard]] Result<std::vector<TaskId>> order_by_names(const TaskGraph& graph,
                                                         std::span<const std::string> names);
[[nodiscard]] std::vector<std::string> names_of(const TaskGraph& graph, std::span<const TaskId> order);

}  // namespace tessera::train
