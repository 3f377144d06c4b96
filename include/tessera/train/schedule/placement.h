// Does a schedule run its stages where the program that runs it has them?
#pragma once

#include <span>

#include "tessera/core/base/ids.h"
#include "tessera/core/base/result.h"
#include "tessera/train/schedule/schedule_template.h"

namespace tessera::train {

/// Compares where a schedule runs each stage with a placement over the same number of ranks: linear, a loop
/// over the ranks, or v_shape, two stages a rank. A difference is infeasible and lists, for each rank that
/// differs, the stages that the schedule runs there and those that the rank holds.
[[nodiscard]] Status check_placement(std::span<const RankId> rank_of_stage, std::int32_t pp,
                                     StagePlacement held);

}  // namespace tessera::train
