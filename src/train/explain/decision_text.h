// What the planner decided, and why, in sentences.
#pragma once

#include <string>

#include "tessera/train/planner/plan.h"

namespace tessera::train {

/// The searched partition: its slowest pair, what is proved of it, what the simulation added, and why
/// boundaries lie elsewhere than serial balance would put them. Empty without a search.
[[nodiscard]] std::string partition_text(const PlanReport& report);
/// What is recomputed and offloaded to make room, at what price. Empty when nothing had to be.
[[nodiscard]] std::string memory_text(const PlanReport& report);

}  // namespace tessera::train
