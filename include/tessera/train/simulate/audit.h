// Is a plan sound, does it fit its device, and is what it says of itself still true?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/train/execution_plan/execution_plan.h"
#include "tessera/train/schedule/check_schedule.h"

namespace tessera::train {

struct PlanAudit {
  ScheduleFacts schedule;
  Seconds iteration;  ///< simulated now
  Bytes peak_memory;  ///< of the fullest rank, simulated now
  std::int32_t peak_rank = 0;
  std::vector<std::string> stale;  ///< what the plan says of itself and no longer holds, one sentence each
};

/// check_plan, check_schedule, and a simulation. A plan that is not sound, or needs more than kUsableMemory
/// of its device, is infeasible. Changed times and layouts are no fault (plans may be edited by hand), so
/// they are only told.
[[nodiscard]] Result<PlanAudit> audit_plan(const ExecutionPlan& plan);

}  // namespace tessera::train
