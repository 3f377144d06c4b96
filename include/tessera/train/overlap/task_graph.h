// The tasks of one chunk, and of a forward and a backward chunk that run together.
//
// A chunk is a chain (the backbone) plus leaves: weight gradients, and shared experts that run beside the
// dispatch and must be done before the combine (forward) or the attention (backward).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/core/base/ids.h"
#include "tessera/core/base/units.h"
#include "tessera/core/cost/block_cost.h"
#include "tessera/core/cost/task.h"

namespace tessera::train {

struct Task {
  TaskName name;
  Resource resource = Resource::comp;
  Seconds duration;
  double compute_share = 1.0;  ///< see TaskCost
  double host_share = 0.0;     ///< see TaskCost: no interference slows this part
  bool movable = false;        ///< W: may run any time after its release
  bool leaf = false;           ///< beside the chain: W, and what must be done before a task of the chain
  std::vector<TaskId> after;   ///< must have finished before this starts
};

struct TaskGraph {
  std::vector<Task> tasks;  ///< in a topological order
  std::int32_t forward_tasks =
      0;  ///< the first so many are the forward chunk's; the rest the backward chunk's
  [[nodiscard]] Seconds load(Resource resource) const noexcept;
};

/// A block as a chunk sees it.
struct ChunkBlock {
  const BlockCost* cost = nullptr;
  std::int32_t layer = -1;  ///< for the task names; −1 for embedding and head
};

enum class Backward : std::uint8_t { full, input_gradient, weight_gradient };

/// Blocks in model order. Zero-length tasks of the kinds a block has are kept; an empty chunk has no task.
[[nodiscard]] TaskGraph forward_chunk(std::span<const ChunkBlock> blocks);
[[nodiscard]] TaskGraph backward_chunk(std::span<const ChunkBlock> blocks, Backward part = Backward::full);
/// Both side by side, no edge between them.
[[nodiscard]] TaskGraph pair_graph(const TaskGraph& forward, const TaskGraph& backward);

}  // namespace tessera::train
