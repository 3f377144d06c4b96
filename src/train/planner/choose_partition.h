// Closing the loop: the partition decides the pairs, the pairs decide the partition, and what counts is the
// iteration time.
//
// The partitions with the fastest slowest pair and those with the least loaded worst rank are simulated,
// together with the rivals; the winner then descends by moving single boundaries, on the simulator.
#pragma once

#include "assemble.h"
#include "tessera/core/base/result.h"
#include "tessera/train/planner/plan.h"

namespace tessera::train {

/// Errors: as the job's rules. When no partition fits the memory the serial-balanced one is chosen, unusable,
/// and `solved.obstacle` says what it lacks.
[[nodiscard]] Result<PartitionSearch> search_partition(const Job& job, const PricedJob& priced,
                                                       PlanFrame& frame);

/// The problem that the search solves, with the places of the window in which its optimum lies. Errors: as
/// the job's rules.
[[nodiscard]] Result<PartitionProblem> search_problem(const Job& job, const PricedJob& priced,
                                                      PlanFrame& frame);

}  // namespace tessera::train
