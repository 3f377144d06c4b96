// The partition as a labelling problem: a place for each boundary between stages, costs on pairs of stages.
//
// Boundary s (1 … stages − 1) is the first block of stage s; boundary 0 is 0 and boundary `stages` is the
// number of blocks. Each has a domain of places; stages tile by construction. Solvers read costs through
// StageCosts, lazily: scheduling a pair is what costs time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/core/base/ids.h"
#include "tessera/core/base/result.h"
#include "tessera/core/base/units.h"
#include "tessera/core/model/model_spec.h"
#include "tessera/train/partition/overlap_graph.h"
#include "tessera/train/schedule/partition.h"

namespace tessera::train {

/// One entry of T: the forward of a stage holding these blocks beside the backward of another.
struct PairQuery {
  StageId forward;
  BlockRange forward_blocks;
  StageId backward;
  BlockRange backward_blocks;
};

/// What stages cost, whatever they hold. Values do not change between calls.
class StageCosts {
 public:
  virtual ~StageCosts() = default;
  /// No more than times() would say; cheap.
  [[nodiscard]] virtual Seconds bound(const PairQuery& query) const = 0;
  /// Post-overlap makespans, every W included. Called from one thread; may use several itself.
  [[nodiscard]] virtual std::vector<Seconds> times(std::span<const PairQuery> queries) = 0;
  /// Forward and backward one after the other, nothing overlapped.
  [[nodiscard]] virtual Seconds alone(StageId stage, BlockRange blocks) const = 0;
  /// Weights, gradients, optimizer state and the like: held all the time.
  [[nodiscard]] virtual Bytes held(StageId stage, BlockRange blocks) const = 0;
  /// Of one microbatch, forward to backward.
  [[nodiscard]] virtual Bytes activation(StageId stage, BlockRange blocks) const = 0;
};

struct PartitionProblem {
  std::int32_t blocks = 0;
  OverlapGraph graph;
  /// Per boundary 1 … stages − 1: the places it may take, ascending.
  std::vector<std::vector<std::int32_t>> places;
  bool empty_stages = false;  ///< a stage may hold nothing
  /// Per rank, for held() and live activations; empty = unlimited.
  std::vector<Bytes> budget;

  [[nodiscard]] std::int32_t stages() const noexcept {
    return static_cast<std::int32_t>(graph.rank_of_stage.size());
  }
};

/// What a partition comes to: computed from the definition, by no solver.
struct PartitionValue {
  Seconds slowest;     ///< T_dom: the longest pair or stage alone
  Seconds work;        ///< Σ multiplicity · T over all edges
  Seconds worst_rank;  ///< the largest such sum of one rank
};
/// Errors: a boundary outside its domain, an empty stage that may not be, a rank over its budget (which, by
/// how much).
[[nodiscard]] Result<PartitionValue> evaluate(const PartitionProblem& problem, StageCosts& costs,
                                              const Partition& partition);

/// Where boundaries may lie at all.
struct PlacementRules {
  bool empty_stages = false;
  bool split_mtp = false;           ///< MTP blocks over several stages: development branches of Megatron-Core
  std::vector<std::int32_t> uncut;  ///< no boundary before these blocks
  /// (stage, first block): boundaries that the user has set.
  std::vector<std::pair<StageId, std::int32_t>> pinned;
};
/// Every legal place of every boundary: embedding first, head last; MTP blocks behind all layers, together,
/// in the last chunk of a rank that is not rank 0 (unless the last stage is on it, as in V-shaped
/// placements). Errors: rules that leave a boundary without a place, named.
[[nodiscard]] Result<std::vector<std::vector<std::int32_t>>> legal_places(
    const ModelSpec& model, std::span<const RankId> rank_of_stage, const PlacementRules& rules);

/// Of the legal places, those within `window` blocks of the center's boundaries (the nearest one when none
/// is); of the first `widened` boundaries, those within window + 1.
[[nodiscard]] std::vector<std::vector<std::int32_t>> places_around(
    std::span<const std::vector<std::int32_t>> legal, const Partition& center, std::int32_t window,
    std::int32_t widened = 0);

}  // namespace tessera::train
