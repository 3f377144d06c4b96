// Every template at random legal sizes, generated and proved: complete, on its ranks, free of deadlock, peaks
// counted. A third of the sizes has microbatches that the ranks do not divide.
//
//   make bench BENCH=schedules
#include <chrono>
#include <cmath>

#include "report.h"
#include "tessera/train/schedule/check_schedule.h"
#include "tessera/train/schedule/schedule_template.h"
#include "train/random.h"

namespace {

using namespace tessera;
using namespace tessera::train;
using tessera::train::testing::Random;

constexpr int kEach = 640;  // combinations per template
constexpr int kEffort = 1;  // refinement of short lists, see TemplateSizes
constexpr int kMostRanks = 64, kMostMicrobatches = 512;

// Small sizes as often as large ones.
int log_between(Random& random, int low, int high) {
  const double value = low * std::exp(random.unit() * std::log((high + 1.0) / low));
  return std::min(high, static_cast<int>(value));
}

// Legal sizes; `uneven` with microbatches that are no multiple of the ranks.
TemplateSizes draw_sizes(Random& random, Template schedule, bool uneven) {
  const TemplateTraits& of = traits(schedule);
  const bool dual = schedule == Template::dual_pipe || schedule == Template::dual_pipe_v;
  while (true) {
    TemplateSizes sizes{.pp = log_between(random, uneven ? 2 : 1, kMostRanks),
                        .vp = of.chunks != 0 ? of.chunks : random.between(1, 4),
                        .effort = kEffort};
    const int least = dual ? 2 * sizes.pp : of.groups && sizes.vp > 1 ? sizes.pp : 1;
    sizes.microbatches = log_between(random, least, kMostMicrobatches);
    if (!uneven) sizes.microbatches -= sizes.microbatches % sizes.pp;
    if (sizes.microbatches < least || (sizes.microbatches % sizes.pp != 0) != uneven) continue;
    if (schedule == Template::dual_pipe && (sizes.pp % 2 != 0 || sizes.microbatches % 2 != 0)) continue;
    if (of.groups && sizes.vp > 1) {
      const std::vector<std::int32_t> legal = legal_groups(sizes.pp, sizes.microbatches);
      sizes.group = legal[static_cast<std::size_t>(random.below(static_cast<int>(legal.size())))];
    }
    return sizes;
  }
}

// Stages that differ, for the templates that look at durations.
ScheduleCosts draw_costs(Random& random, const TemplateSizes& sizes) {
  ScheduleCosts costs{.transfer = Seconds(0.2 * random.unit())};
  for (int s = 0; s < sizes.pp * sizes.vp; ++s)
    costs.stages.push_back({.forward = Seconds(0.8 + 0.4 * random.unit()),
                            .input_gradient = Seconds(0.9 + 0.5 * random.unit()),
                            .weight_gradient = Seconds(0.6 + 0.4 * random.unit())});
  return costs;
}

}  // namespace

int main() {
  Random random(6);
  bench::Table table({"template", "checked", "uneven", "compute actions", "million/s"});
  std::size_t checked = 0, failed = 0;
  double all_actions = 0, all_seconds = 0;
  for (std::size_t t = 0; t < kTemplates; ++t) {
    const auto schedule = static_cast<Template>(t);
    std::size_t uneven_count = 0;
    double actions = 0, seconds = 0;
    for (int k = 0; k < kEach; ++k) {
      const bool uneven = k % 3 == 0;
      const TemplateSizes sizes = draw_sizes(random, schedule, uneven);
      ScheduleCosts costs;
      if (traits(schedule).durations && k % 2 == 0) costs = draw_costs(random, sizes);
      const auto begin = std::chrono::steady_clock::now();
      const auto list = make_schedule(schedule, sizes, costs);
      const auto facts = list ? check_schedule(*list) : std::unexpected(list.error());
      seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      ++checked;
      uneven_count += uneven ? 1 : 0;
      if (!facts) {
        ++failed;
        fmt::print("{} pp {} vp {} m {} group {}: {}\n", name(schedule), sizes.pp, sizes.vp,
                   sizes.microbatches, sizes.group, facts.error().text());
        continue;
      }
      // Each microbatch of each stage has a forward, and one or two actions of backward.
      const double forwards = static_cast<double>(sizes.pp) * sizes.vp * sizes.microbatches / list->pipelines;
      const double all = static_cast<double>(facts->actions);
      bench::verify(all >= 2 * forwards && all <= 3 * forwards, "every chunk runs");
      actions += all;
    }
    table.add({std::string(name(schedule)), std::to_string(kEach), std::to_string(uneven_count),
               fmt::format("{:.0f}", actions), fmt::format("{:.1f}", actions / seconds * 1e-6)});
    all_actions += actions;
    all_seconds += seconds;
  }
  table.print();
  fmt::print("\n{} combinations, {:.1f} s on one core; orders that depend on durations with effort {}\n",
             checked, all_seconds, kEffort);
  bench::Json()
      .add("checked", checked)
      .add("failed", failed)
      .add("actions_per_second", all_actions / all_seconds)
      .print();
  return failed == 0 ? 0 : 1;
}
