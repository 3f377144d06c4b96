// Families on plain softmax attention: Llama and Mistral, Mixtral, gpt-oss, MiMo, Step, Llama 4.
#include <fmt/format.h>

#include <array>

#include "family.h"
#include "tessera/core/base/text.h"

namespace tessera::importing {

namespace {

enum View { full, sliding };
constexpr std::array view_names{Kind{"full_attention", full}, Kind{"sliding_attention", sliding}};

}  // namespace

Status read_llama(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  TESSERA_TRY(SoftmaxAttention attention, read_softmax(draft));
  TESSERA_TRY(attention.bias, draft.keys.boolean_or("attention_bias", false));
  attention.output_bias = attention.bias;
  TESSERA_TRY(attention.window, width_or_zero(draft.keys, "sliding_window"));
  TESSERA_TRY(const auto dense, width(draft.keys, "intermediate_size"));
  return build_layers(draft, [&](std::size_t, Layer& layer) -> Status {
    layer.mixer = attention;
    layer.dense = DenseFeedForward{.width = dense};
    return {};
  });
}

Status read_mixtral(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  TESSERA_TRY(SoftmaxAttention attention, read_softmax(draft));
  TESSERA_TRY(attention.window, width_or_zero(draft.keys, "sliding_window"));
  TESSERA_TRY(const auto experts, read_experts(draft, "intermediate_size"));
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    layer.mixer = attention;
    TESSERA_TRY(layer.moe, experts_of(experts, i, {}));
    return {};
  });
}

Status read_gpt_oss(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  TESSERA_TRY(SoftmaxAttention attention, read_softmax(draft));
  TESSERA_TRY(attention.bias, draft.keys.boolean_or("attention_bias", true));
  attention.output_bias = attention.bias;
  attention.sinks = true;
  TESSERA_TRY(const auto window, width(draft.keys, "sliding_window"));
  TESSERA_TRY(const Cursor list, draft.keys.required_list("layer_types"));
  TESSERA_TRY(const auto views, per_layer_kinds(draft, list, view_names));
  TESSERA_TRY(const auto experts, read_experts(draft, "intermediate_size"));
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    SoftmaxAttention one = attention;
    if (views[i] == sliding) one.window = window;
    layer.mixer = one;
    TESSERA_TRY(layer.moe, experts_of(experts, i, {.bias = true}));
    return {};
  });
}

// Sliding layers have head counts and widths of their own.
Status read_mimo_v2(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  TESSERA_TRY(SoftmaxAttention global, read_softmax(draft, {.value_dim = "v_head_dim"}));
  TESSERA_TRY(SoftmaxAttention local, read_softmax(draft, {.heads = "swa_num_attention_heads",
                                                           .kv_heads = "swa_num_key_value_heads",
                                                           .head_dim = "swa_head_dim",
                                                           .value_dim = "swa_v_head_dim"}));
  static constexpr std::array<std::string_view, 2> window_names{"sliding_window", "sliding_window_size"};
  TESSERA_TRY(const auto window, one_of(draft.keys, window_names));
  if (!window) return draft.keys.error("key sliding_window is missing");
  TESSERA_TRY(local.window, window->integer(1, max_width));
  TESSERA_TRY(global.sinks, draft.keys.boolean_or("add_full_attention_sink_bias", false));
  TESSERA_TRY(local.sinks, draft.keys.boolean_or("add_swa_attention_sink_bias", false));
  TESSERA_TRY(global.bias, draft.keys.boolean_or("attention_bias", false));
  local.bias = global.bias;
  TESSERA_TRY(const Cursor pattern, draft.keys.required("hybrid_layer_pattern"));
  if (!pattern.is_list())
    return pattern.error(
        fmt::format("expected a list of 0 (full) and 1 (sliding), found {}", describe(pattern.kind())),
        "A pattern string is another family's notation.");
  TESSERA_TRY(const auto views, per_layer(draft, pattern, 0, 1));
  if (!draft.keys.present("moe_layer_freq"))
    return draft.keys.error("key moe_layer_freq is missing: nothing says which layers are MoE layers");
  TESSERA_TRY(const auto sparse, moe_layers_by_frequency(draft));
  MixtureOfExperts common;
  TESSERA_TRY(const auto method, draft.keys.string_or("topk_method", "noaux_tc"));
  common.score_correction = method == "noaux_tc";
  TESSERA_TRY(const auto experts, read_deepseek_experts(draft, sparse, common));
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    layer.mixer = views[i] == 1 ? local : global;
    return feed_forward(draft, i, sparse, experts, common, "intermediate_size", layer);
  });
}

