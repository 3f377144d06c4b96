#include "native_mixer.h"

#include <fmt/format.h>

#include <array>

#include "import_draft.h"
#include "tessera/core/base/text.h"

namespace tessera::importing {

namespace {

Result<std::optional<SparseIndexer>> read_indexer(Cursor node) {
  const auto found = node.present("indexer");
  if (!found) return std::optional<SparseIndexer>{};
  TESSERA_CHECK(found->only_keys({"heads", "head_dim", "top_k", "shared"}));
  SparseIndexer out;
  TESSERA_TRY(out.heads, width(*found, "heads"));
  TESSERA_TRY(out.head_dim, width(*found, "head_dim"));
  TESSERA_TRY(out.top_k, width(*found, "top_k"));
  TESSERA_TRY(out.shared, found->boolean_or("shared", false));
  return std::optional(out);
}

// Refuses a pair of numbers of which the first is no multiple of the second.
Status divides(Cursor node, std::string_view part, std::int64_t small, std::string_view whole,
               std::int64_t large) {
  if (large % small == 0) return {};
  const auto at = node.find(part);
  return (at ? *at : node).error(fmt::format("{} does not divide {} = {}", small, whole, large));
}

Result<Mixer> read_softmax(Cursor node, std::int64_t hidden) {
  TESSERA_CHECK(node.only_keys({"kind", "query_heads", "kv_heads", "head_dim", "value_dim", "window", "chunk",
                                "output_gate", "head_gate", "bias", "output_bias", "query_key_norm",
                                "query_key_norm_wide", "sinks", "shared_value", "indexer"}));
  SoftmaxAttention out;
  TESSERA_TRY(out.query_heads, width(node, "query_heads"));
  TESSERA_TRY(out.kv_heads, node.integer_or("kv_heads", 1, max_width, out.query_heads));
  TESSERA_CHECK(divides(node, "kv_heads", out.kv_heads, "query_heads", out.query_heads));
  if (!node.present("head_dim"))
    TESSERA_CHECK(divides(node, "query_heads", out.query_heads, "hidden", hidden));
  TESSERA_TRY(out.head_dim,
              node.integer_or("head_dim", 1, max_width, std::max<std::int64_t>(hidden / out.query_heads, 1)));
  TESSERA_TRY(out.value_dim, node.integer_or("value_dim", 1, max_width, out.head_dim));
  TESSERA_TRY(out.window, width_or_zero(node, "window"));
  TESSERA_TRY(out.chunk, width_or_zero(node, "chunk"));
  TESSERA_TRY(out.output_gate, node.boolean_or("output_gate", false));
  TESSERA_TRY(out.head_gate, node.boolean_or("head_gate", false));
  TESSERA_TRY(out.bias, node.boolean_or("bias", false));
  TESSERA_TRY(out.output_bias, node.boolean_or("output_bias", false));
  TESSERA_TRY(out.query_key_norm, node.boolean_or("query_key_norm", false));
  TESSERA_TRY(out.query_key_norm_wide, node.boolean_or("query_key_norm_wide", false));
  TESSERA_TRY(out.sinks, node.boolean_or("sinks", false));
  TESSERA_TRY(out.shared_value, node.boolean_or("shared_value", false));
  TESSERA_TRY(out.indexer, read_indexer(node));
  return out;
}

Result<Mixer> read_latent(Cursor node, std::int64_t) {
  TESSERA_CHECK(node.only_keys({"kind", "heads", "query_rank", "kv_rank", "nope_dim", "rope_dim", "value_dim",
                                "output_gate", "indexer"}));
  LatentAttention out;
  TESSERA_TRY(out.heads, width(node, "heads"));
  TESSERA_TRY(out.query_rank, width_or_zero(node, "query_rank"));
  TESSERA_TRY(out.kv_rank, width(node, "kv_rank"));
  TESSERA_TRY(out.nope_dim, width(node, "nope_dim"));
  TESSERA_TRY(out.rope_dim, width_or_zero(node, "rope_dim"));
  TESSERA_TRY(out.value_dim, width(node, "value_dim"));
  TESSERA_TRY(out.output_gate, node.boolean_or("output_gate", false));
  TESSERA_TRY(out.indexer, read_indexer(node));
  return out;
}

Result<Mixer> read_compressed(Cursor node, std::int64_t) {
  TESSERA_CHECK(node.only_keys({"kind", "heads", "head_dim", "rope_dim", "query_rank", "output_rank",
                                "output_groups", "window", "ratio", "indexer"}));
  CompressedAttention out;
  TESSERA_TRY(out.heads, width(node, "heads"));
  TESSERA_TRY(out.head_dim, width(node, "head_dim"));
  TESSERA_TRY(out.rope_dim, width_or_zero(node, "rope_dim"));
  TESSERA_TRY(out.query_rank, width(node, "query_rank"));
  TESSERA_TRY(out.output_rank, width(node, "output_rank"));
  TESSERA_TRY(out.output_groups, width(node, "output_groups"));
  TESSERA_TRY(out.window, width(node, "window"));
  TESSERA_TRY(out.ratio, width_or_zero(node, "ratio"));
  TESSERA_TRY(out.indexer, read_indexer(node));
  TESSERA_CHECK(divides(node, "output_groups", out.output_groups, "heads", out.heads));
  if (out.indexer && out.ratio == 0)
    return node.find("indexer")->error("there is nothing to pick from: ratio is 0");
  return out;
}

Result<Mixer> read_delta_net(Cursor node, std::int64_t) {
  TESSERA_CHECK(node.only_keys({"kind", "key_heads", "value_heads", "key_dim", "value_dim", "convolution"}));
  GatedDeltaNet out;
  TESSERA_TRY(out.key_heads, width(node, "key_heads"));
  TESSERA_TRY(out.value_heads, width(node, "value_heads"));
  TESSERA_TRY(out.key_dim, width(node, "key_dim"));
  TESSERA_TRY(out.value_dim, width(node, "value_dim"));
  TESSERA_TRY(out.convolution, node.required_integer("convolution", 1, 1024));
  TESSERA_CHECK(divides(node, "key_heads", out.key_heads, "value_heads", out.value_heads));
  return out;
}

Result<Mixer> read_kimi_delta(Cursor node, std::int64_t) {
  TESSERA_CHECK(node.only_keys({"kind", "heads", "head_dim", "convolution", "full_rank_gate"}));
  KimiDelta out;
  TESSERA_TRY(out.heads, width(node, "heads"));
  TESSERA_TRY(out.head_dim, width(node, "head_dim"));
  TESSERA_TRY(out.convolution, node.required_integer("convolution", 1, 1024));
  TESSERA_TRY(out.full_rank_gate, node.boolean_or("full_rank_gate", false));
  return out;
}

Result<Mixer> read_mamba1(Cursor node, std::int64_t) {
  TESSERA_CHECK(node.only_keys({"kind", "inner", "state", "convolution", "time_rank"}));
  Mamba1 out;
  TESSERA_TRY(out.inner, width(node, "inner"));
  TESSERA_TRY(out.state, width(node, "state"));
  TESSERA_TRY(out.convolution, node.required_integer("convolution", 1, 1024));
  TESSERA_TRY(out.time_rank, width(node, "time_rank"));
  return out;
}

Result<Mixer> read_mamba2(Cursor node, std::int64_t) {
  TESSERA_CHECK(node.only_keys({"kind", "heads", "head_dim", "state", "groups", "convolution", "chunk"}));
  Mamba2 out;
  TESSERA_TRY(out.heads, width(node, "heads"));
  TESSERA_TRY(out.head_dim, width(node, "head_dim"));
  TESSERA_TRY(out.state, width(node, "state"));
  TESSERA_TRY(out.groups, width(node, "groups"));
  TESSERA_TRY(out.convolution, node.required_integer("convolution", 1, 1024));
  TESSERA_TRY(out.chunk, width(node, "chunk"));
  TESSERA_CHECK(divides(node, "groups", out.groups, "heads", out.heads));
  return out;
}

Result<Mixer> read_lightning(Cursor node, std::int64_t) {
  TESSERA_CHECK(node.only_keys({"kind", "heads", "head_dim"}));
  LightningAttention out;
  TESSERA_TRY(out.heads, width(node, "heads"));
  TESSERA_TRY(out.head_dim, width(node, "head_dim"));
  return out;
}

Result<Mixer> read_convolution(Cursor node, std::int64_t) {
  TESSERA_CHECK(node.only_keys({"kind", "kernel"}));
  ShortConvolution out;
  TESSERA_TRY(out.kernel, node.required_integer("kernel", 1, 1024));
  return out;
}

struct KindOfMixer {
  std::string_view name;
  Result<Mixer> (*read)(Cursor, std::int64_t);
};
constexpr std::array kinds{
    KindOfMixer{"softmax", read_softmax},
    KindOfMixer{"latent", read_latent},
    KindOfMixer{"compressed", read_compressed},
    KindOfMixer{"gated_delta_net", read_delta_net},
    KindOfMixer{"kimi_delta", read_kimi_delta},
    KindOfMixer{"mamba1", read_mamba1},
    KindOfMixer{"mamba2", read_mamba2},
    KindOfMixer{"lightning", read_lightning},
    KindOfMixer{"short_convolution", read_convolution},
};

}  // namespace

Result<Mixer> read_native_mixer(Cursor node, std::int64_t hidden) {
  TESSERA_TRY(const auto name, node.required_string("kind"));
  for (const KindOfMixer& kind : kinds)
    if (kind.name == name) return kind.read(node, hidden);
  std::vector<std::string> names;
  for (const KindOfMixer& kind : kinds) names.emplace_back(kind.name);
  return node.find("kind")->error(fmt::format("unknown mixer \"{}\"", name),
                                  fmt::format("Known are {}.", join_words(names)));
}

}  // namespace tessera::importing
