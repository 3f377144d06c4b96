// From a job to an execution plan: price, partition, schedule, interleave, simulate.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/core/model/count.h"
#include "tessera/train/execution_plan/execution_plan.h"
#include "tessera/train/planner/job.h"
#include "tessera/train/simulate/simulate.h"

namespace tessera::train {

/// The figures of one simulated plan, as people compare them.
struct PlanFigures {
  std::string name;
  Seconds iteration;
  Seconds lower_bound;
  double tokens_per_second_per_gpu = 0;
  double mfu = 0;
  double warmup_bubble = 0;       ///< share of the iteration, mean over ranks, cool-down included
  double imbalance_bubble = 0;
  double exposed_ep = 0;          ///< share of the iteration, mean over ranks
  double exposed_ep_worst = 0;    ///< of the worst rank
  double hidden_ep = 0;
  double hidden_ep_worst = 0;     ///< of the rank that hides least
  Bytes peak_memory;
  std::int32_t peak_rank = 0;
};

struct PlanReport {
  ExecutionPlan plan;
  SimulateResult simulated;         ///< with slices
  PlanFigures figures;
  ExecutionPlan baseline;           ///< same layout, even split, same template without overlap
  PlanFigures baseline_figures;
  std::array<double, kProvenances> time_by_source{};  ///< shares of the priced time
  std::int64_t values = 0;          ///< priced task durations the plan uses
  std::array<std::int64_t, kProvenances> values_by_source{};  ///< by their main source
  std::vector<std::string> notes;   ///< in words: what was decided and why
};

[[nodiscard]] Result<PlanReport> make_plan(const Job& job);
[[nodiscard]] PlanFigures figures(std::string name, const ExecutionPlan& plan, const SimulateResult& simulated);

}  // namespace tessera::train
