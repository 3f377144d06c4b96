// The time of one training step by closed form: what the simulator is compared with.
#pragma once

#include "tessera/core/base/units.h"
#include "tessera/train/execution_plan/execution_plan.h"

namespace tessera::bench {

struct ClosedForm {
  Seconds step;
  Seconds slowest_rank;  ///< forward and backward of one microbatch
  Seconds host;          ///< part of it that launching adds
  Seconds all_to_all;    ///< part of it
};

/// M · slowest rank + (pp − 1)/vp · mean rank + transfers + exposed reduction + optimizer, of a plan without
/// overlapped pairs.
[[nodiscard]] ClosedForm closed_form(const train::ExecutionPlan& plan);

}  // namespace tessera::bench
