// Model descriptions, config.json and native, from any bytes: an error or a model that can be counted.
#include <algorithm>
#include <cstdlib>

#include "fuzz/mutate.h"
#include "fuzz/tally.h"
#include "tessera/core/model/count.h"
#include "tessera/core/model/import.h"

namespace {

using namespace tessera;

fuzzing::Tally tally("config");

bool reaches_the_checks(Cursor root) {
  if (!root.is_map()) return false;
  if (root.find("layers") && !root.find("model_type")) return true;
  const auto inner = root.present("text_config");
  const Cursor config = inner && inner->present("model_type") ? *inner : root;
  const auto type = config.required_string("model_type");
  return type && std::ranges::find(known_families(), std::string_view(*type)) != known_families().end();
}

// What every accepted model must bear.
void use(const ModelSpec& model) {
  const ModelParameters count = count_parameters(model);
  if (count.model.total() <= 0 || count.model.active() > count.model.total() || count.model.matrices() < 0)
    std::abort();
  if (!(training_flops_per_token(model, 4096).value() >= 0)) std::abort();
  if (layer_pattern(model).empty()) std::abort();
  if (model.blocks.size() != static_cast<std::size_t>(model.layers() + model.mtp_blocks() + 2)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ++tally.mutants;
  const auto format =
      text.starts_with('{') || text.starts_with('[') ? DocumentFormat::json : DocumentFormat::yaml;
  const auto document = Document::parse(text, "mutant", format);
  if (!document) {
    if (document.error().text().empty()) std::abort();
    return 0;
  }
  ++tally.parsed;
  if (reaches_the_checks(document->root())) ++tally.reached;
  const auto model = import_model(document->root(), "mutant");
  if (model) {
    ++tally.accepted;
    use(*model);
  } else if (model.error().message.empty() || model.error().file.empty() ||
             (model.error().line < 1 && document->root().is_map())) {
    std::abort();  // an error without a place helps nobody; an empty file has no line
  }
  return 0;
}
