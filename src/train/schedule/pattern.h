// Building blocks: the steps of one microbatch, placed so that the same block can start again and again, one
// period later each time, without two steps of a rank at the same moment. How long a block keeps an
// activation decides the memory. The method of "Pipeline Parallelism with Controllable Memory",
// arXiv:2405.15362.
#pragma once

#include <array>

#include "flexible_order.h"

namespace tessera::train {

/// Slots to wait, beyond the step itself. A forward or input gradient takes one slot, a whole backward two;
/// the period is a chunk's three slots times the chunks.
struct Pattern {
  std::array<std::int32_t, 4> hop;   ///< from rank to rank: forward down and back, gradient down and back
  std::array<std::int32_t, 3> turn;  ///< between these four
};

/// Two chunks in a V, block after block.
[[nodiscard]] Order pattern_order(const FlexibleProblem& problem, const Pattern& pattern);

/// One chunk: a rank r begins with 1 + slope · (ranks − 1 − r) forwards, at most most_live, then takes turns.
[[nodiscard]] Order one_chunk_order(const FlexibleProblem& problem, double slope);

/// Two chunks in a V, one microbatch after another: slow, but no other order holds less.
[[nodiscard]] Order serial_order(const FlexibleProblem& problem);

}  // namespace tessera::train
