// What a solver behind schedule_pair brings back.
#pragma once

#include <cstdint>
#include <vector>

#include "flat_graph.h"
#include "tessera/train/overlap/pair_schedule.h"

namespace tessera::train {

struct Attempt {
  std::vector<LaunchOrder> orders;  ///< best first; tasks not in an order are left to the pool. May be empty
  double bound = 0;                 ///< seconds no schedule is shorter than; 0 = nothing proved
  bool complete = false;            ///< the search was not cut off: its first order is its optimum
  bool too_big = false;             ///< not attempted
  bool whole = true;                ///< false: not all orders of the graph can be searched, only bounded
  std::int64_t work = 0;            ///< labels, orders or MILP nodes
};

[[nodiscard]] Attempt solve_exact(const TaskGraph& graph, const PairOptions& options);
[[nodiscard]] Attempt solve_ilp(const TaskGraph& graph, const PairOptions& options);
[[nodiscard]] Attempt solve_brute_force(const TaskGraph& graph, const PairOptions& options);

}  // namespace tessera::train
