// Partitions that need no search.
#pragma once

#include "assemble.h"
#include "tessera/core/base/result.h"
#include "tessera/train/planner/job.h"

namespace tessera::train {

/// Of one pipeline. For overlap-aware the serial balance, where its search starts. Durations per stage leave
/// nothing to balance.
[[nodiscard]] Result<Partition> partition_by_rule(const Job& job, const PricedJob& priced,
                                                  PartitionRule rule);

}  // namespace tessera::train
