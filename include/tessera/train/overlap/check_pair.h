// Independent of the schedulers: is this a legal schedule of this graph, and how long is it?
#pragma once

#include "tessera/core/base/result.h"
#include "tessera/train/overlap/pair_schedule.h"

namespace tessera::train {

/// Every task once, none before its predecessors end, no two on one resource at a time, launch order agreeing
/// with the starts, makespan as said; what is left to the pool is movable, needed by nobody and within the
/// credit. Nominal durations. A failure names the tasks.
[[nodiscard]] Status check_pair(const TaskGraph& graph, const PairSchedule& schedule,
                                Seconds pool_credit = {});

}  // namespace tessera::train
