// What the sweep's tables cannot hold.
#pragma once

#include <optional>
#include <string>

#include "tessera/train/partition/partition_problem.h"

namespace tessera::train {

/// In words, with the numbers; nothing when the problem is not too big for the sweep.
[[nodiscard]] std::optional<std::string> too_big(const PartitionProblem& problem);

}  // namespace tessera::train
