// The parts of BENCH=partition. Each prints its tables and what it holds the figures to, and leaves its
// figures for the line of JSON. A wrong answer ends the benchmark.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "tessera/core/base/result.h"

namespace tessera::bench {

using Figures = std::map<std::string, std::variant<double, std::size_t>, std::less<>>;

/// The four sizes of the paper and the eight models: size, pruning, time, and what the rivals come to.
Status run_instances(Figures& figures);
/// The whole plan of the largest size.
Status run_plan(Figures& figures);
/// Other placements, windows and memory: slack, and the tightest budget that fits + 2 %.
Status run_placements(Figures& figures);
/// The MILP on HiGHS against the sweep.
Status run_milp(Figures& figures);
/// How many pairs have to be measured before the choice is certain.
Status run_measure(Figures& figures);

}  // namespace tessera::bench
