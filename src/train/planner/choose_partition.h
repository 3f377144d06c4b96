// Closing the loop: the partition decides the pairs, the pairs decide the partition, and what counts is the
// iteration time.
//
// Of the partitions with the fastest slowest pair those with the least Σ multiplicity · T and those with the
// least loaded worst rank are simulated, together with the rivals; the winner then descends on the simulator,
// by moving boundaries and blocks.
#pragma once

#include <vector>

#include "assemble.h"
#include "tessera/core/base/result.h"
#include "tessera/train/partition/model_costs.h"
#include "tessera/train/planner/plan.h"

namespace tessera::train {

/// What a job's partition has to satisfy, and where a search for it starts. Of one pipeline: with dualpipe
/// the other one has the same partition, so that the stages of a mirrored pair of ranks share one choice.
struct PartitionTask {
  PartitionProblem problem;                      ///< without places: see solve_in_window
  std::vector<std::vector<std::int32_t>> legal;  ///< as legal_places gives
  Partition serial;  ///< balanced by serial time; knows no placement and no memory
};
[[nodiscard]] Result<PartitionTask> partition_task(const Job& job, const PricedJob& priced,
                                                   const PlanFrame& frame, const ModelStageCosts& costs);
/// Of the frame's job; `frame` and `priced` must outlive it.
[[nodiscard]] ModelStageCosts stage_costs(const Job& job, const PricedJob& priced, PlanFrame& frame);

/// Errors: as the job's rules. When no partition fits the memory the serial-balanced one is chosen, unusable,
/// and `solved.obstacle` says what it lacks.
[[nodiscard]] Result<PartitionSearch> search_partition(const Job& job, const PricedJob& priced,
                                                       PlanFrame& frame, const PlanOptions& options = {});

}  // namespace tessera::train
