// Phrases about a model that several texts share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tessera/core/model/model_spec.h"

namespace tessera::train {

/// How many layers of each kind, in order of first appearance.
[[nodiscard]] std::vector<std::pair<std::string, std::int64_t>> layers_by_kind(const ModelSpec& model);
/// "79.67 B".
[[nodiscard]] std::string billions(std::int64_t count);
/// Name, layers by kind, parameters: one line.
[[nodiscard]] std::string model_line(const ModelSpec& model);

}  // namespace tessera::train
