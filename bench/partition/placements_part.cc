#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "../report.h"
#include "instance.h"
#include "parts.h"
#include "train/partition/solvers.h"

namespace tessera::bench {
namespace {

using namespace train;

constexpr std::int32_t kKeep = 50;
constexpr int kRepeats = 3;
constexpr double kAboveTightest = 1.02;
constexpr int kBudgetSteps = 24;

struct Family {
  std::string name;
  std::string file;
  std::int64_t pp = 8, vp = 2;
  std::int32_t window = 2;
  bool v_shape = false;
  double goal_ms = 50;
};

const std::vector<Family>& families() {
  static const std::vector<Family> all{
      {"M-PP8-C2", "m-pp8", 8, 2, 2},
      {"M-PP8-C2", "m-pp8", 8, 2, 3},
      {"M-PP8-C3", "m-pp8", 8, 3, 2},
      {"M-PP8-C3", "m-pp8", 8, 3, 3},
      {"L-PP8-C2", "l-pp8", 8, 2, 3},
      {"L-PP8-C3", "l-pp8", 8, 3, 2},
      {"L-PP8-C3", "l-pp8", 8, 3, 3},
      {"L-PP16-C2", "l-pp8", 16, 2, 3},
      {"L-PP8-V", "l-pp8", 8, 2, 3, true},
      {"L-PP16-V", "l-pp8", 16, 2, 3, true},
      {"M-PP8-C4", "m-pp8", 8, 4, 2, false, 200},
      {"L-PP8-C4", "l-pp8", 8, 4, 2, false, 200},
      {"M-PP8-C4", "m-pp8", 8, 4, 3, false, 1000},
      {"L-PP8-C4", "l-pp8", 8, 4, 3, false, 1000},
  };
  return all;
}

// Two chunks per rank, the second walking back: the forward of each overlaps the backward of the other, as in
// the steady state of DualPipeV (github.com/deepseek-ai/DualPipe), with 2·PP + 1 activations alive per rank.
OverlapGraph v_shape(std::int32_t pp, std::int64_t microbatches) {
  OverlapGraph out;
  const std::int32_t stages = 2 * pp;
  for (std::int32_t s = 0; s < stages; ++s) out.rank_of_stage.emplace_back(std::min(s, stages - 1 - s));
  for (std::int32_t s = 0; s < stages; ++s)
    out.edges.push_back({StageId(s), StageId(stages - 1 - s), microbatches - std::min(s, stages - 1 - s)});
  for (std::int32_t r = 0; r < pp; ++r) out.live.push_back({{2 * pp - r, r + 1}});
  return out;
}

Result<std::unique_ptr<Instance>> open_family(const Family& family) {
  TESSERA_TRY(auto instance, Instance::open({.name = family.name,
                                             .file = fmt::format("partition/{}.yaml", family.file),
                                             .overrides = {{"layout.pp", fmt::format("{}", family.pp)},
                                                           {"layout.vp", fmt::format("{}", family.vp)}},
                                             .window = family.window}));
  instance->problem.budget.clear();
  if (!family.v_shape) return instance;
  // The last stage is on the first rank, where released frameworks put no MTP: the rows ask for time, not for
  // a plan, so MTP stays with the last stage as everywhere else.
  instance->problem.graph = v_shape(static_cast<std::int32_t>(family.pp), instance->job.layout.microbatches);
  instance->problem = instance->around(instance->serial);
  return instance;
}

// The least budget, the same for every rank, that some partition of the window fits.
Bytes tightest_budget(Instance& instance) {
  PartitionProblem problem = instance.around(instance.serial);
  const auto fits = [&](Bytes budget) {
    problem.budget.assign(problem.graph.live.size(), budget);
    return !solve_sweep(problem, *instance.costs, {}).best.empty();
  };
  Bytes low, high = instance.job.cluster.gpu.memory;
  while (!fits(high)) low = high, high = high * 2.0;
  for (int step = 0; step < kBudgetSteps && high > low * 1.001; ++step) {
    const Bytes middle = (low + high) * 0.5;
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

struct Timed {
  double seconds = std::numeric_limits<double>::infinity();
  WindowResult answer;
};
Timed timed_sweep(Instance& instance) {
  Timed out;
  for (int run = 0; run <= kRepeats; ++run) {  // the first schedules the pairs
    const auto start = std::chrono::steady_clock::now();
    out.answer = instance.sweep(kKeep);
    if (run > 0) out.seconds = std::min(out.seconds, seconds_since(start));
    verify_result(instance.around(out.answer.center), *instance.costs, out.answer.result, instance.name);
  }
  return out;
}

std::string answer_of(const PartitionResult& result) {
  return result.reason == PartitionReason::work_gap
             ? fmt::format("{} {}", name(result.reason), percent(result.work_gap))
             : std::string(name(result.reason));
}

}  // namespace

Status run_placements(Figures&) {
  Table table(
      {"placement", "window", "slack ms", "answer", "tight ms", "answer", "tightest GiB", "goal ms", "met"});
  double worst = 0;
  for (const Family& family : families()) {
    TESSERA_TRY(const auto instance, open_family(family));
    const Timed slack = timed_sweep(*instance);
    const Bytes least = tightest_budget(*instance);
    instance->problem.budget.assign(instance->problem.graph.live.size(), least * kAboveTightest);
    const Timed tight = timed_sweep(*instance);
    const double slowest = 1e3 * std::max(slack.seconds, tight.seconds);
    worst = std::max(worst, slowest / family.goal_ms);
    table.add({family.name, fmt::format("{}", family.window), fmt::format("{:.1f}", 1e3 * slack.seconds),
               answer_of(slack.answer.result), fmt::format("{:.1f}", 1e3 * tight.seconds),
               answer_of(tight.answer.result), fmt::format("{:.1f}", gibibytes(least)),
               fmt::format("{:.0f}", family.goal_ms), slowest <= family.goal_ms ? "yes" : "no"});
  }
  fmt::print(
      "The sweep with the {} best, recentring included, pairs known, least of {}. Tight: the smallest "
      "budget that some\npartition of the window fits, the same on every rank, + 2 %. Cn: n chunks per "
      "rank; V: the second chunk walks back.\n",
      kKeep, kRepeats);
  table.print();
  fmt::print("worst of its goal: {:.2f}\n", worst);
  return {};
}

}  // namespace tessera::bench
