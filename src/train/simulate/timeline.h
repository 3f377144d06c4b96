// When every action of a step starts, and what is sent meanwhile.
#pragma once

#include <vector>

#include "action_timing.h"
#include "tessera/core/base/result.h"
#include "tessera/train/execution_plan/execution_plan.h"
#include "tessera/train/simulate/simulate.h"

namespace tessera::train {

struct Timeline {
  std::vector<std::vector<Seconds>> start;  ///< per rank and action
  std::vector<Seconds> rank_end;            ///< end of the rank's last action
  std::vector<Seconds> first_forward;       ///< per stage, end of its first forward that is no shadow
  std::vector<Seconds> last_backward;       ///< per stage, start of its last action with weight gradients
  std::vector<TransferSpan> transfers;      ///< by sender, in order of sending; only when asked for
};

/// A deadlock is an infeasible error that names the waiting actions.
[[nodiscard]] Result<Timeline> run_actions(const ExecutionPlan& plan, const ActionTimings& timings,
                                           bool transfers);

}  // namespace tessera::train
