// The strict checker: knows nothing of the templates, takes any action list.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/train/schedule/action.h"

namespace tessera::train {

struct ScheduleFacts {
  std::vector<std::int32_t> peak_live;  ///< per rank: chunk activations alive at once, F → B/I; in a pair F
                                        ///< allocates before B frees
  std::vector<std::int32_t> peak_until_weight;  ///< the same, F → W
  std::int64_t actions = 0;                     ///< compute actions, a pair counts two
};  // shadows hold nothing and compute nothing: no figure counts them

/// Proves that every (stage, microbatch) runs forward and backward exactly once, on the rank that holds the
/// stage, in an order its own rank can keep (F before B, I before W), and that eager execution cannot
/// deadlock. A failure is infeasible and names the action or the cycle of waiting actions.
[[nodiscard]] Result<ScheduleFacts> check_schedule(const ActionList& list);

}  // namespace tessera::train
