// The native model format of docs/model-file.md.
#pragma once

#include <string>

#include "tessera/core/base/document.h"
#include "tessera/core/base/result.h"
#include "tessera/core/model/model_spec.h"

namespace tessera::importing {

[[nodiscard]] Result<ModelSpec> import_native(Cursor root, std::string name);

}  // namespace tessera::importing
