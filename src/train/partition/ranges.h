// What the solvers read a problem through: the ranges a stage may hold, and its pairs without direction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/train/partition/partition_problem.h"

namespace tessera::train {

/// Places of boundary s for s = 0 … stages, the two fixed ends included.
[[nodiscard]] std::vector<std::vector<std::int32_t>> all_places(const PartitionProblem& problem);

/// Per stage, by (begin, end).
[[nodiscard]] std::vector<std::vector<BlockRange>> stage_ranges(const PartitionProblem& problem);

/// Both directions between two stages, or a stage's own loop: they share one choice of ranges.
struct MergedPair {
  StageId first;  ///< ≤ second
  StageId second;
  std::int64_t first_forward = 0;   ///< multiplicity of F@first beside B@second; also of a self-loop
  std::int64_t second_forward = 0;  ///< of F@second beside B@first
  [[nodiscard]] bool self() const noexcept { return first == second; }
};
/// By (first, second).
[[nodiscard]] std::vector<MergedPair> merged_pairs(const OverlapGraph& graph);

/// May the two ranges stand together? Neighbouring stages tile; anything else is left to the boundaries.
[[nodiscard]] inline bool may_stand_together(const MergedPair& pair, BlockRange first,
                                             BlockRange second) noexcept {
  return pair.second.value() != pair.first.value() + 1 || first.end == second.begin;
}

/// First block of each stage, 1 … stages − 1: what partitions are ordered by.
[[nodiscard]] std::vector<std::int32_t> boundaries(const Partition& partition);
[[nodiscard]] Partition partition_of(std::span<const std::int32_t> boundaries, std::int32_t blocks);

/// Stages of each rank, in model order.
[[nodiscard]] std::vector<std::vector<StageId>> stages_of_ranks(const OverlapGraph& graph);

}  // namespace tessera::train
