// How fast a step is checked, interleaved and simulated: the inner loops of every planner call.
//
// Each answer is verified before its time is reported: schedules by check_schedule, pairs by check_pair, the
// simulation by its lower bound and by adding up each rank's time.
#include <chrono>
#include <cstdlib>

#include "report.h"
#include "tessera/train/overlap/check_pair.h"
#include "tessera/train/schedule/check_schedule.h"
#include "tessera/train/simulate/simulate.h"
#include "train/testing.h"

namespace {

using namespace tessera;
using namespace tessera::train;
using tessera::train::testing::make_plan;
using tessera::train::testing::Random;
using tessera::train::testing::set;

// Median seconds of a call, over enough calls to fill a tenth of a second.
template <class Call>
double median_seconds(Call&& call) {
  std::vector<double> times;
  double total = 0;
  while (total < 0.1 || times.size() < 5) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    total += times.back();
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

// An MoE layer whose all-to-alls take about as long as its compute, the hard case; each a little different.
BlockCost moe_layer(Random& random) {
  BlockCost cost{.name = "layer"};
  const auto about = [&](double ms) { return ms * 1e-3 * (0.7 + 0.6 * random.unit()); };
  set(cost, Pass::forward, TaskKind::attention, about(1.0));
  set(cost, Pass::forward, TaskKind::dispatch, about(1.2));
  set(cost, Pass::forward, TaskKind::mlp, about(0.8));
  set(cost, Pass::forward, TaskKind::combine, about(1.3));
  set(cost, Pass::backward, TaskKind::combine, about(1.2));
  set(cost, Pass::backward, TaskKind::mlp, about(0.8));
  set(cost, Pass::backward, TaskKind::dispatch, about(1.3));
  set(cost, Pass::backward, TaskKind::attention, about(1.4));
  set(cost, Pass::weight, TaskKind::mlp, about(0.8));
  set(cost, Pass::weight, TaskKind::attention, about(0.6));
  return cost;
}

TaskGraph layers_pair(int layers, std::uint64_t seed) {
  Random random(seed);
  std::vector<BlockCost> costs;
  for (int i = 0; i < 2 * layers; ++i) costs.push_back(moe_layer(random));
  std::vector<ChunkBlock> f, b;
  for (int i = 0; i < layers; ++i) {
    f.push_back({&costs[static_cast<std::size_t>(i)], i});
    b.push_back({&costs[static_cast<std::size_t>(layers + i)], layers + i});
  }
  return pair_graph(forward_chunk(f), backward_chunk(b));
}

}  // namespace

int main() {
  bench::Json json;
  bench::Table pairs({"pair rule", "6 × 6", "24 × 24", "gap to bound, 6 × 6"});
  double slowest = 0;
  for (const PairMethod rule : {PairMethod::serial, PairMethod::fifo, PairMethod::align,
                                PairMethod::defer_literal, PairMethod::defer}) {
    double seconds[2], gap = 0;
    for (const int big : {0, 1}) {
      constexpr int kGraphs = 20;
      std::vector<TaskGraph> graphs;
      for (std::uint64_t seed = 0; seed < kGraphs; ++seed) graphs.push_back(layers_pair(big ? 24 : 6, seed));
      for (const TaskGraph& graph : graphs) {
        const PairResult result = schedule_pair(graph, {.method = rule});
        bench::verify(check_pair(graph, result.schedule).has_value(), "pair schedule");
        if (big == 0) gap += result.gap / kGraphs;
      }
      seconds[big] = median_seconds([&] {
                       for (const TaskGraph& graph : graphs)
                         static_cast<void>(schedule_pair(graph, {.method = rule}));
                     }) /
                     kGraphs;
    }
    slowest = std::max(slowest, seconds[0]);
    pairs.add({std::string(name(rule)), fmt::format("{:.1f} µs", seconds[0] * 1e6),
               fmt::format("{:.1f} µs", seconds[1] * 1e6), fmt::format("{:.2f} %", gap * 100)});
  }
  const TaskGraph six = layers_pair(6, 0);
  const Interference interference{.compute_bound_rate = 0.85, .memory_bound_rate = 0.95};
  const double best =
      median_seconds([&] { static_cast<void>(schedule_pair(six, {.interference = interference})); });
  pairs.add({"exact, interference", fmt::format("{:.1f} µs", best * 1e6), "", ""});
  pairs.print();

  const ActionList list =
      make_schedule(Template::interleaved_overlap, {.pp = 16, .vp = 4, .microbatches = 4096}).value();
  const auto facts = check_schedule(list);
  bench::verify(facts.has_value(), "schedule");
  const double check = median_seconds([&] { static_cast<void>(check_schedule(list)); });
  const double rate = static_cast<double>(facts->actions) / check;
  fmt::print("\ncheck_schedule: {} chunk actions on 16 ranks in {:.1f} ms, {:.1f} million/s\n",
             facts->actions, check * 1e3, rate * 1e-6);

  Random random(7);
  std::vector<std::vector<BlockCost>> stages(16);
  for (auto& blocks : stages)
    for (int i = 0; i < 6; ++i) blocks.push_back(moe_layer(random));
  ExecutionPlan plan = make_plan(
      make_schedule(Template::interleaved_overlap, {.pp = 8, .vp = 2, .microbatches = 256}).value(), stages);
  plan.interference = interference;
  bench::verify(check_plan(plan).has_value(), "plan");
  double simulated[2];
  for (const bool slices : {false, true}) {
    const SimulateResult result = simulate(plan, {.slices = slices}).value();
    bench::verify(result.lower_bound <= result.iteration, "lower bound");
    for (const RankResult& rank : result.ranks) {
      const Seconds sum =
          rank.comp_busy + rank.exposed_comm + rank.warmup_idle + rank.imbalance_idle + rank.cooldown_idle;
      bench::verify(std::abs(sum / result.pipeline - 1) <= 1e-9, "a rank's time adds up");
    }
    simulated[slices] = median_seconds([&] { static_cast<void>(simulate(plan, {.slices = slices})); });
    fmt::print("simulate: 8 ranks × 2 chunks × 256 microbatches, 6 layers a chunk, {}: {:.2f} ms{}\n",
               slices ? "every task recorded" : "figures only", simulated[slices] * 1e3,
               slices ? fmt::format(" ({} slices)", result.slices.size()) : "");
  }
  json.add("slowest_rule_6x6_us", slowest * 1e6)
      .add("exact_6x6_us", best * 1e6)
      .add("check_million_per_s", rate * 1e-6)
      .add("simulate_ms", simulated[0] * 1e3)
      .add("simulate_slices_ms", simulated[1] * 1e3);
  json.print();
  return 0;
}
