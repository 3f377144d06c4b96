// Which blocks each virtual stage holds: a cover of all blocks, in order, exactly once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/core/base/ids.h"
#include "tessera/core/base/result.h"
#include "tessera/core/model/model_spec.h"

namespace tessera::train {

struct BlockRange {
  std::int32_t begin = 0;  ///< first ModelSpec block
  std::int32_t end = 0;    ///< one past the last; begin = end is an empty stage
  bool operator==(const BlockRange&) const = default;
};

struct Partition {
  std::vector<BlockRange> stages;  ///< in model order
  bool operator==(const Partition&) const = default;
};

/// Embedding in the first stage, head in the last, every block once and in order; else an infeasible error
/// with the missing or doubled layers.
[[nodiscard]] Status check_partition(const ModelSpec& model, const Partition& partition);

}  // namespace tessera::train
