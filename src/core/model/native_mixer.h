// The mixers of the native model format.
#pragma once

#include "tessera/core/base/document.h"
#include "tessera/core/base/result.h"
#include "tessera/core/model/model_spec.h"

namespace tessera::importing {

/// A map with `kind` and the fields of that kind, named as in model_spec.h.
[[nodiscard]] Result<Mixer> read_native_mixer(Cursor node, std::int64_t hidden);

}  // namespace tessera::importing
