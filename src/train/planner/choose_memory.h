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

/// `over` is the plan without any means, which does not fit. The result is the fastest plan that fits of those
/// tried, with `memory` filled in; when none fits, the one that holds least.
[[nodiscard]] Result<PlanReport> plan_within_memory(const Job& job, const PlanReport& over,
                                                    const PlanLayout& plan);

}  // namespace tessera::train
