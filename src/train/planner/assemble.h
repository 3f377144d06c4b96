// The steps of make_plan, each from value to value.
#pragma once

#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/core/cost/block_cost.h"
#include "tessera/train/execution_plan/execution_plan.h"
#include "tessera/train/planner/job.h"
#include "tessera/train/planner/plan.h"

namespace tessera::train {

/// Prices of the job's model, hand-given durations applied.
struct PricedJob {
  ModelCost cost;
  Interference interference;
  TransferCost transfer;
  CostInput input;  ///< points into the job, which must outlive it
};
[[nodiscard]] Result<PricedJob> price_job(const Job& job);

/// Serial time of every block, forward and backward with W, at nominal speed.
[[nodiscard]] std::vector<Seconds> serial_times(const ModelSpec& model, const ModelCost& cost);

/// The group size N the interleaved templates run with: the job's, else PP where that is legal, else the
/// smallest legal one (it holds the fewest activations); PP when none is, for the template to refuse.
[[nodiscard]] std::int32_t group_size(const Job& job);

/// Everything but the predictions; held to check_plan.
[[nodiscard]] Result<ExecutionPlan> assemble_plan(const Job& job, const PricedJob& priced,
                                                  const Partition& partition, Template schedule);

/// Interleaves every (forward, backward) the actions overlap: by hand where the job says so, else by the exact
/// scheduler, the best of its orders under interference.
[[nodiscard]] Status schedule_pairs(const Job& job, ExecutionPlan& plan);

/// Speed of the rank that each stage lies on; empty when all are nominal.
[[nodiscard]] std::vector<double> stage_speeds(const Job& job);

[[nodiscard]] CostSources count_sources(const ExecutionPlan& plan);

}  // namespace tessera::train
