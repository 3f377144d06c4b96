// Where a rank gathers and drops the weights of its stages, and reduces their gradients.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/train/schedule/lowered_list.h"

namespace tessera::train {

/// The row with UNSHARD before a stage comes into the next `ahead` different stages, RESHARD when it has left
/// them, and REDUCE_GRAD behind its last of `microbatches` weight gradients.
[[nodiscard]] std::vector<Cell> with_sharding(std::span<const Action> row, std::int32_t microbatches,
                                              std::int32_t ahead);

}  // namespace tessera::train
