// Bytes a block keeps alive on one rank, and what a rank holds for all of its blocks.
#pragma once

#include "pricing.h"

namespace tessera::pricing {

[[nodiscard]] BlockMemory block_memory(const Context& context, const Block& block);

}  // namespace tessera::pricing
