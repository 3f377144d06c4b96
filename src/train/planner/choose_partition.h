// Closing the loop: the partition decides the pairs, the pairs decide the partition, and what counts is the
// iteration time.
//
// The partitions with the fastest slowest pair and those with the least loaded worst rank are simulated,
// together with the rivals; the winner then descends by moving single boundaries, on the simulator.
#pragma once

#include "assemble.h"
#include "tessera/core/base/result.h"
#include "tessera/train/partition/model_costs.h"
#include "tessera/train/planner/plan.h"

namespace tessera::train {

/// The job's overlap graph and memory budgets; `places` stays empty.
[[nodiscard]] PartitionProblem partition_problem(const Job& job, const PricedJob& priced,
                                                 const PlanFrame& frame, const ModelStageCosts& costs);

/// Errors: as the job's rules. When no partition fits the memory the serial-balanced one is chosen, unusable,
/// and `solved.obstacle` says what it lacks.
[[nodiscard]] Result<PartitionSearch> search_partition(const Job& job, const PricedJob& priced,
                                                       PlanFrame& frame, const PlanOptions& options = {});

}  // namespace tessera::train
