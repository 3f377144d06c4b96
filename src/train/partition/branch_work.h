// Least Σ multiplicity · T by branch and bound, for placements that are no walk, or too wide for one.
#pragma once

#include "least_work.h"
#include "propagation.h"

namespace tessera::train {

[[nodiscard]] LeastWork branch_work(const Labelling& labelling, const Alive& alive, double limit,
                                    std::size_t keep, std::int64_t node_limit);

}  // namespace tessera::train
