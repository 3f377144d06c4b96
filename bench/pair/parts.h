// The parts of BENCH=pair. Each prints its tables, says what it holds the figures to, and leaves its figures
// for the line of JSON. A wrong answer ends the benchmark.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "tessera/core/base/result.h"

namespace tessera::bench {

using Figures = std::map<std::string, std::variant<double, std::size_t>, std::less<>>;

/// Exact and the list rules on every pair of the grid.
Status run_grid(Figures& figures);
/// 100 larger pairs of mixed layers of each of four sizes, a second each.
Status run_mixed(Figures& figures);
/// The same sizes and the grid's with every duration drawn at random.
Status run_random(Figures& figures);
/// The MILP on HiGHS against exact.
Status run_ilp(Figures& figures);
/// What choosing by nominal durations loses when communication slows compute down.
Status run_interference(Figures& figures);
/// Latency reduction of Qwen3-Next-80B's pair kinds beside the published figures.
Status run_kinds(Figures& figures);

}  // namespace tessera::bench
