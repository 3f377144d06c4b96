// What comes and goes inside an action: the logits of a chunk's heads, and the dispatch buffers of a pair's
// forward.
#pragma once

#include <span>
#include <vector>

#include "action_timing.h"
#include "tessera/train/execution_plan/execution_plan.h"

namespace tessera::train {

struct MemoryChange {
  Seconds time;  ///< from the action's start
  Bytes by;
};

/// In order of time; at one instant what goes is before what comes. `tasks` are the action's.
[[nodiscard]] std::vector<MemoryChange> inner_changes(const ExecutionPlan& plan, const Action& action,
                                                      std::span<const TaskTiming> tasks);

}  // namespace tessera::train
