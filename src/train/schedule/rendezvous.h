// Rendezvous execution of a lowered list whose rows are sound by themselves.
#pragma once

#include <vector>

#include "stage_links.h"
#include "tessera/core/base/result.h"
#include "tessera/train/schedule/check_lowered.h"

namespace tessera::train {

/// Needs every message sent once and received once. Counts messages and groups and looks for overtaking.
[[nodiscard]] Status run_rendezvous(const LoweredList& list, const std::vector<StageLinks>& links,
                                    LoweredFacts& facts);

}  // namespace tessera::train
