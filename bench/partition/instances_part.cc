#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <thread>
#include <vector>

#include "../report.h"
#include "instance.h"
#include "parts.h"

namespace tessera::bench {
namespace {

using namespace train;

constexpr int kRepeats = 3;
constexpr std::int32_t kKeep = 50;

struct SweepTimes {
  double cold = 0;                                        ///< the first run, every pair scheduled on the way
  double warm = std::numeric_limits<double>::infinity();  ///< the least of the others
  double cpu =
      std::numeric_limits<double>::infinity();  ///< the same in CPU time, which others do not stretch
  WindowResult answer;
};

SweepTimes time_sweep(Instance& instance) {
  SweepTimes out;
  for (int run = 0; run <= kRepeats; ++run) {
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t cpu_start = std::clock();
    out.answer = instance.sweep(kKeep);
    const double cpu = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
    const double seconds = seconds_since(start);
    verify_result(instance.around(out.answer.center), *instance.costs, out.answer.result, instance.name);
    if (run == 0)
      out.cold = seconds;
    else
      out.warm = std::min(out.warm, seconds), out.cpu = std::min(out.cpu, cpu);
  }
  return out;
}

// Variables left by an incumbent; those of the whole problem when the serial balance does not fit the memory.
std::int64_t pruned_variables(Instance& instance) {
  const auto base = evaluate(instance.problem, *instance.costs, instance.serial);
  if (!base) return count_variables(instance.problem);
  return count_variables(instance.problem, *instance.costs, base->slowest);
}

struct Gains {
  double slowest = 0, iteration = 0;  ///< serial-balanced / overlap-aware
  bool counts = true;                 ///< the serial balance fits the memory and may be placed so
};

Result<Gains> add_quality(Instance& instance, const PartitionResult& solved, Table& slowest,
                          Table& iteration) {
  TESSERA_TRY(const PartitionSearch search,
              search_partition(instance.job, instance.priced, *instance.frame,
                               {.window = instance.window, .widened = instance.widened}));
  verify(search.proxy.partition == solved.best.front().partition,
         instance.name + ": the planner has another optimum of the slowest pair");
  std::vector<std::string> slowest_row{instance.name}, iteration_row{instance.name};
  Gains gains;
  TESSERA_TRY(const std::vector<Rival> all, rivals(instance));
  for (const Rival& rival : all) {
    const Seconds pair = instance.slowest(rival.partition);
    TESSERA_TRY(const Simulated run, instance.simulated(rival.partition));
    const Seconds step = run.iteration;
    slowest_row.push_back(fmt::format("{:.3f}", milliseconds(pair)));
    iteration_row.push_back(fmt::format("{:.3f}{}{}", step.value(), run.fits ? "" : " !",
                                        instance.places(rival.partition) ? "" : " x"));
    if (rival.name != "serial") continue;
    gains.counts = run.fits && instance.places(rival.partition);
    gains.slowest = pair / solved.best.front().value.slowest;
    gains.iteration = step / search.chosen.iteration;
  }
  slowest_row.push_back(fmt::format("{:.3f}", milliseconds(solved.best.front().value.slowest)));
  slowest_row.push_back(fmt::format("{:.3f}", gains.slowest));
  slowest_row.push_back(fmt::format("{:.3f}", milliseconds(search.chosen_slowest)));
  iteration_row.push_back(fmt::format("{:.3f}", search.proxy.iteration.value()));
  iteration_row.push_back(
      fmt::format("{:.3f}{}", search.chosen.iteration.value(), search.chosen.usable ? "" : " !"));
  iteration_row.push_back(fmt::format("{:.3f}", gains.iteration));
  iteration_row.push_back(percent(search.proxy.iteration / search.chosen.iteration - 1));
  iteration_row.push_back(fmt::format("{}", search.simulated));
  slowest.add(std::move(slowest_row));
  iteration.add(std::move(iteration_row));
  return gains;
}

}  // namespace

Status run_instances(Figures& figures) {
  Table size({"instance", "blocks", "window", "variables", "pruned", "factor", "warm ms", "CPU ms", "cold ms",
              "moves", "timed", "distinct", "answer"});
  Table slowest({"slowest pair ms", "even", "parameters", "FLOPs", "serial", "Alpa", "overlap-aware",
                 "serial / it", "chosen"});
  Table iteration({"iteration s", "even", "parameters", "FLOPs", "serial", "Alpa", "T_dom optimum", "chosen",
                   "serial / chosen", "search adds", "simulated"});
  double longest = 0, prune = 1, gain = 0, most_gain = 0, step_gain = 0, models = 0;
  std::vector<InstanceSpec> specs = paper_specs();
  const std::size_t papers = specs.size();
  for (InstanceSpec& model : model_specs()) specs.push_back(std::move(model));
  for (std::size_t i = 0; i < specs.size(); ++i) {
    TESSERA_TRY(const auto instance, Instance::open(specs[i]));
    const SweepTimes times = time_sweep(*instance);
    const std::size_t distinct = instance->costs->signatures();
    const std::int64_t before = count_variables(instance->problem);
    const std::int64_t after = pruned_variables(*instance);
    const double factor = static_cast<double>(before) / static_cast<double>(std::max<std::int64_t>(after, 1));
    longest = std::max(longest, times.warm);
    if (i < papers) prune *= factor;
    size.add({instance->name, fmt::format("{}", instance->problem.blocks),
              instance->widened > 0
                  ? fmt::format("{} ({} at {})", instance->window, instance->widened, instance->window + 1)
                  : fmt::format("{}", instance->window),
              fmt::format("{}", before), fmt::format("{}", after), fmt::format("{:.2f}", factor),
              fmt::format("{:.1f}", 1e3 * times.warm), fmt::format("{:.1f}", 1e3 * times.cpu),
              fmt::format("{:.1f}", 1e3 * times.cold), fmt::format("{}", times.answer.moves),
              fmt::format("{}", times.answer.pairs_timed), fmt::format("{}", distinct),
              std::string(name(times.answer.result.reason))});
    TESSERA_TRY(const Gains gains, add_quality(*instance, times.answer.result, slowest, iteration));
    if (i < papers || !gains.counts) continue;
    ++models;
    gain += gains.slowest;
    most_gain = std::max(most_gain, gains.slowest);
    step_gain += gains.iteration;
  }
  figures["sweep_max_ms"] = 1e3 * longest;
  figures["prune_factor"] = std::pow(prune, 1.0 / static_cast<double>(papers));
  figures["tdom_gain_mean"] = gain / models;
  figures["tdom_gain_max"] = most_gain;
  figures["iteration_gain_mean"] = step_gain / models;
  fmt::print(
      "The sweep with the {} best, recentring included. Warm: least of {} with every pair known; cold: "
      "the pairs\nit asks for scheduled too. Variables: y and z of the integer programme, before and "
      "after pruning by the\nserial-balanced partition.\n",
      kKeep, kRepeats);
  size.print();
  fmt::print("\n");
  slowest.print();
  fmt::print(
      "\nThe same pair schedules on the same simulator. ! = beyond the memory, x = a placement that "
      "frameworks refuse (MTP\nblocks on several stages): gains over such a partition are not counted.\n");
  iteration.print();
  fmt::print("gains over serial balance: means over the {} of {} models where it may be used\n", models,
             specs.size() - papers);
  return {};
}

Status run_plan(Figures& figures) {
  Table table({"whole plan", "window", "s", "s again", "simulated", "iteration s"});
  std::vector<InstanceSpec> specs = paper_specs();
  for (const bool planner_window : {false, true}) {
    TESSERA_TRY(const auto instance, Instance::open(specs.back()));
    PlanOptions options{.window = instance->window, .widened = instance->widened};
    if (planner_window) options = {};
    double first = 0, second = 0;
    PlanReport report;
    for (double* seconds : {&first, &second}) {
      const auto start = std::chrono::steady_clock::now();
      TESSERA_TRY(report, make_plan(instance->job, options));
      *seconds = seconds_since(start);
      TESSERA_CHECK(check_plan(report.plan));
      verify(report.figures.iteration >= report.figures.lower_bound, "a plan is below its lower bound");
    }
    if (!planner_window) figures["l_pp8_c4_plan_s"] = std::min(first, second);
    table.add({instance->name, fmt::format("{}{}", options.window, options.widened > 0 ? "+" : ""),
               fmt::format("{:.2f}", first), fmt::format("{:.2f}", second),
               fmt::format("{}", report.search->simulated),
               fmt::format("{:.3f}", report.figures.iteration.value())});
  }
  fmt::print("make_plan from job to checked plan, every pair scheduled, on all cores; {} threads here.\n",
             std::thread::hardware_concurrency());
  table.print();
  return {};
}

}  // namespace tessera::bench
