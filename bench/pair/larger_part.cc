// Larger pairs, a second each: mixed windows of the grid's models, and layers with random durations.
#include <fmt/format.h>

#include <array>

#include "../report.h"
#include "drawn_pairs.h"
#include "measure.h"
#include "parts.h"
#include "summary.h"

namespace tessera::bench {
namespace {

constexpr int kPairs = 100;
constexpr int kSmallPairs = 10;  ///< of each of the 36 sizes of the grid
constexpr Seconds kLimit{1.0};
constexpr double kRepeatBelow = 0.1;  ///< seconds: what takes longer is timed once
constexpr std::uint64_t kSeed = 20240607;

struct Size {
  PairSize size;
  double goal;  ///< share proved within the limit
};
constexpr std::array<Size, 4> kSizes{{{{8, 8}, 0.99}, {{10, 10}, 0.99}, {{12, 12}, 0.99}, {{6, 12}, 0.90}}};

struct Row {
  Summary summary;
  RuleGaps gaps;
};

void solve(const std::vector<DrawnPair>& pairs, Row& row) {
  for (const DrawnPair& pair : pairs) {
    Timed run = timed(pair.graph, {.time_limit = kLimit});
    const Outcome outcome = judge(pair.graph, run.result, pair.name);
    double seconds = run.seconds;
    for (int repeat = 1; repeat < 3 && run.seconds < kRepeatBelow; ++repeat)
      seconds = std::min(seconds, timed(pair.graph, {.time_limit = kLimit}).seconds);
    row.summary.add(seconds, outcome.proved && run.seconds <= kLimit.value(), outcome.hard, outcome.gap);
    row.gaps.add(outcome.rule_gap);
  }
}

std::vector<std::string> header(std::string first) {
  std::vector<std::string> out = Summary::header(std::move(first));
  out.emplace_back("goal");
  for (const train::PairMethod rule : kRules) out.emplace_back(fmt::format("{} %", name(rule)));
  return out;
}

std::vector<std::string> cells(std::string first, std::string goal, const Row& row) {
  std::vector<std::string> out = row.summary.cells(std::move(first));
  out.push_back(std::move(goal));
  for (const train::PairMethod rule : kRules) out.push_back(fmt::format("{:.2f}", 100 * row.gaps.mean(rule)));
  return out;
}

std::string goal_text(const Size& size) {
  return fmt::format(">= {:.0f} %", 100 * size.goal);
}

}  // namespace

Status run_mixed(Figures& figures) {
  TESSERA_TRY(const std::vector<Cell> priced, price_grid());
  Table table(header("mixed pairs"));
  const Pinned pinned;
  for (const Size& size : kSizes) {
    Row row;
    solve(drawn_pairs(priced, size.size, Draw::mixed, kPairs, kSeed), row);
    table.add(cells(name(size.size), goal_text(size), row));
    figures["mixed_" + name(size.size) + "_proved_share"] = row.summary.proved_share();
  }
  fmt::print(
      "\nMixed windows of the grid's models, proved within {} s; on the right the rules' mean gaps\n\n",
      kLimit.value());
  table.print();
  return {};
}

Status run_random(Figures& figures) {
  Table table(header("random durations"));
  const Pinned pinned;
  for (const WeightTimes weights : {WeightTimes::four_classes, WeightTimes::all_different}) {
    const bool classes = weights == WeightTimes::four_classes;
    const std::string flavour = classes ? "W of 4 classes" : "W all different";
    const std::string key = classes ? "random_4_" : "random_all_";
    Row small;
    for (int f = 1; f <= kLargestWindow; ++f)
      for (int b = 1; b <= kLargestWindow; ++b)
        solve(random_pairs({f, b}, weights, kSmallPairs, kSeed + static_cast<std::uint64_t>(10 * f + b)),
              small);
    table.add(cells("1-6 x 1-6, " + flavour, "", small));
    figures[key + "1-6_proved_share"] = small.summary.proved_share();
    for (const Size& size : kSizes) {
      Row row;
      solve(random_pairs(size.size, weights, kPairs, kSeed), row);
      table.add(cells(name(size.size) + ", " + flavour, goal_text(size), row));
      figures[key + name(size.size) + "_proved_share"] = row.summary.proved_share();
    }
  }
  fmt::print(
      "\nRandom durations, communication within 10 % of compute, proved within {} s; on the right the "
      "rules' mean gaps\n\n",
      kLimit.value());
  table.print();
  return {};
}

}  // namespace tessera::bench
