// Qwen: mixture of experts on softmax attention (Qwen2, Qwen3), and the hybrids with Gated DeltaNet
// (Qwen3-Next, Qwen3.5 and 3.6).
#include <fmt/format.h>

#include <array>

#include "family.h"

namespace tessera::importing {

namespace {

enum Mixing { full, sliding, linear };

// Which layers see a sliding window: layer_types, or max_window_layers when the window is switched on.
Result<std::vector<int>> attention_kinds(Draft& draft) {
  static constexpr std::array known{Kind{"full_attention", full}, Kind{"sliding_attention", sliding}};
  if (const auto list = draft.keys.present("layer_types")) return per_layer_kinds(draft, *list, known);
  std::vector<int> out(static_cast<std::size_t>(draft.all()), full);
  TESSERA_TRY(const bool windowed, draft.keys.boolean_or("use_sliding_window", false));
  if (!windowed) return out;
  TESSERA_TRY(const auto first, draft.keys.required_integer("max_window_layers", 0, max_layers));
  for (auto i = static_cast<std::size_t>(first); i < out.size(); ++i) out[i] = sliding;
  return out;
}

Result<std::int64_t> window_of(Draft& draft, const std::vector<int>& kinds) {
  for (const int kind : kinds)
    if (kind == sliding) return width(draft.keys, "sliding_window");
  return std::int64_t{0};
}

// MoE on every decoder_sparse_step-th layer that mlp_only_layers does not name.
Result<std::vector<bool>> sparse_layers(Draft& draft) {
  const auto at = draft.keys.present("num_experts");
  if (at && at->is_integer()) {
    TESSERA_TRY(const auto experts, at->integer(0, max_experts));
    if (experts == 0) {
      draft.note("num_experts is 0: all layers are dense.");
      return std::vector<bool>(static_cast<std::size_t>(draft.all()), false);
    }
  }
  TESSERA_TRY(const auto step, draft.keys.integer_or("decoder_sparse_step", 1, max_layers, 1));
  std::vector<bool> dense(static_cast<std::size_t>(draft.all()), false);
  if (const auto list = draft.keys.present("mlp_only_layers")) {
    TESSERA_TRY(dense, index_list(draft, *list));
  }
  std::vector<bool> out(dense.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const bool mtp = static_cast<std::int64_t>(i) >= draft.layer_count;
    out[i] = mtp ? bool{out[i - 1]} : !dense[i] && (static_cast<std::int64_t>(i) + 1) % step == 0;
  }
  return out;
}

using MixerOf = std::function<Mixer(std::size_t)>;

Status place(Draft& draft, const std::vector<bool>& sparse, const MixerOf& mixer, bool with_shared) {
  MixtureOfExperts common;
  if (with_shared) {
    TESSERA_TRY(common.shared_width, width_or_zero(draft.keys, "shared_expert_intermediate_size"));
    common.shared_gate = common.shared_width > 0;
  }
  std::optional<Experts> experts;
  if (any(sparse)) {
    TESSERA_TRY(experts, read_experts(draft));
  }
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    layer.mixer = mixer(i);
    return feed_forward(draft, i, sparse, experts, common, "intermediate_size", layer);
  });
}

Result<MixerOf> softmax_mixers(Draft& draft, bool bias, bool norm) {
  TESSERA_TRY(SoftmaxAttention attention, read_softmax(draft));
  attention.bias = bias;
  attention.query_key_norm = norm;
  TESSERA_TRY(auto kinds, attention_kinds(draft));
  TESSERA_TRY(const auto window, window_of(draft, kinds));
  return MixerOf([attention, window, kinds = std::move(kinds)](std::size_t i) -> Mixer {
    SoftmaxAttention one = attention;
    if (kinds[i] == sliding) one.window = window;
    return one;
  });
}

