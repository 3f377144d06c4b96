// Megatron's hybrid layer pattern (--hybrid-layer-pattern), which tells kinds of layers apart:
//
//   pattern := main ("/" mtp)*     "GEGEGE*E|GEGEGE*E/*E"
//
// M Mamba-2, G Gated DeltaNet, * attention, D sparse latent attention (DSA), + latent attention (MLA), - MLP,
// E MoE. An entry is a mixer or a feed-forward part, so a transformer layer is two entries and a stage may
// end between them. | cuts stages, in main only; every mtp part is equal and stands for one MTP layer.
// Embedding and loss are at the ends and not said. No macros: * repeats nothing here, E is no embedding.
//
// Stage k lives on rank k mod pp as virtual stage k div pp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/core/model/model_spec.h"
#include "tessera/train/schedule/partition.h"

namespace tessera::train {

/// Releases of Megatron-Core that differ in what a pattern may say.
enum class MegatronRelease : std::uint8_t {
  v0_16_1,  ///< --hybrid-override-pattern: M * - E, no cuts (stages get equal shares), no MTP
  v0_19_2,  ///< all of the above
};
[[nodiscard]] std::string_view name(MegatronRelease release) noexcept;  ///< "0.16.1"
[[nodiscard]] Result<MegatronRelease> megatron_release(std::string_view name);

[[nodiscard]] std::string_view hybrid_letters(MegatronRelease release) noexcept;  ///< "MG*D+-E"

struct HybridPattern {
  std::vector<std::string> segments;  ///< of main, one per stage; may be empty strings; at least one
  std::string mtp;                    ///< entries of one MTP layer; empty = none
  std::int64_t mtp_layers = 0;
  [[nodiscard]] std::int64_t entries() const noexcept;  ///< of main
  /// Of one symbol, MTP layers included.
  [[nodiscard]] std::int64_t count(char symbol) const noexcept;
};

/// The rules of Megatron's own parser for this release. A pipeline layout string is refused by name.
[[nodiscard]] Result<HybridPattern> read_hybrid_pattern(std::string_view pattern,
                                                        MegatronRelease release = MegatronRelease::v0_19_2);

/// What one virtual stage of a rank holds.
struct HybridSegment {
  std::string entries;
  std::int64_t first = 0;  ///< entries of main before it
};
/// Without cuts the entries are shared out equally over pp ranks, and vp must be 1; with cuts there must be
/// pp · vp segments.
[[nodiscard]] Result<HybridSegment> hybrid_segment(const HybridPattern& pattern, std::int64_t pp,
                                                   std::int64_t vp, std::int64_t rank, std::int64_t chunk);

/// The partition that a pattern means for this model: its entries must be those of the model's blocks, and no
/// cut may split a block, since a plan's stages hold whole blocks. MTP blocks go to the last stage.
[[nodiscard]] Result<Partition> read_hybrid_partition(const HybridPattern& pattern, const ModelSpec& model,
                                                      std::int64_t pp);
/// The pattern of a partition over pp ranks. Says by name what the release has no letter for, or no cut.
[[nodiscard]] Result<std::string> write_hybrid_pattern(const ModelSpec& model, const Partition& partition,
                                                       std::int64_t pp,
                                                       MegatronRelease release = MegatronRelease::v0_19_2);

/// The same cuts as a pipeline layout string, where a t is a mixer with its feed-forward part:
/// "*E*E|*E*E" → "Ett|ttL". Refused when an entry stands alone or a cut splits a block.
[[nodiscard]] Result<std::string> layout_of_hybrid_pattern(const HybridPattern& pattern);

}  // namespace tessera::train
