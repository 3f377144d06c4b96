// The three solvers behind solve_partition.
#pragma once

#include <optional>
#include <string>

#include "tessera/train/partition/solve_partition.h"

namespace tessera::train {

// They fill everything but `variables`, `solve_time`, and the `obstacle` unless something was too big.
[[nodiscard]] PartitionResult solve_sweep(const PartitionProblem& problem, StageCosts& costs,
                                          const PartitionOptions& options);
[[nodiscard]] PartitionResult solve_milp(const PartitionProblem& problem, StageCosts& costs,
                                         const PartitionOptions& options);
[[nodiscard]] PartitionResult solve_partition_brute_force(const PartitionProblem& problem, StageCosts& costs,
                                                          const PartitionOptions& options);

/// A boundary or a rank that makes the problem infeasible by itself: the constraint, and by how much.
[[nodiscard]] std::optional<std::string> single_obstacle(const PartitionProblem& problem,
                                                         const StageCosts& costs);
/// Of a problem that nothing satisfies: the same, else what all ranks together lack. Nothing when a partition
/// fits after all.
[[nodiscard]] std::optional<std::string> explain_infeasible(const PartitionProblem& problem,
                                                            const StageCosts& costs);

}  // namespace tessera::train
