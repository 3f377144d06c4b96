// Profile cells as text: what `tessera profile add` reads and `tessera profile list --json` prints.
//
//   - mesh: "gpu=H100 …"            the four strings of the key
//     pair: "F[…] B[…] …"
//     schedule: 0123456789abcdef
//     software: "graphs=none …"
//     source: chunk_pair            theory, primitive or chunk_pair; chunk_pair when left out
//     median_ms: 31.4               milliseconds, above 0
//     spread: 0.004                 relative; 0 when left out
//     count: 50                     repetitions; 1 when left out, 0 for theory
//     error: 0.01                   relative, below 1; default_error() when left out
//
// A list of these in JSON or YAML, or a map whose key `cells` holds the list. docs/profile.md has more.
#pragma once

#include <vector>

#include "tessera/core/base/document.h"
#include "tessera/core/base/result.h"
#include "tessera/core/cost/profile_database.h"

namespace tessera {

/// Errors have file, line and key: an unknown key, a value out of range, a cell given twice, an empty list.
[[nodiscard]] Result<std::vector<ProfileCell>> read_profile_cells(Cursor root);

}  // namespace tessera
