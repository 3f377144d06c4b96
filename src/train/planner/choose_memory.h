// Recompute and offload, kind of layer by kind of layer, when a plan would not fit without them.
//
// Every means (a unit of recompute, or offload, for one kind of layer) has a price: the time it adds for a
// byte it saves. They are taken cheapest first, until some partition fits; what was taken and is not needed
// after all is given back.
#pragma once

#include <functional>

#include "assemble.h"
#include "tessera/core/base/result.h"
#include "tessera/train/planner/plan.h"

namespace tessera::train {

/// Plans a job as its layout says, nothing decided.
using PlanLayout = std::function<Result<PlanReport>(const Job& job)>;

/// `without` is the plan without any means: it does not fit, or a faster partition (PartitionSearch::cramped)
/// does not. The result is the fastest plan that fits of those tried, `without` among them, with `memory`
/// filled in where means were taken; when none fits, the one that holds least.
[[nodiscard]] Result<PlanReport> plan_within_memory(const Job& job, const PlanReport& without,
                                                    const PlanLayout& plan);

}  // namespace tessera::train
