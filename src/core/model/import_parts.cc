// Attention and experts under the keys that several families share.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "import_draft.h"
#include "tessera/core/base/text.h"

namespace tessera::importing {

namespace {

constexpr std::array<std::string_view, 4> expert_names{"num_experts", "n_routed_experts", "num_local_experts",
                                                       "moe_num_experts"};
// `top_k` alone is none of them: there it is a setting of text sampling (Kimi-K2.5 and K3 have top_k = 50).
constexpr std::array<std::string_view, 5> top_k_names{"num_experts_per_tok", "num_experts_per_token",
                                                      "experts_per_token", "top_k_experts", "moe_top_k"};

std::string listed(std::span<const std::string_view> names) {
  const std::vector<std::string> words(names.begin(), names.end());
  return join_words(words, "or");
}

// The keys a person might have meant: their name speaks of experts and their value could be a number of them.
std::string look_alikes(Cursor keys) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < keys.size() && found.size() < 12; ++i) {
    std::string name(keys.key(i));
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (name.find("expert") == std::string::npos) continue;
    if (std::ranges::find(expert_names, keys.key(i)) != expert_names.end() && !keys.item(i).is_null())
      continue;
    if (std::ranges::find(top_k_names, keys.key(i)) != top_k_names.end() && !keys.item(i).is_null()) continue;
    const Cursor value = keys.item(i);
    if (value.is_integer()) {
      found.push_back(fmt::format("{} = {}", keys.key(i), *value.scalar_text()));
    } else if (value.is_list()) {
      found.push_back(fmt::format("{} (a list of {})", keys.key(i), value.size()));
    } else if (value.is_null()) {
      found.push_back(fmt::format("{} = null", keys.key(i)));
    }
  }
  if (found.empty()) return "No key here looks like one.";
  return fmt::format("Keys here that look like one: {}.", join_words(found));
}

Result<Cursor> required_one_of(Draft& draft, std::span<const std::string_view> names, std::string_view what) {
  TESSERA_TRY(const auto found, one_of(draft.keys, names));
  if (found) return *found;
  return draft.keys.error(fmt::format("no {}: none of {} is given", what, listed(names)),
                          look_alikes(draft.keys));
}

}  // namespace

Result<SoftmaxAttention> read_softmax(Draft& draft, const SoftmaxKeys& names) {
  return read_softmax(draft, draft.keys, names);
}

Result<SoftmaxAttention> read_softmax(Draft& draft, Cursor keys, const SoftmaxKeys& names) {
  SoftmaxAttention out;
  TESSERA_TRY(out.query_heads, width(keys, names.heads));
  if (const auto kv = keys.present(names.kv_heads)) {
    TESSERA_TRY(out.kv_heads, kv->integer(1, max_width));
    if (out.query_heads % out.kv_heads != 0)
      return kv->error(fmt::format("{} does not divide {} = {}", out.kv_heads, names.heads, out.query_heads),
                       "Every key head serves the same number of query heads.");
  } else {
    out.kv_heads = out.query_heads;
    draft.note(fmt::format("{} is absent; every query head has its own key head.", names.kv_heads));
  }
  if (const auto dim = keys.present(names.head_dim)) {
    TESSERA_TRY(out.head_dim, dim->integer(1, max_width));
  } else {
    if (draft.hidden % out.query_heads != 0)
      return keys.error(fmt::format("{} is absent, and {} = {} does not divide hidden_size = {}",
                                    names.head_dim, names.heads, out.query_heads, draft.hidden));
    out.head_dim = draft.hidden / out.query_heads;
  }
  out.value_dim = out.head_dim;
  if (!names.value_dim.empty()) {
    TESSERA_TRY(out.value_dim, keys.integer_or(names.value_dim, 1, max_width, out.head_dim));
  }
  return out;
}

