// Phrases about a model that several texts share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tessera/core/model/model_spec.h"
#include "tessera/train/schedule/partition.h"

namespace tessera::train {

/// How many layers of each kind, in order of first appearance.
[[nodiscard]] std::vector<std::pair<std::string, std::int64_t>> layers_by_kind(const ModelSpec& model);
/// "79.67 B".
[[nodiscard]] std::string billions(std::int64_t count);
/// Name, layers by kind, parameters: one line.
[[nodiscard]] std::string model_line(const ModelSpec& model);

/// "GE×3 AE": the blocks of a range, runs counted; "(empty)".
[[nodiscard]] std::string blocks_by_run(const ModelSpec& model, BlockRange range);
/// "layers 12–14", "layer 12", "the head", "the embedding", "MTP block 61 and the head".
[[nodiscard]] std::string blocks_by_number(const ModelSpec& model, BlockRange range);

}  // namespace tessera::train
