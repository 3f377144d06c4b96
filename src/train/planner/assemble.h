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
///
/// With dualpipe a stage lives on two ranks: its gradients are reduced, and its optimizer state is sharded,
/// over twice as many ranks as with one pipeline.
struct PricedJob {
  ModelCost cost;
  Interference interference;
  TransferCost transfer;
  CostInput input;                             ///< points into the job, which must outlive it
  std::shared_ptr<const Layout> layout;        ///< the job's, with the copies of two pipelines counted as DP
  std::shared_ptr<const PairProfile> profile;  ///< null when the job names none
};
[[nodiscard]] Result<PricedJob> price_job(const Job& job);

/// Serial time of every block, forward and backward with W, at nominal speed.
[[nodiscard]] std::vector<Seconds> serial_times(const ModelSpec& model, const ModelCost& cost);

/// The sizes that this template, the job's or a rival's, runs with. N is what was decided (Job::filling),
/// else the job's, else PP where that is legal, else the smallest legal one (it holds the fewest
/// activations); PP when none is, for the template to refuse.
[[nodiscard]] TemplateSizes template_sizes(const Job& job, Template schedule);

/// A partition of every pipeline: the one given, once for each.
[[nodiscard]] Partition for_pipelines(const Partition& one, std::int32_t pipelines);

/// All of a plan that does not depend on the partition, and the pairs scheduled so far. Where the template
/// orders by durations, the actions are those of equal stages until fill_frame knows better.
struct PlanFrame {
  Template schedule;
  ExecutionPlan plan;
  PairTable pairs;  ///< over plan.costs: a frame may be moved, not copied
  PlanFrame(Template s, ExecutionPlan p, PairTable t)
      : schedule(s), plan(std::move(p)), pairs(std::move(t)) {}
  PlanFrame(PlanFrame&&) = default;
  PlanFrame& operator=(PlanFrame&&) = default;
};
[[nodiscard]] Result<PlanFrame> make_frame(const Job& job, const PricedJob& priced, Template schedule);
/// The same for this partition, whose stages take the durations given by hand where there are any.
[[nodiscard]] Result<PlanFrame> make_frame(const Job& job, const PricedJob& priced, Template schedule,
                                           const Partition& partition);

/// Schedules the pairs of these partitions, in parallel, so that fill_frame may be called from many threads.
/// Here and below a partition is of one pipeline.
void schedule_pairs(PlanFrame& frame, std::span<const Partition> partitions);

/// Everything but the predictions; the pairs must have been scheduled. Not held to check_plan. `effort`: see
/// TemplateSizes.
[[nodiscard]] Result<ExecutionPlan> fill_frame(const PlanFrame& frame, const Job& job,
                                               const PricedJob& priced, const Partition& partition,
                                               std::int32_t effort = TemplateSizes{}.effort);

/// Frame, pairs and plan in one, held to check_plan.
[[nodiscard]] Result<ExecutionPlan> assemble_plan(const Job& job, const PricedJob& priced,
                                                  const Partition& partition, Template schedule);

/// Speed of the rank that each stage lies on, of the slower one where it lies on two; empty when all are
/// nominal.
[[nodiscard]] std::vector<double> stage_speeds(const Job& job);

[[nodiscard]] CostSources count_sources(const ExecutionPlan& plan);

}  // namespace tessera::train
