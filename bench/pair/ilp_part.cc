// The disjunctive MILP on HiGHS, one thread each and two at a time, against exact.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "../report.h"
#include "drawn_pairs.h"
#include "measure.h"
#include "parts.h"

namespace tessera::bench {
namespace {

constexpr int kPairsPerSize = 7;
constexpr int kAtATime = 2;
constexpr Seconds kLimit{60.0};
constexpr double kTolerance = 1e-6;  ///< HiGHS works to about this
constexpr double kGoal = 10'000;
constexpr std::uint64_t kSeed = 20240608;

struct Duel {
  DrawnPair pair;
  int layers = 0;  ///< of each chunk
  bool hard = false;
  Timed exact, ilp;
  [[nodiscard]] bool proved() const { return ilp.result.reason == train::PairReason::optimal; }
  [[nodiscard]] bool stopped() const { return ilp.seconds >= kLimit.value(); }
  /// A run stopped at the limit counts as the limit.
  [[nodiscard]] double ilp_seconds() const { return stopped() ? kLimit.value() : ilp.seconds; }
  /// By the threads' CPU time: other programs stretch a minute of HiGHS, but not the least of three
  /// microseconds, so on a busy machine the ratio of wall clocks flatters exact.
  [[nodiscard]] double speedup() const {
    return (stopped() ? kLimit.value() : ilp.cpu_seconds) / exact.cpu_seconds;
  }
  [[nodiscard]] double wall_speedup() const { return ilp_seconds() / exact.seconds; }
};

void solve_exact(Duel& duel) {
  const Pinned pinned;
  duel.exact = timed(duel.pair.graph);
  for (int repeat = 1; repeat < 3; ++repeat) {
    const Timed again = timed(duel.pair.graph);
    duel.exact.seconds = std::min(duel.exact.seconds, again.seconds);
    duel.exact.cpu_seconds = std::min(duel.exact.cpu_seconds, again.cpu_seconds);
  }
}

void solve_ilp(std::vector<Duel>& duels) {
  std::atomic<std::size_t> next{0};
  const auto work = [&](int core) {
    const Pinned pinned(core);
    for (std::size_t i = next++; i < duels.size(); i = next++)
      duels[i].ilp = timed(duels[i].pair.graph, {.method = train::PairMethod::ilp,
                                                 .work_limit = std::numeric_limits<std::int64_t>::max(),
                                                 .time_limit = kLimit});
  };
  std::vector<std::jthread> workers;
  for (int core = 0; core < kAtATime; ++core) workers.emplace_back(work, core);
}

// Each side's proof is held against the other's schedule.
void check(Duel& duel) {
  const train::TaskGraph& graph = duel.pair.graph;
  const train::PairResult &exact = duel.exact.result, &ilp = duel.ilp.result;
  duel.hard = judge(graph, exact, duel.pair.name).hard;
  verify_answer(graph, ilp, duel.pair.name + ", ilp");
  const auto not_below = [&](Seconds found, Seconds bound, std::string_view claim) {
    if (found.value() < bound.value() * (1 - kTolerance))
      verify_pair(
          false, graph,
          fmt::format("{}: {}: {:.17g} s, {:.17g} s", duel.pair.name, claim, found.value(), bound.value()));
  };
  not_below(ilp.best_nominal, exact.bound, "ilp is not below exact's bound");
  not_below(exact.best_nominal, ilp.bound, "exact is not below ilp's bound");
}

double geometric_mean(const std::vector<const Duel*>& duels, double (Duel::*ratio)() const) {
  double log_sum = 0;
  for (const Duel* duel : duels) log_sum += std::log((duel->*ratio)());
  return duels.empty() ? 0 : std::exp(log_sum / static_cast<double>(duels.size()));
}

std::vector<std::string> cells(std::string title, const std::vector<const Duel*>& duels) {
  std::vector<double> exact_ms, ilp_seconds;
  std::size_t exact_proved = 0, ilp_proved = 0;
  double worst = 0, nodes = 0;
  for (const Duel* duel : duels) {
    exact_ms.push_back(1e3 * duel->exact.seconds);
    ilp_seconds.push_back(duel->ilp_seconds());
    exact_proved += duel->exact.result.reason == train::PairReason::optimal;
    ilp_proved += duel->proved();
    worst = std::max(worst, duel->ilp.result.best_nominal / duel->exact.result.best_nominal - 1);
    nodes += static_cast<double>(duel->ilp.result.work);
  }
  return {std::move(title),
          fmt::format("{}", duels.size()),
          fmt::format("{}", exact_proved),
          fmt::format("{:.3f}", quantile(exact_ms, 0.5)),
          fmt::format("{:.3f}", quantile(exact_ms, 1)),
          fmt::format("{}", ilp_proved),
          fmt::format("{:.2f}", quantile(ilp_seconds, 0.5)),
          fmt::format("{:.2f}", quantile(ilp_seconds, 1)),
          fmt::format("{:.0f}", nodes),
          fmt::format("{:.4f} %", 100 * worst),
          fmt::format("{:.0f}", geometric_mean(duels, &Duel::speedup)),
          fmt::format("{:.0f}", geometric_mean(duels, &Duel::wall_speedup))};
}

}  // namespace

Status run_ilp(Figures& figures) {
  TESSERA_TRY(const std::vector<Cell> priced, price_grid());
  std::vector<Duel> duels;
  // The largest first, so that both threads end together.
  for (int layers = kLargestWindow; layers >= 1; --layers)
    for (DrawnPair& pair : drawn_pairs(priced, {layers, layers}, Draw::any, kPairsPerSize,
                                       kSeed + static_cast<std::uint64_t>(layers)))
      duels.push_back({.pair = std::move(pair), .layers = layers});
  for (Duel& duel : duels) solve_exact(duel);
  solve_ilp(duels);
  for (Duel& duel : duels) check(duel);

  Table table({"size", "pairs", "exact proved", "p50 ms", "max ms", "ilp proved", "p50 s", "max s", "nodes",
               "ilp worst above", "ilp / exact", "by wall clock"});
  std::vector<const Duel*> all;
  for (int layers = 1; layers <= kLargestWindow; ++layers) {
    std::vector<const Duel*> some;
    for (const Duel& duel : duels)
      if (duel.layers == layers) some.push_back(&duel);
    table.add(cells(name(PairSize{layers, layers}), some));
    all.insert(all.end(), some.begin(), some.end());
  }
  std::vector<const Duel*> hard;
  std::ranges::copy_if(all, std::back_inserter(hard), &Duel::hard);
  table.add(cells("hard", hard));
  table.add(cells("all", all));
  table.add({"goal", ">= 42", "", "", "", "", "", "", "", "", fmt::format(">= {:.0f}", kGoal), ""});
  fmt::print(
      "\nMILP on HiGHS, one thread each, {} at a time, limit {} s (a stopped run counts as that), from a "
      "list rule's\nschedule; exact's time is the least of 3; ilp / exact is the geometric mean of the "
      "ratios,\nby the threads' CPU time\n\n",
      kAtATime, kLimit.value());
  table.print();
  figures["speedup_vs_ilp"] = geometric_mean(all, &Duel::speedup);
  figures["speedup_vs_ilp_wall"] = geometric_mean(all, &Duel::wall_speedup);
  figures["speedup_vs_ilp_hard"] = geometric_mean(hard, &Duel::speedup);
  figures["ilp_pairs"] = all.size();
  figures["ilp_proved"] = static_cast<std::size_t>(std::ranges::count_if(duels, &Duel::proved));
  return {};
}

}  // namespace tessera::bench
