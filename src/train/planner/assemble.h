// The steps of make_plan, each from value to value.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "pair_profile.h"
#include "tessera/core/base/result.h"
#include "tessera/core/cost/block_cost.h"
#include "tessera/train/execution_plan/execution_plan.h"
#include "tessera/train/overlap/pair_table.h"
#include "tessera/train/planner/job.h"
#include "tessera/train/planner/plan.h"

namespace tessera::train {

/// Prices of the job's model, hand-given durations applied.
struct PricedJob {
  ModelCost cost;
  Interference interference;
  TransferCost transfer;
  CostInput input;                             ///< points into the job, which must outlive it
  std::shared_ptr<const PairProfile> profile;  ///< null when the job names none
};
[[nodiscard]] Result<PricedJob> price_job(const Job& job);

/// Serial time of every block, forward and backward with W, at nominal speed.
[[nodiscard]] std::vector<Seconds> serial_times(const ModelSpec& model, const ModelCost& cost);

/// The group size N the interleaved templates run with: the job's, else PP where that is legal, else the
/// smallest legal one (it holds the fewest activations); PP when none is, for the template to refuse.
[[nodiscard]] std::int32_t group_size(const Job& job);

/// All of a plan that does not depend on the partition, and the pairs scheduled so far.
struct PlanFrame {
  ExecutionPlan plan;
  PairTable pairs;  ///< over plan.costs: a frame may be moved, not copied
  PlanFrame(ExecutionPlan p, PairTable t) : plan(std::move(p)), pairs(std::move(t)) {}
  PlanFrame(PlanFrame&&) = default;
  PlanFrame& operator=(PlanFrame&&) = default;
};
[[nodiscard]] Result<PlanFrame> make_frame(const Job& job, const PricedJob& priced, Template schedule);

/// Schedules the pairs of these partitions, in parallel, so that fill_frame may be called from many threads.
void schedule_pairs(PlanFrame& frame, std::span<const Partition> partitions);

/// Everything but the predictions; the pairs must have been scheduled. Not held to check_plan.
[[nodiscard]] Result<ExecutionPlan> fill_frame(const PlanFrame& frame, const Job& job,
                                               const PricedJob& priced, const Partition& partition);

/// Frame, pairs and plan in one, held to check_plan.
[[nodiscard]] Result<ExecutionPlan> assemble_plan(const Job& job, const PricedJob& priced,
                                                  const Partition& partition, Template schedule);

/// Speed of the rank that each stage lies on; empty when all are nominal.
[[nodiscard]] std::vector<double> stage_speeds(const Job& job);

[[nodiscard]] CostSources count_sources(const ExecutionPlan& plan);

}  // namespace tessera::train
