// Which stages a schedule overlaps with which: the graph whose edges the partition has to balance.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/core/base/ids.h"
#include "tessera/train/schedule/action.h"

namespace tessera::train {

/// A forward of one stage beside a backward of one (perhaps the same) stage, on the rank that holds both.
struct OverlapEdge {
  StageId forward;
  StageId backward;
  std::int64_t multiplicity = 0;  ///< times per step
  bool operator==(const OverlapEdge&) const = default;
};

/// A stage that no pair covers runs its forward and backward one after the other.
struct AloneStage {
  StageId stage;
  std::int64_t multiplicity = 0;  ///< microbatches
  bool operator==(const AloneStage&) const = default;
};

struct OverlapGraph {
  std::vector<RankId> rank_of_stage;
  std::vector<OverlapEdge> edges;  ///< direction kept; by forward, then backward stage
  std::vector<AloneStage> alone;
  /// Per rank: the Pareto-maximal vectors of chunk activations alive at once, one entry per stage of the rank
  /// in model order, without those on a line between two others. The sum of the single maxima would overstate
  /// the memory.
  std::vector<std::vector<std::vector<std::int32_t>>> live;
};

/// Of any schedule that passes check_schedule. In a pair the forward's activation is there before the
/// backward's is freed. Shadows count nowhere.
///
/// With two pipelines (dualpipe) the graph is of the stages of one: stages that hold the same blocks share
/// one choice. Ranks that hold the same stages are one rank here, with the larger of their multiplicities and
/// the live vectors of all.
[[nodiscard]] OverlapGraph overlap_graph(const ActionList& actions);

}  // namespace tessera::train