// Full attention where layer_types says so; without the list, on every full_attention_interval-th layer.
Result<std::vector<int>> hybrid_kinds(Draft& draft) {
  static constexpr std::array known{Kind{"full_attention", full}, Kind{"linear_attention", linear}};
  const auto list = draft.keys.present("layer_types");
  const auto interval = draft.keys.present("full_attention_interval");
  if (!list && !interval)
    return draft.keys.error(
        "neither layer_types nor full_attention_interval says which layers are full attention",
        "Qwen3-Next has full_attention_interval: 4.");
  std::int64_t every = 0;
  if (interval) {
    TESSERA_TRY(every, interval->integer(1, max_layers));
  }
  std::vector<int> out;
  if (list) {
    TESSERA_TRY(out, per_layer_kinds(draft, *list, known));
  }
  for (std::int64_t i = 0; interval && i < draft.layer_count; ++i) {
    const int rule = (i + 1) % every == 0 ? full : linear;
    if (!list) {
      out.push_back(rule);
    } else if (out[static_cast<std::size_t>(i)] != rule) {
      return list->item(static_cast<std::size_t>(i))
          .error(fmt::format("layer {} is {} here, but full_attention_interval = {} makes it {}", i,
                             rule == full ? "linear" : "full", every, rule == full ? "full" : "linear"),
                 "Keep one of the two keys.");
    }
  }
  // The MTP block of these models is a full attention layer, whatever the last layer is.
  if (static_cast<std::int64_t>(list ? list->size() : 0) != draft.all()) {
    out.resize(static_cast<std::size_t>(draft.layer_count));
    out.resize(static_cast<std::size_t>(draft.all()), full);
  }
  return out;
}

Result<MixerOf> hybrid_mixers(Draft& draft) {
  TESSERA_TRY(SoftmaxAttention attention, read_softmax(draft));
  attention.query_key_norm = true;
  TESSERA_TRY(attention.output_gate, draft.keys.boolean_or("attn_output_gate", true));
  GatedDeltaNet delta;
  TESSERA_TRY(delta.key_heads, width(draft.keys, "linear_num_key_heads"));
  TESSERA_TRY(delta.value_heads, width(draft.keys, "linear_num_value_heads"));
  TESSERA_TRY(delta.key_dim, width(draft.keys, "linear_key_head_dim"));
  TESSERA_TRY(delta.value_dim, width(draft.keys, "linear_value_head_dim"));
  TESSERA_TRY(delta.convolution, draft.keys.required_integer("linear_conv_kernel_dim", 1, 1024));
  if (delta.value_heads % delta.key_heads != 0)
    return draft.keys.find("linear_num_value_heads")
        ->error(fmt::format("{} is no multiple of linear_num_key_heads = {}", delta.value_heads,
                            delta.key_heads));
  TESSERA_TRY(auto kinds, hybrid_kinds(draft));
  return MixerOf([attention, delta, kinds = std::move(kinds)](std::size_t i) -> Mixer {
    return kinds[i] == full ? Mixer(attention) : Mixer(delta);
  });
}

}  // namespace

Status read_qwen_dense(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  TESSERA_TRY(const auto type, draft.keys.string_or("model_type", "qwen3"));
  const bool third = type == "qwen3";
  TESSERA_TRY(const bool bias, draft.keys.boolean_or("attention_bias", !third));
  TESSERA_TRY(const auto mixers, softmax_mixers(draft, bias, third));
  return place(draft, std::vector<bool>(static_cast<std::size_t>(draft.all()), false), mixers, false);
}

Status read_qwen2_moe(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  TESSERA_TRY(const bool bias, draft.keys.boolean_or("qkv_bias", true));
  TESSERA_TRY(const auto mixers, softmax_mixers(draft, bias, false));
  TESSERA_TRY(const auto sparse, sparse_layers(draft));
  return place(draft, sparse, mixers, true);
}

Status read_qwen3_moe(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  TESSERA_TRY(const bool bias, draft.keys.boolean_or("attention_bias", false));
  TESSERA_TRY(const auto mixers, softmax_mixers(draft, bias, true));
  TESSERA_TRY(const auto sparse, sparse_layers(draft));
  return place(draft, sparse, mixers, true);
}

Status read_qwen3_next(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false, "mtp_num_hidden_layers"));
  if (!draft.keys.present("mtp_num_hidden_layers"))
    draft.note(
        "The config names no MTP block; the published Qwen3-Next checkpoints hold one, which is not "
        "counted.");
  TESSERA_TRY(const auto mixers, hybrid_mixers(draft));
  TESSERA_TRY(const auto sparse, sparse_layers(draft));
  return place(draft, sparse, mixers, true);
}

Status read_qwen3_5(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false, "mtp_num_hidden_layers"));
  TESSERA_TRY(const auto mixers, hybrid_mixers(draft));
  return place(draft, std::vector<bool>(static_cast<std::size_t>(draft.all()), false), mixers, false);
}

Status read_qwen3_5_moe(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false, "mtp_num_hidden_layers"));
  TESSERA_TRY(const auto mixers, hybrid_mixers(draft));
  TESSERA_TRY(const auto sparse, sparse_layers(draft));
  return place(draft, sparse, mixers, true);
}

}  // namespace tessera::importing
