// The body of a target whose inputs are YAML files: parse, read, use what was accepted, and hold every error
// to having a message and a place.
#pragma once

#include <cstdlib>
#include <string_view>

#include "fuzz/mutate.h"
#include "fuzz/tally.h"
#include "tessera/core/base/document.h"

namespace tessera::fuzzing {

/// `reaches(root)`: is the frame there, so that a reader comes to its checks of meaning? `read(document)`
/// gives a Result, and `use(value)` is called with what it accepts.
template <class Reaches, class Read, class Use>
int run_yaml(Tally& tally, const std::uint8_t* data, std::size_t size, Reaches&& reaches, Read&& read,
             Use&& use) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ++tally.mutants;
  const auto document = Document::parse(text, "mutant.yaml", DocumentFormat::yaml);
  if (!document) return 0;
  ++tally.parsed;
  if (reaches(document->root())) ++tally.reached;
  const auto value = read(*document);
  if (value)
    use(*value);
  else if (value.error().message.empty() || value.error().file.empty())
    std::abort();
  return 0;
}

}  // namespace tessera::fuzzing