namespace {

// Step: a text of 0-based indices, "3,4,5", or first_k_dense_replace.
Result<std::vector<bool>> step_moe_layers(Draft& draft) {
  const auto text = draft.keys.present("moe_layers_enum");
  if (!text) {
    if (!draft.keys.present("first_k_dense_replace") && !draft.keys.present("moe_layer_freq"))
      return draft.keys.error(
          "neither moe_layers_enum nor first_k_dense_replace says which layers are MoE layers");
    return moe_layers_by_frequency(draft);
  }
  TESSERA_TRY(const auto listed, text->string());
  std::vector<bool> out(static_cast<std::size_t>(draft.layer_count), false);
  for (const std::string_view piece : split(listed, ',')) {
    const auto index = to_integer(trim(piece));
    if (!index || *index < 0 || *index >= draft.all())
      return text->error(fmt::format("\"{}\" is no layer index 0 … {}", piece, draft.layer_count - 1));
    if (*index < draft.layer_count) out[static_cast<std::size_t>(*index)] = true;
  }
  out.resize(static_cast<std::size_t>(draft.all()), bool{out.back()});
  return out;
}

}  // namespace

Status read_step(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  static constexpr std::array<std::string_view, 2> group_names{"num_key_value_heads", "num_attention_groups"};
  TESSERA_TRY(const auto groups, one_of(draft.keys, group_names));
  const bool old_name = !draft.keys.present("num_key_value_heads") && groups;
  TESSERA_TRY(SoftmaxAttention global,
              read_softmax(draft, {.kv_heads = old_name ? "num_attention_groups" : "num_key_value_heads"}));
  global.query_key_norm = true;
  TESSERA_TRY(global.head_gate, draft.keys.boolean_or("use_head_wise_attn_gate", false));
  SoftmaxAttention local = global;
  if (const auto other = draft.keys.present("attention_other_setting")) {
    TESSERA_TRY(local, read_softmax(draft, *other, {.kv_heads = "num_attention_groups"}));
    local.query_key_norm = true;
    local.head_gate = global.head_gate;
  }
  TESSERA_TRY(local.window, width(draft.keys, "sliding_window"));
  TESSERA_TRY(const Cursor list, draft.keys.required_list("layer_types"));
  TESSERA_TRY(const auto views, per_layer_kinds(draft, list, view_names));
  TESSERA_TRY(const auto sparse, step_moe_layers(draft));
  MixtureOfExperts common;
  TESSERA_TRY(common.score_correction, draft.keys.boolean_or("use_moe_router_bias", false));
  std::optional<Experts> experts;
  if (any(sparse)) {
    TESSERA_TRY(const auto shared, draft.keys.integer_or("n_shared_experts", 0, 4096, 1));
    TESSERA_TRY(const auto one, width_or_zero(draft.keys, "share_expert_dim"));
    common.shared_width = shared * one;
    TESSERA_TRY(experts, read_experts(draft));
  }
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    layer.mixer = views[i] == sliding ? local : global;
    return feed_forward(draft, i, sparse, experts, common, "intermediate_size", layer);
  });
}

// Llama 4: rotary layers attend within chunks; every fourth layer has no rotary embedding and sees all.
Status read_llama4(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  TESSERA_TRY(SoftmaxAttention attention, read_softmax(draft));
  TESSERA_TRY(attention.bias, draft.keys.boolean_or("attention_bias", false));
  attention.output_bias = attention.bias;
  TESSERA_TRY(const auto chunk, width_or_zero(draft.keys, "attention_chunk_size"));
  std::vector<std::int64_t> rotary;
  const auto list = draft.keys.present("no_rope_layers");
  if (list && list->size() > 0) {
    TESSERA_TRY(rotary, per_layer(draft, *list, 0, 1));
  } else {
    TESSERA_TRY(const auto interval, draft.keys.integer_or("no_rope_layer_interval", 1, max_layers, 4));
    for (std::int64_t i = 0; i < draft.all(); ++i) rotary.push_back((i + 1) % interval == 0 ? 0 : 1);
    draft.note(fmt::format(
        "no_rope_layers is absent: every layer i with (i + 1) % {} = 0 attends to the whole context.",
        interval));
  }
  std::vector<bool> sparse(static_cast<std::size_t>(draft.all()), false);
  if (const auto listed = draft.keys.present("moe_layers"); listed && listed->size() > 0) {
    TESSERA_TRY(sparse, index_list(draft, *listed));
  } else {
    TESSERA_TRY(const auto step, draft.keys.required_integer("interleave_moe_layer_step", 1, max_layers));
    for (std::size_t i = 0; i < sparse.size(); ++i)
      sparse[i] = (static_cast<std::int64_t>(i) + 1) % step == 0;
  }
  MixtureOfExperts common;
  std::optional<Experts> experts;
  if (any(sparse)) {
    TESSERA_TRY(common.shared_width, width(draft.keys, "intermediate_size"));
    TESSERA_TRY(experts, read_experts(draft, "intermediate_size"));
  }
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    SoftmaxAttention one = attention;
    if (rotary[i] == 1) one.chunk = chunk;
    layer.mixer = one;
    return feed_forward(draft, i, sparse, experts, common, "intermediate_size_mlp", layer);
  });
}

}  // namespace tessera::importing
