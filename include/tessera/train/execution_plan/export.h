// A plan in the formats of other frameworks.
#pragma once

#include <string>

#include "tessera/core/base/result.h"
#include "tessera/train/execution_plan/execution_plan.h"
#include "tessera/train/schedule/megatron_layout.h"

namespace tessera::train {

/// Megatron's pipeline layout string of the plan's partition. Refused where the target cannot hold it.
[[nodiscard]] Result<std::string> megatron_layout(const ExecutionPlan& plan,
                                                  const MegatronTarget& target = {});

}  // namespace tessera::train
