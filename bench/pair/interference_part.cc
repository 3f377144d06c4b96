// Communication slows compute down: what the order of the nominal optimum loses against the best of the
// orders kept.
#include <fmt/format.h>

#include <algorithm>

#include "../report.h"
#include "grid.h"
#include "measure.h"
#include "parts.h"

namespace tessera::bench {
namespace {

constexpr std::size_t kEvery = 53;  ///< pairs of the grid to one taken; prime, so that it hits all sizes

struct Loss {
  std::vector<double> loss, slowed, extra;
};

void compare(const train::TaskGraph& graph, const Interference& interference, const std::string& what,
             Loss& out) {
  const Timed nominal = timed(graph);
  const Timed chosen = timed(graph, {.interference = interference});
  static_cast<void>(judge(graph, nominal.result, what));
  verify_answer(graph, chosen.result, what + ", interference");
  const Seconds before = train::run_order(graph, nominal.result.schedule.order, interference).makespan;
  const Seconds after = train::run_order(graph, chosen.result.schedule.order, interference).makespan;
  verify_pair(std::abs(after / chosen.result.slowed - 1) < 1e-9, graph,
              what + ": the order runs as long as said");
  verify_pair(after.value() >= chosen.result.bound.value() * (1 - 1e-9), graph,
              what + ": the nominal bound holds under interference");
  const double loss = before / after - 1;
  out.loss.push_back(loss);
  verify_pair(loss >= -1e-9, graph, what + ": the order kept is no worse than the nominal one");
  out.slowed.push_back(after / nominal.result.best_nominal - 1);
  out.extra.push_back(chosen.seconds / nominal.seconds);
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace

Status run_interference(Figures& figures) {
  Table table({"device", "SM-bound rate", "memory-bound rate", "pairs", "nominal order loses, mean", "p99",
               "worst", "pairs that lose", "slowed, mean", "time, mean"});
  const Pinned pinned;
  for (const std::string device : {"H100", "H20"}) {
    TESSERA_TRY(const std::vector<Cell> cells, price_grid(device));
    Loss loss;
    std::size_t next = 0;
    for (const Cell& cell : cells) {
      const std::vector<train::PairKey> pairs = pairs_of(cell);
      for (; next < pairs.size(); next += kEvery)
        compare(train::pair_graph(cell.cost.kinds, pairs[next]), cell.interference,
                fmt::format("{}, pair {}", name(cell.setting), next), loss);
      next -= pairs.size();
    }
    const Interference rates = cells.front().interference;
    const auto losing = std::ranges::count_if(loss.loss, [](double x) { return x > 1e-9; });
    table.add({device, fmt::format("{:.3f}", rates.compute_bound_rate),
               fmt::format("{:.3f}", rates.memory_bound_rate), fmt::format("{}", loss.loss.size()),
               fmt::format("{:.3f} %", 100 * mean(loss.loss)),
               fmt::format("{:.3f} %", 100 * quantile(loss.loss, 0.99)),
               fmt::format("{:.3f} %", 100 * quantile(loss.loss, 1)), fmt::format("{}", losing),
               fmt::format("{:.1f} %", 100 * mean(loss.slowed)), fmt::format("{:.1f}x", mean(loss.extra))});
    figures[fmt::format("interference_loss_{}", device)] = mean(loss.loss);
    figures[fmt::format("interference_worst_{}", device)] = quantile(loss.loss, 1);
  }
  fmt::print(
      "\nInterference: every {}rd pair of the grid, priced on each device; the order that is best by "
      "nominal\n"
      "durations against the best of those kept, both run under interference. Slowed = above the nominal\n"
      "optimum; time = choosing under interference / choosing without\n\n",
      kEvery);
  table.print();
  return {};
}

}  // namespace tessera::bench
