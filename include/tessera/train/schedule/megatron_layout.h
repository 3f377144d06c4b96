// Megatron's pipeline layout string (--pipeline-model-parallel-layout), read and written by the released
// rules.
//
//   layout := stage ("|" stage)*     stage := [E t m L]*, may be empty     commas are dropped, blanks refused
//   macros := "(" group ")" "*" INT, then CHAR "*" INT, textual, in this order
//
// E embedding, t decoder layer, m MTP layer, L loss. Stage k lives on rank k mod pp as virtual stage k div
// pp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/core/model/model_spec.h"
#include "tessera/train/schedule/partition.h"

namespace tessera::train {

struct MegatronTarget {
  bool split_mtp = false;       ///< MTP blocks over several stages (development branches)
  bool several_losses = false;  ///< more than one L (development branches)
};

/// The expanded stages, "Ettt", "tt", …; refuses a bad grammar and a hybrid layer pattern, each by name.
[[nodiscard]] Result<std::vector<std::string>> expand_megatron_layout(std::string_view layout);

struct MegatronSizes {
  std::int64_t pp = 1;
  std::optional<std::int64_t> declared_vp;  ///< refused when it differs from stages / pp
  std::int64_t layers = 0;
  std::int64_t mtp = 0;
};
/// Holds the stages to the target's rules: one E first, one L last, Σt = layers, MTP after every decoder
/// layer, all in one stage, the last of its rank, not rank 0.
[[nodiscard]] Status check_megatron_layout(const std::vector<std::string>& stages, const MegatronSizes& sizes,
                                           const MegatronTarget& target = {});

/// Reads a layout string for this model.
[[nodiscard]] Result<Partition> read_megatron_layout(std::string_view layout, const ModelSpec& model,
                                                     const MegatronSizes& sizes,
                                                     const MegatronTarget& target = {});
/// Writes one, without macros: "Etttt|tttt|tttL".
[[nodiscard]] Result<std::string> write_megatron_layout(const ModelSpec& model, const Partition& partition,
                                                        std::int64_t pp, const MegatronTarget& target = {});

/// Megatron's counting options instead of a string. Unset = absent.
struct MegatronSplit {
  std::int64_t pp = 1;
  std::int64_t vp = 1;
  std::optional<std::int64_t> first_stage_layers;  ///< --decoder-first-pipeline-num-layers, of the first rank
  std::optional<std::int64_t> last_stage_layers;   ///< --decoder-last-pipeline-num-layers, of the last rank
  std::optional<std::int64_t>
      layers_per_virtual_stage;  ///< --num-layers-per-virtual-pipeline-stage; vp follows from it
  bool account_for_embedding = false;
  bool account_for_loss = false;
};
/// The layout they mean, or a refusal that says which layers no stage would hold.
[[nodiscard]] Result<Partition> megatron_split(const ModelSpec& model, const MegatronSplit& split);

}  // namespace tessera::train
