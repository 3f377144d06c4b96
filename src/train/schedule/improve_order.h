// Local search around an order.
#pragma once

#include "flexible_order.h"

namespace tessera::train {

/// Moves single steps of a longest chain a little earlier or later and keeps what does not end later,
/// `trials` times. Always the same for the same problem.
void improve_order(OrderTimer& timer, const FlexibleProblem& problem, double patience, std::int64_t trials,
                   Order& order);

}  // namespace tessera::train
