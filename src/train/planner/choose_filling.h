// Microbatches that the template cannot take as they are: shadows, or larger groups?
//
// Larger groups keep more activations, shadows cost time, and how much depends on where they sit. So the
// choices are simulated on one partition, before any is searched, and the fastest that fits is taken.
#pragma once

#include <string>
#include <vector>

#include "assemble.h"
#include "tessera/core/base/result.h"
#include "tessera/train/planner/plan.h"

namespace tessera::train {

/// Best first; empty when the template takes the microbatches as they are, or refuses them and the job does
/// not ask for shadows, or it has been decided. Errors: those of the job.
[[nodiscard]] Result<std::vector<FillingCandidate>> choose_filling(const Job& job);

/// What was taken, and what the best of the other kind would have cost; empty without candidates.
[[nodiscard]] std::string filling_note(const Job& job, const std::vector<FillingCandidate>& candidates);

}  // namespace tessera::train