Result<LatentAttention> read_latent(Draft& draft) {
  LatentAttention out;
  TESSERA_TRY(out.heads, width(draft.keys, "num_attention_heads"));
  TESSERA_TRY(out.query_rank, width_or_zero(draft.keys, "q_lora_rank"));
  TESSERA_TRY(out.kv_rank, width(draft.keys, "kv_lora_rank"));
  TESSERA_TRY(out.nope_dim, width(draft.keys, "qk_nope_head_dim"));
  TESSERA_TRY(out.rope_dim, width(draft.keys, "qk_rope_head_dim"));
  TESSERA_TRY(out.value_dim, width(draft.keys, "v_head_dim"));
  return out;
}

Result<Experts> read_experts(Draft& draft, std::string_view width_key) {
  TESSERA_TRY(const Cursor count, required_one_of(draft, expert_names, "number of routed experts"));
  TESSERA_TRY(const Cursor top_k, required_one_of(draft, top_k_names, "number of experts per token"));
  TESSERA_TRY(const Cursor wide, draft.keys.required(width_key));
  Experts out{.count_at = count, .top_k_at = top_k};
  TESSERA_TRY(out.count, per_layer(draft, count, 0, max_experts));
  TESSERA_TRY(out.top_k, per_layer(draft, top_k, 0, max_experts));
  TESSERA_TRY(out.width, per_layer(draft, wide, 1, max_width));
  return out;
}

Result<MixtureOfExperts> experts_of(const Experts& experts, std::size_t layer, MixtureOfExperts common) {
  const auto at = [layer](Cursor value) {
    return value.is_list() && layer < value.size() ? value.item(layer) : value;
  };
  common.experts = experts.count[layer];
  common.top_k = experts.top_k[layer];
  common.expert_width = experts.width[layer];
  if (common.experts == 0)
    return at(experts.count_at).error(fmt::format("0 experts, but layer {} is a MoE layer", layer));
  if (common.top_k == 0)
    return at(experts.top_k_at).error(fmt::format("0 experts per token, but layer {} is a MoE layer", layer));
  if (common.top_k > common.experts)
    return at(experts.top_k_at)
        .error(fmt::format("{} experts per token, but layer {} has {}", common.top_k, layer, common.experts));
  if (common.groups > 0 && common.experts % common.groups != 0)
    return at(experts.count_at)
        .error(fmt::format("{} experts of layer {} do not split into {} groups", common.experts, layer,
                           common.groups));
  return common;
}

Status feed_forward(Draft& draft, std::size_t index, const std::vector<bool>& sparse,
                    const std::optional<Experts>& experts, const MixtureOfExperts& common,
                    std::string_view dense_key, Layer& layer) {
  if (sparse[index]) {
    TESSERA_TRY(layer.moe, experts_of(*experts, index, common));
  } else {
    TESSERA_TRY(const auto dense, width(draft.keys, dense_key));
    layer.dense = DenseFeedForward{.width = dense};
  }
  return {};
}

Result<std::int64_t> shared_width(Draft& draft, std::string_view count_key, std::string_view width_key) {
  TESSERA_TRY(const auto count, draft.keys.integer_or(count_key, 0, 4096, 0));
  if (count == 0) return std::int64_t{0};
  TESSERA_TRY(const auto one, width(draft.keys, width_key));
  return count * one;
}

Result<std::optional<Experts>> read_deepseek_experts(Draft& draft, const std::vector<bool>& sparse,
                                                     MixtureOfExperts& common) {
  if (!any(sparse)) return std::nullopt;
  TESSERA_TRY(common.shared_width, shared_width(draft, "n_shared_experts", "moe_intermediate_size"));
  TESSERA_CHECK(read_groups(draft, "n_group", common));
  TESSERA_TRY(Experts experts, read_experts(draft));
  return experts;
}

Status read_groups(Draft& draft, std::string_view groups_key, MixtureOfExperts& moe) {
  TESSERA_TRY(const auto groups, draft.keys.integer_or(groups_key, 0, max_experts, 0));
  if (groups <= 1) return {};
  TESSERA_TRY(moe.top_groups, draft.keys.required_integer("topk_group", 1, max_experts));
  if (moe.top_groups > groups)
    return draft.keys.find("topk_group")
        ->error(fmt::format("{} groups per token, but {} = {}", moe.top_groups, groups_key, groups));
  moe.groups = groups;
  return {};
}

}  // namespace tessera::importing
