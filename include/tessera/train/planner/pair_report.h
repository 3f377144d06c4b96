// One pair of stages, interleaved by every scheduler: how long each makes it, how much communication each
// leaves exposed, and why the shortest cannot be shorter.
//
//   auto report = report_pair(plan, StageId(3), StageId(12));
//   report->optimum, report->proved          // shortest nominal makespan, and whether it is proved
//   report->binding                          // what makes it as long as it is
//   report->slowed.start[task.index()]       // the order shown, as it runs under the plan's interference
//
// Pure and thread-safe; only the solvers' wall clocks differ from run to run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/train/execution_plan/execution_plan.h"
#include "tessera/train/overlap/pair_bounds.h"
#include "tessera/train/overlap/pair_schedule.h"

namespace tessera::train {

struct PairReportOptions {
  bool ilp = false;            ///< run the MILP too
  Seconds ilp_time_limit{60};  ///< wall clock of the MILP; the exact search has none
  Seconds pool_credit;         ///< weight gradients of at most this much time may be left to the pool
  std::int64_t labels = PairOptions{}.work_limit;  ///< of the exact search, before it gives up
};

/// One scheduler's order of the pair.
struct PairRow {
  std::string name;  ///< "fifo", "exact", "plan" …: stable
  Seconds makespan;  ///< nominal
  double above = 0;  ///< makespan / PairReport::optimum − 1, or / bound where nothing is proved
  Seconds exposed;   ///< communication beside idle compute, nominal
  Seconds slowed;    ///< makespan under the plan's interference
  PairReason reason = PairReason::feasible;
  Seconds bound;             ///< proved by this scheduler, on the nominal makespan
  std::int64_t work = 0;     ///< labels or MILP nodes
  Seconds solve_time;        ///< wall clock
  std::vector<TaskId> left;  ///< to the pool
};

/// Compute idle before a task, or before the end of the pair.
struct ComputeGap {
  Seconds begin, end;
  std::optional<TaskId> next;     ///< compute task after it; none = nothing is left to compute
  std::optional<TaskId> awaited;  ///< what that task, or the end of the pair, waits for
  /// What stood before `awaited` on its stream until it could start; none when it needed something else.
  std::optional<TaskId> queued_behind;
};

struct PairStage {
  StageId stage;
  std::int32_t rank = 0;
  std::vector<std::int32_t> layers;
  std::string holds;  ///< "GE×3 AE", "(empty)"
};

struct PairReport {
  std::string model, device, schedule;
  PairStage forward, backward;
  bool overlapped = false;  ///< the plan's schedule runs this pair
  double rank_speed = 1;    ///< of the backward's rank: the times here are those of a rank of speed 1
  TaskGraph graph;
  Seconds pool_credit;
  Interference interference;
  std::vector<PairRow> rows;  ///< serial, fifo, align, defer-literal, defer, exact, exact-slowed, ilp, plan

  Seconds optimum;  ///< shortest nominal makespan any scheduler found
  Seconds bound;    ///< no order is shorter
  bool proved = false;
  PairBounds bounds;
  Binding binding = Binding::order;  ///< of the optimum

  PairSchedule slowed;             ///< the order shown, best under interference, as it runs under it
  PairSchedule nominal;            ///< the same order without interference
  PairSchedule explained;          ///< an order as short as the optimum: `nominal` where that is
  std::vector<CriticalTask> path;  ///< of `explained`
  std::vector<ComputeGap> gaps;    ///< of `explained`, longest first

  [[nodiscard]] const PairRow* row(std::string_view name) const noexcept;  ///< null when not run
  [[nodiscard]] bool slows() const noexcept { return interference != Interference{}; }
};

/// Any two stages, also a stage with itself and ones that the schedule never overlaps. Errors: a stage the
/// plan does not have, a credit that is no time, a limit below 1.
[[nodiscard]] Result<PairReport> report_pair(const ExecutionPlan& plan, StageId forward, StageId backward,
                                             const PairReportOptions& options = {});

}  // namespace tessera::train
