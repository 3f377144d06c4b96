// Ring-linear and Ling-linear (lightning attention), LFM2 (short convolutions).
#include <fmt/format.h>

#include <array>

#include "family.h"

namespace tessera::importing {

// The last layer of every group is softmax attention, and so are layers past the last whole group.
Status read_bailing_linear(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  TESSERA_TRY(SoftmaxAttention softmax, read_softmax(draft));
  TESSERA_TRY(softmax.query_key_norm, draft.keys.boolean_or("use_qk_norm", false));
  TESSERA_TRY(softmax.bias, draft.keys.boolean_or("use_qkv_bias", false));
  const LightningAttention linear{.heads = softmax.query_heads, .head_dim = softmax.head_dim};
  TESSERA_TRY(const auto group, draft.keys.required_integer("layer_group_size", 1, max_layers));
  const std::int64_t grouped = draft.layer_count / group * group;
  TESSERA_TRY(const auto sparse, moe_layers_by_frequency(draft));
  MixtureOfExperts common;
  TESSERA_TRY(common.score_correction, draft.keys.boolean_or("moe_router_enable_expert_bias", false));
  std::optional<Experts> experts;
  if (any(sparse)) {
    const std::string_view key = draft.keys.present("moe_shared_expert_intermediate_size")
                                     ? "moe_shared_expert_intermediate_size"
                                     : "moe_intermediate_size";
    TESSERA_TRY(common.shared_width, shared_width(draft, "num_shared_experts", key));
    TESSERA_CHECK(read_groups(draft, "n_group", common));
    TESSERA_TRY(experts, read_experts(draft));
  }
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    const auto index = static_cast<std::int64_t>(i);
    layer.mixer = (index + 1) % group == 0 || index >= grouped ? Mixer(softmax) : Mixer(linear);
    return feed_forward(draft, i, sparse, experts, common, "intermediate_size", layer);
  });
}

Status read_lfm2_moe(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, true));
  enum Mixing { convolution, attention };
  static constexpr std::array known{Kind{"conv", convolution}, Kind{"full_attention", attention}};
  TESSERA_TRY(const Cursor list, draft.keys.required_list("layer_types"));
  TESSERA_TRY(const auto kinds, per_layer_kinds(draft, list, known));
  TESSERA_TRY(SoftmaxAttention softmax, read_softmax(draft));
  softmax.query_key_norm = true;
  ShortConvolution convolve;
  TESSERA_TRY(convolve.kernel, draft.keys.required_integer("conv_L_cache", 1, 1024));
  TESSERA_TRY(const auto dense_first, draft.keys.required_integer("num_dense_layers", 0, max_layers));
  if (dense_first > draft.layer_count)
    return draft.keys.find("num_dense_layers")
        ->error(fmt::format("{} dense layers, but num_hidden_layers = {}", dense_first, draft.layer_count));
  std::vector<bool> sparse(static_cast<std::size_t>(draft.all()), true);
  for (std::size_t i = 0; i < static_cast<std::size_t>(dense_first); ++i) sparse[i] = false;
  MixtureOfExperts common;
  TESSERA_TRY(common.score_correction, draft.keys.boolean_or("use_expert_bias", false));
  std::optional<Experts> experts;
  if (any(sparse)) {
    TESSERA_TRY(experts, read_experts(draft));
  }
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    layer.mixer = kinds[i] == attention ? Mixer(softmax) : Mixer(convolve);
    return feed_forward(draft, i, sparse, experts, common, "intermediate_size", layer);
  });
}

}  // namespace tessera::importing
