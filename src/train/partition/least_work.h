// Partitions of least Σ multiplicity · T whose pairs all stay within a limit, in order.
//
// Without its stitches the walk is a plain dynamic programme. Lagrange multipliers on the stitches make its
// value a bound for every start; starts are then taken in order of their bound, each by an exact forward pass
// and a backward enumeration that never turns into a dead end.
#pragma once

#include <cstdint>
#include <vector>

#include "walk_graph.h"

namespace tessera::train {

struct LeastWork {
  struct Found {
    double work = 0;
    std::vector<std::int32_t> chosen;  ///< value per stage
  };
  std::vector<Found> found;  ///< ascending
  double bound = 0;          ///< no partition within the limit has less
  bool complete = true;      ///< `found` are the least there are; false at the work limit
  std::int64_t states = 0;
};

/// The `keep` least, after at most `price_steps` adjustments of the stitches' prices.
[[nodiscard]] LeastWork least_work(const WalkGraph& graph, std::size_t stages, std::size_t keep,
                                   std::int32_t price_steps, std::int64_t state_limit);

/// Some partition within the limit, if there is one; its work is not looked at.
[[nodiscard]] LeastWork any_walk(const WalkGraph& graph, std::size_t stages, std::int64_t state_limit);

}  // namespace tessera::train
