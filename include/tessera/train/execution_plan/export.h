// A plan in the formats of other frameworks.
#pragma once

#include <string>
#include <string_view>

#include "tessera/core/base/result.h"
#include "tessera/train/execution_plan/execution_plan.h"
#include "tessera/train/schedule/megatron_layout.h"

namespace tessera::train {

/// Refuses a plan with shadow microbatches for a target whose runtime knows none, with the legal group
/// nearest to the plan's, which needs none. `target` begins the sentence: "Megatron's layout string".
[[nodiscard]] Status check_no_shadows(const ExecutionPlan& plan, std::string_view target);

/// Megatron's pipeline layout string of the plan's partition. Refused where the target cannot hold it: stage
/// k elsewhere than on rank k mod pp, shadow microbatches.
[[nodiscard]] Result<std::string> megatron_layout(const ExecutionPlan& plan,
                                                  const MegatronTarget& target = {});

}  // namespace tessera::train
