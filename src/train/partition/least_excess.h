// How far from fitting a problem is that nothing satisfies: the partition that exceeds its budgets least.
#pragma once

#include <optional>

#include "tessera/train/partition/partition_problem.h"

namespace tessera::train {

struct Excess {
  Partition partition;
  RankId rank;          ///< the one that exceeds most
  Bytes need;           ///< of that rank
  Bytes excess;         ///< need − budget; negative when everything fits
  bool proved = false;  ///< no partition of the places exceeds less
};
/// The rank that exceeds most in this partition.
[[nodiscard]] Excess excess_of(const PartitionProblem& problem, const StageCosts& costs,
                               const Partition& partition);
/// None when the places hold no partition at all. Without budgets nothing exceeds.
[[nodiscard]] std::optional<Excess> least_excess(const PartitionProblem& problem, const StageCosts& costs);

}  // namespace tessera::train
