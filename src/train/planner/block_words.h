// A block as the pair key names it: its kind and every width that its time depends on.
#pragma once

#include <string>

#include "tessera/core/model/model_spec.h"

namespace tessera::train {

/// "gdn(key_heads=16,…)+moe(experts=512,…)", "embedding(vocabulary=151936)", "mtp:…".
[[nodiscard]] std::string block_words(const ModelSpec& model, const Block& block);

}  // namespace tessera::train
