// DeepSeek-V2 … V4 and the models built like them: Kimi-K2, GLM-5 (MLA with sparse attention).
#include <fmt/format.h>

#include <array>

#include "family.h"

namespace tessera::importing {

namespace {

// The balancing bias came with V3; V2's other top-k methods have none.
Result<bool> has_score_correction(Draft& draft, bool by_default) {
  const auto method = draft.keys.present("topk_method");
  if (!method) return by_default;
  const auto name = method->string();
  if (!name) return std::unexpected(name.error());
  return *name == "noaux_tc";
}

Result<SparseIndexer> read_indexer(Draft& draft) {
  SparseIndexer out;
  TESSERA_TRY(out.heads, width(draft.keys, "index_n_heads"));
  TESSERA_TRY(out.head_dim, width(draft.keys, "index_head_dim"));
  TESSERA_TRY(out.top_k, width(draft.keys, "index_topk"));
  return out;
}

// GLM-5.2: some layers reuse an earlier layer's choice. indexer_types says which; else index_topk_freq.
Result<std::vector<bool>> shared_indexers(Draft& draft) {
  static constexpr std::array known{Kind{"full", 0}, Kind{"shared", 1}};
  std::vector<bool> out(static_cast<std::size_t>(draft.all()), false);
  if (const auto list = draft.keys.present("indexer_types")) {
    TESSERA_TRY(const auto kinds, per_layer_kinds(draft, *list, known));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = kinds[i] == 1;
    if (!kinds.empty() && kinds[0] == 1)
      return list->item(0).error("the first layer cannot share an indexer: none comes before it");
    return out;
  }
  TESSERA_TRY(const auto every, draft.keys.integer_or("index_topk_freq", 1, max_layers, 1));
  TESSERA_TRY(const auto offset, draft.keys.integer_or("index_skip_topk_offset", 0, max_layers, 1));
  for (std::int64_t i = 0; i < draft.layer_count; ++i)
    out[static_cast<std::size_t>(i)] = std::max<std::int64_t>(i - offset + 1, 0) % every != 0;
  return out;
}

// GLM-5.2 and after: mlp_layer_types decides; first_k_dense_replace must agree with it.
Result<std::vector<bool>> moe_layers(Draft& draft) {
  static constexpr std::array known{Kind{"dense", 0}, Kind{"sparse", 1}};
  const auto list = draft.keys.present("mlp_layer_types");
  if (!list) return moe_layers_by_frequency(draft);
  TESSERA_TRY(const auto kinds, per_layer_kinds(draft, *list, known));
  std::vector<bool> out(kinds.begin(), kinds.end());
  if (draft.keys.present("first_k_dense_replace") || draft.keys.present("moe_layer_freq")) {
    TESSERA_TRY(const auto rule, moe_layers_by_frequency(draft));
    for (std::size_t i = 0; i < static_cast<std::size_t>(draft.layer_count); ++i) {
      if (rule[i] != out[i])
        return list->item(i).error(
            fmt::format("layer {} is {} here, but first_k_dense_replace and moe_layer_freq make it {}", i,
                        out[i] ? "sparse" : "dense", rule[i] ? "sparse" : "dense"),
            "Keep one of the two.");
    }
  }
  return out;
}

Status place(Draft& draft, const LatentAttention& attention, const std::vector<bool>& shared_indexer,
             bool score_correction) {
  MixtureOfExperts common;
  TESSERA_TRY(common.score_correction, has_score_correction(draft, score_correction));
  TESSERA_TRY(const auto sparse, moe_layers(draft));
  TESSERA_TRY(const auto experts, read_deepseek_experts(draft, sparse, common));
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    LatentAttention one = attention;
    if (one.indexer && !shared_indexer.empty()) one.indexer->shared = shared_indexer[i];
    layer.mixer = one;
    return feed_forward(draft, i, sparse, experts, common, "intermediate_size", layer);
  });
}

Status read_plain(Draft& draft, bool score_correction) {
  TESSERA_CHECK(read_frame(draft, false));
  TESSERA_TRY(const auto attention, read_latent(draft));
  return place(draft, attention, {}, score_correction);
}

}  // namespace

Status read_deepseek_v2(Draft& draft) {
  return read_plain(draft, false);
}
Status read_deepseek_v3(Draft& draft) {
  return read_plain(draft, true);
}

Status read_deepseek_v32(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  TESSERA_TRY(auto attention, read_latent(draft));
  TESSERA_TRY(attention.indexer, read_indexer(draft));
  return place(draft, attention, {}, true);
}

Status read_glm_moe_dsa(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  TESSERA_TRY(auto attention, read_latent(draft));
  TESSERA_TRY(attention.indexer, read_indexer(draft));
  TESSERA_TRY(const auto shared, shared_indexers(draft));
  return place(draft, attention, shared, true);
}

// V4: compress_ratios gives every layer's view of the context: 0 = sliding window only, 4 = overlapping
// compressed entries picked by the indexer, 128 = all compressed entries.
Status read_deepseek_v4(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  TESSERA_TRY(draft.residual_streams, draft.keys.integer_or("hc_mult", 1, 64, 1));
  CompressedAttention attention;
  TESSERA_TRY(attention.heads, width(draft.keys, "num_attention_heads"));
  TESSERA_TRY(attention.head_dim, width(draft.keys, "head_dim"));
  TESSERA_TRY(attention.rope_dim, width(draft.keys, "qk_rope_head_dim"));
  TESSERA_TRY(attention.query_rank, width(draft.keys, "q_lora_rank"));
  TESSERA_TRY(attention.output_rank, width(draft.keys, "o_lora_rank"));
  TESSERA_TRY(attention.output_groups, width(draft.keys, "o_groups"));
  TESSERA_TRY(attention.window, width(draft.keys, "sliding_window"));
  if (attention.heads % attention.output_groups != 0)
    return draft.keys.find("o_groups")
        ->error(fmt::format("{} does not divide num_attention_heads = {}", attention.output_groups,
                            attention.heads));
  if (const auto kv = draft.keys.present("num_key_value_heads")) TESSERA_CHECK(kv->integer(1, 1));
  TESSERA_TRY(const Cursor list, draft.keys.required_list("compress_ratios"));
  TESSERA_TRY(const auto ratios, per_layer(draft, list, 0, max_width));
  TESSERA_TRY(const auto indexer, read_indexer(draft));
  MixtureOfExperts common;
  TESSERA_TRY(common.score_correction, has_score_correction(draft, true));
  TESSERA_TRY(common.shared_width, shared_width(draft, "n_shared_experts", "moe_intermediate_size"));
  TESSERA_TRY(const auto experts, read_experts(draft));
  TESSERA_TRY(const auto hashed, draft.keys.integer_or("num_hash_layers", 0, max_layers, 0));
  if (hashed > 0)
    draft.note(fmt::format(
        "The first {} layers route by a hash of the token: their balancing biases are not counted.", hashed));
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    CompressedAttention one = attention;
    one.ratio = ratios[i];
    if (one.ratio != 0 && one.ratio != 4 && one.ratio != 128)
      return (i < list.size() ? list.item(i) : list)
          .error(fmt::format("unknown compression ratio {}", one.ratio), "DeepSeek-V4 has 0, 4 and 128.");
    if (one.ratio == 4) one.indexer = indexer;
    layer.mixer = one;
    MixtureOfExperts mine = common;
    if (static_cast<std::int64_t>(i) < hashed) mine.score_correction = false;
    TESSERA_TRY(layer.moe, experts_of(experts, i, mine));
    return {};
  });
}

}  // namespace tessera::importing
