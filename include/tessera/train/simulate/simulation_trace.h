// A simulated step as a Chrome trace: per rank a compute lane (actions, with their tasks inside), a lane of
// expert all-to-all, one of stage-to-stage transfers, arrows along the activations and gradients, and memory
// over time. A shadow microbatch shows as slices without length, of the category "shadow", and by its
// transfers.
#pragma once

#include <string>

#include "tessera/train/execution_plan/execution_plan.h"
#include "tessera/train/simulate/simulate.h"

namespace tessera::train {

/// `result` must come from simulate(plan, {.slices = true}).
[[nodiscard]] std::string chrome_trace(const ExecutionPlan& plan, const SimulateResult& result);

}  // namespace tessera::train
