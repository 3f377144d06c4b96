// The tasks of one chunk, and of a forward and a backward chunk that run together.
//
// A chunk is a chain (the backbone) plus leaves: weight gradients; shared experts that run beside the
// dispatch and must be done before the combine (forward) or the attention (backward); and recompute, which
// must be done before the B task that reads it.
//
// Recompute could start as soon as the backward does. Here it may start when the last compute task of the
// chain before its B is done (at once, if there is none): early enough to fill the communication in between,
// and so late that only what one sublayer brings back (a whole layer where all of it is computed again) ever
// waits for its B.
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
  bool leaf = false;           ///< beside the chain: W, R, and the shared expert beside the dispatch
  std::vector<TaskId> after;   ///< must have finished before this starts; names every leaf among them, also
                               ///< those that another one of them needs
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
