// MiniMax: lightning attention with every eighth layer softmax (Text-01, M1), all softmax (M2), and
// block-sparse softmax attention (M3).
#include <fmt/format.h>

#include <array>

#include "family.h"

namespace tessera::importing {

namespace {

enum Mixing { lightning, softmax };

// attn_type_list (0 lightning, 1 softmax) in the authors' files, layer_types in the Hugging Face port.
Result<std::vector<std::int64_t>> attention_kinds(Draft& draft) {
  static constexpr std::array known{Kind{"linear_attention", lightning}, Kind{"full_attention", softmax}};
  const auto codes = draft.keys.present("attn_type_list");
  const auto names = draft.keys.present("layer_types");
  if (!codes && !names)
    return draft.keys.error("neither attn_type_list nor layer_types says which layers are softmax attention");
  std::vector<std::int64_t> out;
  if (codes) {
    if (!codes->is_list())
      return codes->error(fmt::format("expected a list of 0 and 1, found {}", describe(codes->kind())));
    TESSERA_TRY(out, per_layer(draft, *codes, 0, 1));
  }
  if (names) {
    TESSERA_TRY(const auto kinds, per_layer_kinds(draft, *names, known));
    for (std::size_t i = 0; codes && i < kinds.size(); ++i) {
      if (out[i] != kinds[i])
        return names->item(std::min(i, names->size() - 1))
            .error(fmt::format("layer {} is {} here, but attn_type_list says {}", i,
                               kinds[i] == softmax ? "full_attention" : "linear_attention", out[i]),
                   "Keep one of the two lists.");
    }
    out.assign(kinds.begin(), kinds.end());
  }
  return out;
}

// Norms of queries and keys: per head, or "per_layer", over all heads at once.
Status read_norms(Draft& draft, SoftmaxAttention& attention) {
  TESSERA_TRY(attention.query_key_norm, draft.keys.boolean_or("use_qk_norm", false));
  TESSERA_TRY(const auto type, draft.keys.string_or("qk_norm_type", "per_head"));
  if (type != "per_head" && type != "per_layer")
    return draft.keys.find("qk_norm_type")
        ->error(fmt::format("unknown kind of norm \"{}\"", type), "Known are per_head and per_layer.");
  attention.query_key_norm_wide = attention.query_key_norm && type == "per_layer";
  return {};
}

}  // namespace

Status read_minimax_linear(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  TESSERA_TRY(const SoftmaxAttention attention, read_softmax(draft));
  const LightningAttention linear{.heads = attention.query_heads, .head_dim = attention.head_dim};
  TESSERA_TRY(const auto kinds, attention_kinds(draft));
  MixtureOfExperts common;
  TESSERA_TRY(common.shared_width, width_or_zero(draft.keys, "shared_intermediate_size"));
  TESSERA_TRY(const auto experts, read_experts(draft, "intermediate_size"));
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    layer.mixer = kinds[i] == softmax ? Mixer(attention) : Mixer(linear);
    TESSERA_TRY(layer.moe, experts_of(experts, i, common));
    return {};
  });
}

Status read_minimax_m2(Draft& draft) {
  TESSERA_CHECK(read_widths(draft, false));
  TESSERA_CHECK(read_layer_count(draft));
  TESSERA_TRY(const auto modules, draft.keys.integer_or("num_mtp_modules", 0, 64, 0));
  TESSERA_TRY(const auto each, draft.keys.integer_or("mtp_transformer_layers", 0, 64, 1));
  TESSERA_TRY(const bool used, draft.keys.boolean_or("use_mtp", modules > 0));
  draft.mtp_count = used ? modules * each : 0;
  TESSERA_TRY(SoftmaxAttention attention, read_softmax(draft));
  TESSERA_CHECK(read_norms(draft, attention));
  if (draft.keys.present("attn_type_list") || draft.keys.present("layer_types")) {
    TESSERA_TRY(const auto kinds, attention_kinds(draft));
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i] == lightning)
        return draft.keys.error(
            fmt::format("layer {} is linear attention, which this family does not have", i));
    }
  }
  MixtureOfExperts common;
  TESSERA_TRY(common.score_correction, draft.keys.boolean_or("use_routing_bias", false));
  TESSERA_TRY(common.shared_width, width_or_zero(draft.keys, "shared_intermediate_size"));
  TESSERA_TRY(const auto experts, read_experts(draft, "intermediate_size"));
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    layer.mixer = attention;
    TESSERA_TRY(layer.moe, experts_of(experts, i, common));
    return {};
  });
}

Status read_minimax_m3(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  // The checkpoint holds one module, num_nextn_predict_layers of it; num_mtp_modules is how often it is
  // applied.
  if (const auto modules = draft.keys.present("num_mtp_modules")) {
    TESSERA_TRY(const auto count, modules->integer(0, 64));
    if (!draft.keys.present("num_nextn_predict_layers")) {
      draft.mtp_count = count;
    } else if (count != draft.mtp_count) {
      draft.note(
          fmt::format("num_mtp_modules is {} and num_nextn_predict_layers {}: the model holds the latter.",
                      count, draft.mtp_count));
    }
  }
  TESSERA_TRY(SoftmaxAttention attention, read_softmax(draft));
  TESSERA_CHECK(read_norms(draft, attention));
  TESSERA_TRY(attention.output_gate, draft.keys.boolean_or("attention_output_gate", false));
  std::vector<std::int64_t> sparse_attention(static_cast<std::size_t>(draft.all()), 0);
  SparseIndexer indexer;
  if (const auto config = draft.keys.present("sparse_attention_config")) {
    TESSERA_TRY(const bool used, config->boolean_or("use_sparse_attention", true));
    if (used) {
      TESSERA_TRY(indexer.heads, width(*config, "sparse_num_index_heads"));
      TESSERA_TRY(indexer.head_dim, width(*config, "sparse_index_dim"));
      TESSERA_TRY(const auto blocks, config->required_integer("sparse_topk_blocks", 1, 4096));
      TESSERA_TRY(const auto block, config->required_integer("sparse_block_size", 1, 4096));
      indexer.top_k = blocks * block;
      TESSERA_TRY(const Cursor list, config->required("sparse_attention_freq"));
      TESSERA_TRY(sparse_attention, per_layer(draft, list, 0, 1));
    }
  }
  if (!draft.keys.present("moe_layer_freq") && !draft.keys.present("first_k_dense_replace"))
    return draft.keys.error(
        "neither moe_layer_freq nor first_k_dense_replace says which layers are MoE layers");
  TESSERA_TRY(const auto sparse, moe_layers_by_frequency(draft));
  MixtureOfExperts common;
  TESSERA_TRY(common.score_correction, draft.keys.boolean_or("use_routing_bias", false));
  std::optional<Experts> experts;
  if (any(sparse)) {
    const std::string_view shared_key =
        draft.keys.present("shared_intermediate_size") ? "shared_intermediate_size" : "intermediate_size";
    TESSERA_TRY(common.shared_width, shared_width(draft, "n_shared_experts", shared_key));
    static constexpr std::array<std::string_view, 2> width_names{"moe_intermediate_size",
                                                                 "intermediate_size"};
    TESSERA_CHECK(one_of(draft.keys, width_names));
    TESSERA_TRY(experts, read_experts(draft, "intermediate_size"));
  }
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    SoftmaxAttention one = attention;
    if (sparse_attention[i] == 1) one.indexer = indexer;
    layer.mixer = one;
    return feed_forward(draft, i, sparse, experts, common, "dense_intermediate_size", layer);
  });
}

}  // namespace tessera::importing
