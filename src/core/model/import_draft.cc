#include "import_draft.h"

#include <fmt/format.h>

#include <algorithm>

#include "parameter_formulas.h"

namespace tessera::importing {

namespace {

// An upper bound of the parameters, in floating point, which cannot overflow.
double rough_parameters(const Draft& draft) {
  const auto h = static_cast<double>(draft.hidden);
  double out =
      2 * h * static_cast<double>(draft.vocabulary) + 2 * h * h * static_cast<double>(draft.mtp_count);
  for (const Layer& layer : draft.layers) {
    out += formulas::mixer<double>(layer.mixer, h).total();
    if (layer.dense) out += formulas::dense<double>(*layer.dense, h).total();
    if (layer.moe) {
      const auto moe = formulas::moe<double>(*layer.moe, h);
      out += moe.one_expert.total() * static_cast<double>(layer.moe->experts) + moe.router.total() +
             moe.shared.total() + moe.latent.total();
    }
    if (draft.residual_streams > 1)
      out += 2 * formulas::hyper_connection<double>(static_cast<double>(draft.residual_streams), h).total();
    out += 16 * h;  // norms
  }
  return out;
}

std::int32_t type_of(std::vector<Layer>& types, const Layer& layer) {
  const auto found = std::ranges::find(types, layer);
  if (found != types.end()) return static_cast<std::int32_t>(found - types.begin());
  types.push_back(layer);
  return static_cast<std::int32_t>(types.size() - 1);
}

}  // namespace

void Draft::note(std::string sentence) {
  if (std::ranges::find(notes, sentence) == notes.end()) notes.push_back(std::move(sentence));
}

Result<ModelSpec> assemble(Draft draft, std::string name, std::string family) {
  constexpr double limit = 1e18;
  if (const double size = rough_parameters(draft); size > limit)
    return draft.keys.error(
        fmt::format("the model has about {:.1e} parameters; at most {:.0e} can be planned", size, limit));
  ModelSpec model;
  model.name = std::move(name);
  model.family = std::move(family);
  model.hidden = draft.hidden;
  model.vocabulary = draft.vocabulary;
  model.tied_embeddings = draft.tied;
  model.residual_streams = draft.residual_streams;
  model.norm_parameters_per_hidden = draft.norm_parameters_per_hidden;
  model.norms_per_sublayer = draft.norms_per_sublayer;
  model.notes = std::move(draft.notes);
  model.blocks.push_back({.kind = BlockKind::embedding});
  for (std::size_t i = 0; i < draft.layers.size(); ++i)
    model.blocks.push_back(
        {.kind = static_cast<std::int64_t>(i) < draft.layer_count ? BlockKind::layer : BlockKind::mtp,
         .layer = static_cast<std::int32_t>(i),
         .type = type_of(model.layer_types, draft.layers[i])});
  model.blocks.push_back({.kind = BlockKind::head});
  return model;
}

Result<std::int64_t> width(Cursor keys, std::string_view key) {
  return keys.required_integer(key, 1, max_width);
}

Result<std::int64_t> width_or_zero(Cursor keys, std::string_view key) {
  return keys.integer_or(key, 0, max_width, 0);
}

Status read_widths(Draft& draft, bool tied_by_default) {
  TESSERA_TRY(draft.hidden, width(draft.keys, "hidden_size"));
  TESSERA_TRY(draft.vocabulary, width(draft.keys, "vocab_size"));
  constexpr std::string_view key = "tie_word_embeddings";
  const auto inner = draft.keys.present(key);
  const auto outer = draft.wrapper ? draft.wrapper->present(key) : std::nullopt;
  if (const auto decides = outer ? outer : inner) {
    TESSERA_TRY(draft.tied, decides->boolean());
    if (outer && inner) {
      TESSERA_TRY(const bool nested, inner->boolean());
      if (nested != draft.tied)
        draft.note(
            fmt::format("{} differs inside text_config; the outer value, {}, holds.", key, draft.tied));
    }
  } else {
    draft.tied = tied_by_default;
    draft.note(fmt::format("{} is absent; this family's default, {}, is used.", key, tied_by_default));
  }
  return {};
}

Status read_layer_count(Draft& draft) {
  TESSERA_TRY(draft.layer_count, draft.keys.required_integer("num_hidden_layers", 1, max_layers));
  return {};
}

Status read_mtp_count(Draft& draft, std::string_view key) {
  TESSERA_TRY(draft.mtp_count, draft.keys.integer_or(key, 0, 64, 0));
  return {};
}

Status read_frame(Draft& draft, bool tied_by_default, std::string_view mtp_key) {
  TESSERA_CHECK(read_widths(draft, tied_by_default));
  TESSERA_CHECK(read_layer_count(draft));
  return read_mtp_count(draft, mtp_key);
}

Status build_layers(Draft& draft, const std::function<Status(std::size_t, Layer&)>& make) {
  draft.layers.assign(static_cast<std::size_t>(draft.all()), Layer{});
  for (std::size_t i = 0; i < draft.layers.size(); ++i) TESSERA_CHECK(make(i, draft.layers[i]));
  return {};
}

bool any(const std::vector<bool>& flags) {
  return std::ranges::find(flags, true) != flags.end();
}

}  // namespace tessera::importing
