// The three solvers behind solve_partition.
#pragma once

#include "tessera/train/partition/solve_partition.h"

namespace tessera::train {

// They fill everything but `obstacle`, `variables` and `solve_time`.
[[nodiscard]] PartitionResult solve_sweep(const PartitionProblem& problem, StageCosts& costs,
                                          const PartitionOptions& options);
[[nodiscard]] PartitionResult solve_milp(const PartitionProblem& problem, StageCosts& costs,
                                         const PartitionOptions& options);
[[nodiscard]] PartitionResult solve_partition_brute_force(const PartitionProblem& problem, StageCosts& costs,
                                                          const PartitionOptions& options);

/// Why nothing satisfies the problem: the constraint, and by how much. Never empty.
[[nodiscard]] std::string explain_infeasible(const PartitionProblem& problem, StageCosts& costs);

}  // namespace tessera::train
