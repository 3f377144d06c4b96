// Memory in messages.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "tessera/core/base/units.h"

namespace tessera::train {

/// "81.2 GiB of its 77.6 GiB<words> (3.60 GiB too many)"; small amounts in bytes.
[[nodiscard]] inline std::string need_text(Bytes need, Bytes budget, std::string_view words = "") {
  if (need.value() < 1024.0 * 1024 * 1024)
    return fmt::format("{:.0f} of its {:.0f} bytes{} ({:.0f} too many)", need.value(), budget.value(), words,
                       (need - budget).value());
  return fmt::format("{:.1f} GiB of its {:.1f} GiB{} ({:.2f} GiB too many)", gibibytes(need),
                     gibibytes(budget), words, gibibytes(need - budget));
}

}  // namespace tessera::train
