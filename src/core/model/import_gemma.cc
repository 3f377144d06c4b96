// Gemma 3 and 4: sliding windows with a full layer in between; Gemma 4 may have a MoE beside the dense part.
#include <fmt/format.h>

#include <array>

#include "family.h"

namespace tessera::importing {

namespace {

enum View { full, sliding };

// layer_types, or a full layer every sliding_window_pattern-th. Neither: an error, never all full.
Result<std::vector<int>> read_views(Draft& draft) {
  static constexpr std::array known{Kind{"full_attention", full}, Kind{"sliding_attention", sliding}};
  // Later exports write the rule with an underscore, beside the list.
  static constexpr std::array<std::string_view, 2> rule_names{"sliding_window_pattern",
                                                              "_sliding_window_pattern"};
  const auto list = draft.keys.present("layer_types");
  TESSERA_TRY(const auto pattern, one_of(draft.keys, rule_names));
  if (!list && !pattern)
    return draft.keys.error(
        "neither layer_types nor sliding_window_pattern says which layers are full attention",
        "Gemma 3 has sliding_window_pattern: 6, every sixth layer.");
  std::vector<int> out;
  if (list) {
    TESSERA_TRY(out, per_layer_kinds(draft, *list, known));
  }
  if (!pattern) return out;
  TESSERA_TRY(const auto every, pattern->integer(1, max_layers));
  for (std::int64_t i = 0; i < (list ? draft.layer_count : draft.all()); ++i) {
    const int rule = (i + 1) % every == 0 ? full : sliding;
    if (!list) {
      out.push_back(rule);
    } else if (out[static_cast<std::size_t>(i)] != rule) {
      return list->item(static_cast<std::size_t>(i))
          .error(fmt::format("layer {} is {} here, but {} = {} makes it {}", i,
                             rule == full ? "sliding" : "full", pattern->path(), every,
                             rule == full ? "full" : "sliding"),
                 "Keep one of the two keys.");
    }
  }
  return out;
}

// Kinds of Gemma this model does not describe, refused where they are switched on.
Status refuse_unmodelled(Draft& draft) {
  TESSERA_TRY(const auto per_layer_input, width_or_zero(draft.keys, "hidden_size_per_layer_input"));
  if (per_layer_input > 0)
    return draft.keys.find("hidden_size_per_layer_input")
        ->error(fmt::format("per-layer embeddings of width {} are not modelled", per_layer_input));
  TESSERA_TRY(const auto shared, draft.keys.integer_or("num_kv_shared_layers", 0, max_layers, 0));
  if (shared > 0)
    return draft.keys.find("num_kv_shared_layers")
        ->error(fmt::format("{} layers that reuse another layer's keys and values are not modelled", shared));
  return {};
}

}  // namespace

Status read_gemma3(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, true));
  draft.norms_per_sublayer = 2;
  TESSERA_TRY(SoftmaxAttention attention, read_softmax(draft));
  attention.query_key_norm = true;
  TESSERA_TRY(attention.bias, draft.keys.boolean_or("attention_bias", false));
  TESSERA_TRY(const auto views, read_views(draft));
  TESSERA_TRY(const auto window, width(draft.keys, "sliding_window"));
  TESSERA_TRY(const auto dense, width(draft.keys, "intermediate_size"));
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    SoftmaxAttention one = attention;
    if (views[i] == sliding) one.window = window;
    layer.mixer = one;
    layer.dense = DenseFeedForward{.width = dense};
    return {};
  });
}

Status read_gemma4(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, true));
  TESSERA_CHECK(refuse_unmodelled(draft));
  draft.norms_per_sublayer = 2;
  TESSERA_TRY(SoftmaxAttention local, read_softmax(draft));
  local.query_key_norm = true;
  TESSERA_TRY(local.bias, draft.keys.boolean_or("attention_bias", false));
  TESSERA_TRY(local.window, width(draft.keys, "sliding_window"));
  SoftmaxKeys global_keys;
  if (draft.keys.present("num_global_key_value_heads")) global_keys.kv_heads = "num_global_key_value_heads";
  if (draft.keys.present("global_head_dim")) global_keys.head_dim = "global_head_dim";
  TESSERA_TRY(SoftmaxAttention global, read_softmax(draft, global_keys));
  global.query_key_norm = true;
  global.bias = local.bias;
  TESSERA_TRY(global.shared_value, draft.keys.boolean_or("attention_k_eq_v", false));
  TESSERA_TRY(const auto views, read_views(draft));
  TESSERA_TRY(const auto dense, width(draft.keys, "intermediate_size"));
  TESSERA_TRY(const bool with_experts, draft.keys.boolean_or("enable_moe_block", false));
  std::optional<Experts> experts;
  if (with_experts) {
    TESSERA_TRY(experts, read_experts(draft));
  } else if (draft.keys.present("num_experts")) {
    draft.note("enable_moe_block is not set: num_experts is not used.");
  }
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    layer.mixer = views[i] == sliding ? local : global;
    layer.dense = DenseFeedForward{.width = dense};
    if (experts) {
      TESSERA_TRY(layer.moe, experts_of(*experts, i, {}));
    }
    return {};
  });
}

}  // namespace tessera::importing
