// Reads a model description: a Hugging Face config.json of a known family, or the house's native YAML
// (docs/model-file.md).
//
// Families are told apart by `model_type`, and each reads its own keys only. A key that contradicts another,
// a missing one, an unknown family or layer kind is an error naming file, line and key. What had to be
// decided (an MTP tail in a layer list, 1-based layer lists, a family's default for an absent key) is said in
// ModelSpec::notes. Bounds: at most 4,096 layers, 65,536 experts, widths up to 2^24 and 10^18 parameters, so
// a hostile file can neither make the reader allocate without end nor overflow a count.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tessera/core/base/document.h"
#include "tessera/core/base/result.h"
#include "tessera/core/model/model_spec.h"

namespace tessera {

/// From a parsed config.json (also one whose language model stands under `text_config`) or native YAML,
/// told apart by the key `layers` of native files. `name` is for display.
[[nodiscard]] Result<ModelSpec> import_model(Cursor root, std::string name);

/// From a file: .json is a config.json, .yaml either. The name is the file's stem.
[[nodiscard]] Result<ModelSpec> import_model_file(const std::string& path);

/// The families `import_model` knows, sorted.
[[nodiscard]] std::span<const std::string_view> known_families() noexcept;

}  // namespace tessera
