// State-space hybrids: Granite-4.0-H and Bamba (Mamba-2), Jamba (Mamba-1).
#include <fmt/format.h>

#include <array>

#include "family.h"

namespace tessera::importing {

namespace {

enum Mixing { mamba, attention };

// Mamba-2 under Bamba's keys. mamba_d_head may be "auto": the expanded width split among the heads.
Result<Mamba2> read_mamba2(Draft& draft) {
  Mamba2 out;
  TESSERA_TRY(out.heads, width(draft.keys, "mamba_n_heads"));
  TESSERA_TRY(out.state, width(draft.keys, "mamba_d_state"));
  TESSERA_TRY(out.groups, width(draft.keys, "mamba_n_groups"));
  TESSERA_TRY(out.convolution, draft.keys.required_integer("mamba_d_conv", 1, 1024));
  TESSERA_TRY(out.chunk, width(draft.keys, "mamba_chunk_size"));
  TESSERA_TRY(const auto expand, draft.keys.required_integer("mamba_expand", 1, 256));
  const std::int64_t inner = expand * draft.hidden;
  TESSERA_TRY(const Cursor dim, draft.keys.required("mamba_d_head"));
  if (dim.is_string() && *dim.string() == "auto") {
    if (inner % out.heads != 0)
      return dim.error(fmt::format("mamba_n_heads = {} does not divide mamba_expand · hidden_size = {}",
                                   out.heads, inner));
    out.head_dim = inner / out.heads;
  } else {
    TESSERA_TRY(out.head_dim, dim.integer(1, max_width));
    if (out.head_dim * out.heads != inner)
      return dim.error(fmt::format("mamba_n_heads · mamba_d_head = {}, but mamba_expand · hidden_size = {}",
                                   out.heads * out.head_dim, inner));
  }
  if (out.heads % out.groups != 0)
    return draft.keys.find("mamba_n_groups")
        ->error(fmt::format("{} does not divide mamba_n_heads = {}", out.groups, out.heads));
  return out;
}

}  // namespace

// Every layer has the shared MLP; routed experts stand beside it unless num_local_experts is 0.
Status read_granite_hybrid(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, true));
  static constexpr std::array known{Kind{"mamba", mamba}, Kind{"attention", attention}};
  static constexpr std::array<std::string_view, 2> list_names{"layer_types", "layers_block_type"};
  TESSERA_TRY(const auto list, one_of(draft.keys, list_names));
  if (!list) return draft.keys.error("key layer_types is missing: nothing says which layers are attention");
  TESSERA_TRY(const auto kinds, per_layer_kinds(draft, *list, known));
  TESSERA_TRY(SoftmaxAttention softmax, read_softmax(draft));
  TESSERA_TRY(softmax.bias, draft.keys.boolean_or("attention_bias", false));
  softmax.output_bias = softmax.bias;
  TESSERA_TRY(const auto state_space, read_mamba2(draft));
  TESSERA_TRY(const auto shared, width_or_zero(draft.keys, "shared_intermediate_size"));
  const auto count = draft.keys.present("num_local_experts");
  const bool routed = !(count && count->is_integer() && count->integer(0, 0).has_value());
  std::optional<Experts> experts;
  if (routed) {
    TESSERA_TRY(experts, read_experts(draft, "intermediate_size"));
  } else {
    if (shared == 0)
      return count->error("0 experts and no shared_intermediate_size: the layers have no feed-forward");
    draft.note("num_local_experts is 0: the shared MLP is each layer's dense feed-forward.");
  }
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    layer.mixer = kinds[i] == attention ? Mixer(softmax) : Mixer(state_space);
    if (!routed) {
      layer.dense = DenseFeedForward{.width = shared};
      return {};
    }
    TESSERA_TRY(layer.moe, experts_of(*experts, i, {.shared_width = shared}));
    return {};
  });
}

Status read_bamba(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  TESSERA_TRY(SoftmaxAttention softmax, read_softmax(draft));
  TESSERA_TRY(softmax.bias, draft.keys.boolean_or("attention_bias", false));
  softmax.output_bias = softmax.bias;
  TESSERA_TRY(const auto state_space, read_mamba2(draft));
  TESSERA_TRY(const Cursor list, draft.keys.required_list("attn_layer_indices"));
  TESSERA_TRY(const auto is_attention, index_list(draft, list));
  TESSERA_TRY(const auto dense, width(draft.keys, "intermediate_size"));
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    layer.mixer = is_attention[i] ? Mixer(softmax) : Mixer(state_space);
    layer.dense = DenseFeedForward{.width = dense};
    return {};
  });
}

namespace {

struct Every {
  std::int64_t period = 1, offset = 0;
  [[nodiscard]] bool holds(std::size_t layer) const {
    return static_cast<std::int64_t>(layer) % period == offset;
  }
};

Result<Every> read_every(Cursor keys, std::string_view period_key, std::string_view offset_key) {
  Every out;
  TESSERA_TRY(out.period, keys.required_integer(period_key, 1, max_layers));
  TESSERA_TRY(out.offset, keys.required_integer(offset_key, 0, max_layers));
  if (out.offset >= out.period)
    return keys.find(offset_key)
        ->error(fmt::format("{} is not below {} = {}", out.offset, period_key, out.period));
  return out;
}

}  // namespace

Status read_jamba(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  TESSERA_TRY(const Every attend, read_every(draft.keys, "attn_layer_period", "attn_layer_offset"));
  TESSERA_TRY(const Every sparse, read_every(draft.keys, "expert_layer_period", "expert_layer_offset"));
  TESSERA_TRY(SoftmaxAttention softmax, read_softmax(draft));
  TESSERA_TRY(softmax.window, width_or_zero(draft.keys, "sliding_window"));
  Mamba1 state_space;
  TESSERA_TRY(const auto expand, draft.keys.required_integer("mamba_expand", 1, 256));
  state_space.inner = expand * draft.hidden;
  TESSERA_TRY(state_space.state, width(draft.keys, "mamba_d_state"));
  TESSERA_TRY(state_space.convolution, draft.keys.required_integer("mamba_d_conv", 1, 1024));
  TESSERA_TRY(const Cursor rank, draft.keys.required("mamba_dt_rank"));
  if (rank.is_string() && *rank.string() == "auto") {
    state_space.time_rank = (draft.hidden + 15) / 16;
  } else {
    TESSERA_TRY(state_space.time_rank, rank.integer(1, max_width));
  }
  TESSERA_TRY(const auto wide, width(draft.keys, "intermediate_size"));
  TESSERA_TRY(const auto experts, read_experts(draft, "intermediate_size"));
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    layer.mixer = attend.holds(i) ? Mixer(softmax) : Mixer(state_space);
    if (sparse.holds(i) && experts.count[i] != 1) {  // one expert is a plain feed-forward
      TESSERA_TRY(layer.moe, experts_of(experts, i, {}));
    } else {
      layer.dense = DenseFeedForward{.width = wide};
    }
    return {};
  });
}

}  // namespace tessera::importing
