// Interleaving a forward and a backward chunk on two resources, comp and comm, one task at a time each.
//
//   PairResult r = schedule_pair(graph);   // exact: the optimum, with its proof
//   r.schedule.order                       // the launch order
//   r.schedule.start                       // start of each task under nominal durations
//   r.reason, r.bound, r.gap               // how good it is, and how that is known
//
// One face for the list rules, the exact scheduler, the MILP and brute force. Every task is scheduled, W
// included, unless the caller lets the pool have some; nothing is preempted. Pure and thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/core/cost/block_cost.h"
#include "tessera/train/overlap/task_graph.h"

namespace tessera::train {

enum class PairMethod : std::uint8_t {
  serial,         ///< forward chunk, then backward chunk, nothing overlapped: the baseline
  fifo,           ///< topological order, first ready first
  align,          ///< backbone first, the ready task that fits the other resource's remaining window best
  defer_literal,  ///< Align, and movable tasks put off and filled back into gaps that hold them whole
  defer,          ///< the same, where a filled-back task may also overshoot without extending the pair; and
                  ///< nothing is put off when the pair would grow by it, so it is never longer than align
  exact,          ///< label-setting dynamic programme: optimal, or the best found and a bound at its limit
  ilp,            ///< disjunctive MILP on HiGHS: the reference, slow; exact up to about 1e-8 of the makespan
  brute_force,    ///< every order, on a graph of any shape; refuses more than 20 tasks
};
[[nodiscard]] std::string_view name(PairMethod method) noexcept;

struct PairSchedule {
  std::vector<Seconds> start;  ///< per task; of a task left to the pool, the makespan
  std::vector<Seconds> end;    ///< per task; start + duration, later where interference slowed it down
  std::vector<TaskId> order;   ///< by launch; each resource runs its own in this order
  std::vector<TaskId> left;    ///< movable tasks left to the pool, not in `order`; empty without a credit
  Seconds makespan;
};

struct PairOptions {
  PairMethod method = PairMethod::exact;
  /// Weight gradients of at most this much time in sum may be left out; whoever gives the credit charges it
  /// elsewhere on the rank.
  Seconds pool_credit;
  /// Of several good orders the best under this one is returned (exact only).
  Interference interference;
  /// Labels and blocks of leaves (exact) or partial orders (brute force) looked at before giving up; a node
  /// of the MILP counts as 1,000. The result does not depend on the machine. Exact keeps at most one label of
  /// about 100 bytes per unit; the hardest pairs solved took a tenth of the default.
  std::int64_t work_limit = 10'000'000;
  /// Wall clock, for exact and ilp; with it a result may depend on the machine.
  std::optional<Seconds> time_limit;
  /// Where ilp starts from; null, or one that check_pair refuses = the best list rule's schedule.
  const PairSchedule* warm_start = nullptr;
};

enum class PairReason : std::uint8_t {
  optimal,   ///< best_nominal = bound, up to the rounding of sums
  feasible,  ///< a rule's schedule, or one of a graph that exact can only bound; see bound and gap
  limit,     ///< stopped at a limit with the best found; see bound and gap
  too_big,   ///< not attempted: brute force on too many tasks. The schedule is that of defer
};
[[nodiscard]] std::string_view name(PairReason reason) noexcept;

struct PairResult {
  PairSchedule schedule;  ///< nominal times of the order chosen
  PairReason reason = PairReason::feasible;
  /// No schedule is shorter under nominal durations, nor under interference, which only slows tasks down.
  Seconds bound;
  Seconds best_nominal;   ///< shortest nominal makespan found; interference may have chosen another order
  Seconds slowed;         ///< makespan of `schedule.order` under options.interference; no optimum is claimed
  double gap = 0;         ///< best_nominal / bound − 1; 0 for an empty graph
  std::int64_t work = 0;  ///< labels, partial orders or MILP nodes looked at
  Seconds solve_time;     ///< wall clock
};
[[nodiscard]] PairResult schedule_pair(const TaskGraph& graph, const PairOptions& options = {});

/// Runs an order as two in-order streams (a serial order overlaps here too). With interference, compute slows
/// down while a comm task runs (and only then): task by task, SM-bound share at compute_bound_rate, the rest
/// at memory_bound_rate. The order must hold each of its tasks once, after its predecessors (see check_pair);
/// tasks it does not hold are left to the pool.
[[nodiscard]] PairSchedule run_order(const TaskGraph& graph, std::span<const TaskId> order,
                                     const Interference& interference = {});

/// A hand-written sequence of task names, as in a plan file: every task of the graph once, in a legal order.
[[nodiscard]] Result<std::vector<TaskId>> order_by_names(const TaskGraph& graph,
                                                         std::span<const std::string> names);
[[nodiscard]] std::vector<std::string> names_of(const TaskGraph& graph, std::span<const TaskId> order);

}  // namespace tessera::train
