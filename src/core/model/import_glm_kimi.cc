// GLM-4.5 … 4.7 (grouped-query attention) and Kimi-Linear and K3 (Kimi Delta Attention with MLA).
#include <fmt/format.h>

#include "family.h"

namespace tessera::importing {

Status read_glm4_moe(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  TESSERA_TRY(SoftmaxAttention attention, read_softmax(draft));
  TESSERA_TRY(attention.bias, draft.keys.boolean_or("attention_bias", false));
  TESSERA_TRY(attention.query_key_norm, draft.keys.boolean_or("use_qk_norm", false));
  MixtureOfExperts common;
  common.score_correction = true;
  TESSERA_TRY(const auto sparse, moe_layers_by_frequency(draft));
  TESSERA_TRY(const auto experts, read_deepseek_experts(draft, sparse, common));
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    layer.mixer = attention;
    return feed_forward(draft, i, sparse, experts, common, "intermediate_size", layer);
  });
}

Status read_kimi_linear(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  TESSERA_TRY(const Cursor linear, draft.keys.required_map("linear_attn_config"));
  TESSERA_TRY(const Cursor full_list, linear.required_list("full_attn_layers"));
  TESSERA_TRY(const Cursor linear_list, linear.required_list("kda_layers"));
  TESSERA_TRY(const auto full, two_index_lists(draft, full_list, linear_list));
  KimiDelta delta;
  TESSERA_TRY(delta.heads, width(linear, "num_heads"));
  TESSERA_TRY(delta.head_dim, width(linear, "head_dim"));
  TESSERA_TRY(delta.convolution, linear.required_integer("short_conv_kernel_size", 1, 1024));
  TESSERA_TRY(delta.full_rank_gate, linear.boolean_or("use_full_rank_gate", false));
  TESSERA_TRY(LatentAttention attention, read_latent(draft));
  TESSERA_TRY(attention.output_gate, draft.keys.boolean_or("mla_use_output_gate", false));
  MixtureOfExperts common;
  common.score_correction = true;
  TESSERA_TRY(const auto sparse, moe_layers_by_frequency(draft));
  std::optional<Experts> experts;
  if (any(sparse)) {
    TESSERA_TRY(common.shared_width, shared_width(draft, "num_shared_experts", "moe_intermediate_size"));
    TESSERA_TRY(common.latent, width_or_zero(draft.keys, "routed_expert_hidden_size"));
    TESSERA_CHECK(read_groups(draft, "num_expert_group", common));
    TESSERA_TRY(experts, read_experts(draft));
  }
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    layer.mixer = full[i] ? Mixer(attention) : Mixer(delta);
    return feed_forward(draft, i, sparse, experts, common, "intermediate_size", layer);
  });
}

}  // namespace tessera::importing
