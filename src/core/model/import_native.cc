#include "import_native.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "import_draft.h"
#include "native_mixer.h"
#include "tessera/core/base/text.h"

namespace tessera::importing {

namespace {

Result<DenseFeedForward> read_dense(Cursor node) {
  TESSERA_CHECK(node.only_keys({"width", "gated"}));
  DenseFeedForward out;
  TESSERA_TRY(out.width, width(node, "width"));
  TESSERA_TRY(out.gated, node.boolean_or("gated", true));
  return out;
}

Result<MixtureOfExperts> read_moe(Cursor node) {
  TESSERA_CHECK(node.only_keys({"experts", "top_k", "expert_width", "shared_width", "latent", "gated",
                                "shared_gate", "bias", "score_correction", "groups", "top_groups"}));
  MixtureOfExperts out;
  TESSERA_TRY(out.experts, node.required_integer("experts", 1, max_experts));
  TESSERA_TRY(out.top_k, node.required_integer("top_k", 1, max_experts));
  TESSERA_TRY(out.expert_width, width(node, "expert_width"));
  TESSERA_TRY(out.shared_width, width_or_zero(node, "shared_width"));
  TESSERA_TRY(out.latent, width_or_zero(node, "latent"));
  TESSERA_TRY(out.gated, node.boolean_or("gated", true));
  TESSERA_TRY(out.shared_gate, node.boolean_or("shared_gate", false));
  TESSERA_TRY(out.bias, node.boolean_or("bias", false));
  TESSERA_TRY(out.score_correction, node.boolean_or("score_correction", false));
  TESSERA_TRY(out.groups, node.integer_or("groups", 0, max_experts, 0));
  TESSERA_TRY(out.top_groups, node.integer_or("top_groups", 0, max_experts, 0));
  if (out.top_k > out.experts)
    return node.find("top_k")->error(
        fmt::format("{} experts per token, but experts = {}", out.top_k, out.experts));
  if (out.groups > 0 && out.experts % out.groups != 0)
    return node.find("groups")->error(
        fmt::format("{} does not divide experts = {}", out.groups, out.experts));
  if (out.top_groups > out.groups)
    return node.find("top_groups")->error(fmt::format("{} is above groups = {}", out.top_groups, out.groups));
  if (out.shared_gate && out.shared_width == 0)
    return node.find("shared_gate")->error("there is no shared expert to gate: shared_width is 0");
  return out;
}

// The layers under `layers` and `mtp`, with the named ones of `kinds`.
class LayerReader {
 public:
  LayerReader(std::optional<Cursor> kinds, std::int64_t hidden) : kinds_(kinds), hidden_(hidden) {}

  // Kinds that no layer uses are checked too.
  Status check_kinds() const {
    if (!kinds_) return {};
    if (!kinds_->is_map())
      return kinds_->error(fmt::format("expected a map of named layers, found {}", describe(kinds_->kind())));
    for (std::size_t i = 0; i < kinds_->size(); ++i) {
      TESSERA_CHECK(kinds_->item(i).only_keys({"mixer", "dense", "moe"}));
      TESSERA_TRY(const Layer unused, layer(kinds_->item(i)));
      static_cast<void>(unused);
    }
    return {};
  }

  Status read(Cursor list, std::vector<Layer>& out, int depth = 0) const {
    if (!list.is_list())
      return list.error(fmt::format("expected a list of layers, found {}", describe(list.kind())));
    for (std::size_t i = 0; i < list.size(); ++i) TESSERA_CHECK(entry(list.item(i), out, depth));
    return {};
  }

 private:
  // A name, a layer, or a group of layers; the latter two perhaps repeated.
  Status entry(Cursor node, std::vector<Layer>& out, int depth) const {
    if (node.is_string()) {
      TESSERA_TRY(const Layer named, by_name(node));
      return append(node, {named}, 1, out);
    }
    TESSERA_CHECK(node.only_keys({"mixer", "dense", "moe", "repeat", "layers"}));
    TESSERA_TRY(const auto times, node.integer_or("repeat", 1, max_layers, 1));
    std::vector<Layer> part;
    if (const auto group = node.find("layers")) {
      for (const std::string_view key : {"mixer", "dense", "moe"}) {
        if (node.find(key))
          return node.find(key)->error("a group of layers has only the keys layers and repeat");
      }
      if (depth >= 8) return group->error("groups are nested more than 8 deep");
      TESSERA_CHECK(read(*group, part, depth + 1));
    } else {
      TESSERA_TRY(const Layer one, layer(node));
      part.push_back(one);
    }
    return append(node, part, times, out);
  }

