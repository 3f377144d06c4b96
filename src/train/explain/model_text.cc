#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model_words.h"
#include "tessera/core/base/text.h"
#include "tessera/core/model/count.h"
#include "tessera/train/explain/explain.h"

namespace tessera::train {

std::string model_text(const ModelSpec& model, const TextStyle&) {
  const ModelParameters parameters = count_parameters(model);
  const ParameterCount& count = parameters.model;
  std::string out = model_line(model) + "\n";
  out += fmt::format("  family {}, hidden {}, vocabulary {}, embeddings {}\n", model.family,
                     with_thousands(model.hidden), with_thousands(model.vocabulary),
                     model.tied_embeddings ? "tied" : "untied");
  out += fmt::format("  pattern {}\n", layer_pattern(model));
  const std::pair<std::string_view, std::int64_t> rows[] = {{"embedding", count.embedding},
                                                            {"head", count.head},
                                                            {"mixers", count.mixer},
                                                            {"dense feed-forward", count.dense},
                                                            {"routed experts", count.routed},
                                                            {"shared experts", count.shared},
                                                            {"routers", count.router},
                                                            {"latent projections", count.latent},
                                                            {"norms", count.norms}};
  for (const auto& [label, value] : rows)
    if (value != 0) out += fmt::format("  {:<20} {:>20}\n", label, with_thousands(value));
  out += fmt::format("  {:<20} {:>20}\n", "total", with_thousands(count.total()));
  out += fmt::format("  {:<20} {:>20}\n", "active per token", with_thousands(count.active()));
  if (model.mtp_blocks() > 0)
    out += fmt::format("  {:<20} {:>20}   not in the total\n", "MTP", with_thousands(parameters.mtp.total()));
  for (const std::string& note : model.notes) out += "  note: " + note + "\n";
  return out;
}

std::string model_json(const ModelSpec& model) {
  const ModelParameters parameters = count_parameters(model);
  nlohmann::ordered_json out{{"name", model.name},
                             {"family", model.family},
                             {"layers", model.layers()},
                             {"mtp", model.mtp_blocks()},
                             {"hidden", model.hidden},
                             {"vocabulary", model.vocabulary},
                             {"tied_embeddings", model.tied_embeddings},
                             {"pattern", layer_pattern(model)}};
  nlohmann::ordered_json kinds = nlohmann::ordered_json::object();
  for (const auto& [kind, number] : layers_by_kind(model)) kinds[kind] = number;
  out["layers_by_kind"] = kinds;
  out["parameters"] = {{"total", parameters.model.total()},
                       {"routed", parameters.model.routed},
                       {"active", parameters.model.active()},
                       {"mtp", parameters.mtp.total()}};
  out["notes"] = model.notes;
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tessera::train