  static Status append(Cursor node, const std::vector<Layer>& part, std::int64_t times,
                       std::vector<Layer>& out) {
    const auto added = static_cast<std::int64_t>(part.size()) * times;
    if (static_cast<std::int64_t>(out.size()) + added > max_layers)
      return node.error(fmt::format("more than {} layers", max_layers));
    for (std::int64_t i = 0; i < times; ++i) out.insert(out.end(), part.begin(), part.end());
    return {};
  }

  Result<Layer> by_name(Cursor node) const {
    TESSERA_TRY(const auto name, node.string());
    if (const auto found = kinds_ ? kinds_->find(name) : std::nullopt) return layer(*found);
    std::vector<std::string> names;
    for (std::size_t i = 0; kinds_ && i < kinds_->size(); ++i) names.emplace_back(kinds_->key(i));
    return node.error(fmt::format("no layer is named \"{}\"", name),
                      names.empty() ? "Named layers stand under the key kinds."
                                    : fmt::format("kinds names {}.", join_words(names)));
  }

  Result<Layer> layer(Cursor node) const {
    if (!node.is_map())
      return node.error(
          fmt::format("expected a layer (a map) or the name of one, found {}", describe(node.kind())));
    Layer out;
    if (const auto mixer = node.present("mixer")) {
      TESSERA_TRY(out.mixer, read_native_mixer(*mixer, hidden_));
    }
    if (const auto dense = node.present("dense")) {
      TESSERA_TRY(out.dense, read_dense(*dense));
    }
    if (const auto moe = node.present("moe")) {
      TESSERA_TRY(out.moe, read_moe(*moe));
    }
    if (out == Layer{})
      return node.error("an empty layer; expected a mixer, a dense part, a moe part, or several of them");
    return out;
  }

  std::optional<Cursor> kinds_;
  std::int64_t hidden_;
};

}  // namespace

Result<ModelSpec> import_native(Cursor root, std::string name) {
  TESSERA_CHECK(root.only_keys({"name", "hidden", "vocabulary", "tied_embeddings", "norm_bias",
                                "norms_per_sublayer", "residual_streams", "kinds", "layers", "mtp"}));
  Draft draft{.keys = root};
  TESSERA_TRY(name, root.string_or("name", std::move(name)));
  TESSERA_TRY(draft.hidden, width(root, "hidden"));
  TESSERA_TRY(draft.vocabulary, width(root, "vocabulary"));
  TESSERA_TRY(draft.tied, root.boolean_or("tied_embeddings", false));
  TESSERA_TRY(const bool norm_bias, root.boolean_or("norm_bias", false));
  draft.norm_parameters_per_hidden = norm_bias ? 2 : 1;
  TESSERA_TRY(draft.norms_per_sublayer, root.integer_or("norms_per_sublayer", 1, 2, 1));
  TESSERA_TRY(draft.residual_streams, root.integer_or("residual_streams", 1, 64, 1));
  const LayerReader reader(root.present("kinds"), draft.hidden);
  TESSERA_CHECK(reader.check_kinds());
  TESSERA_TRY(const Cursor layers, root.required_list("layers"));
  TESSERA_CHECK(reader.read(layers, draft.layers));
  if (draft.layers.empty()) return layers.error("a model has at least one layer");
  draft.layer_count = static_cast<std::int64_t>(draft.layers.size());
  if (const auto mtp = root.present("mtp")) {
    std::vector<Layer> blocks;
    TESSERA_CHECK(reader.read(*mtp, blocks));
    if (blocks.size() > 64)
      return mtp->error(fmt::format("{} MTP blocks; at most 64 are read", blocks.size()));
    draft.mtp_count = static_cast<std::int64_t>(blocks.size());
    draft.layers.insert(draft.layers.end(), blocks.begin(), blocks.end());
  }
  return assemble(std::move(draft), std::move(name), "native");
}

}  // namespace tessera::importing
