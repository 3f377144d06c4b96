#include <fmt/format.h>

#include <vector>

#include "../report.h"
#include "instance.h"
#include "parts.h"
#include "tessera/core/base/parallel.h"

namespace tessera::bench {
namespace {

using namespace train;

constexpr double kTimeLimit = 60;
// Of the slowest pair; the programme's rows hold within a billionth.
constexpr double kTolerance = 1e-7;
constexpr unsigned kThreads = 2;

struct Case {
  std::unique_ptr<Instance> instance;
  PartitionProblem problem;  ///< the window the sweep settled in
  PartitionChoice ours;
  double sweep_seconds = 0;
  PartitionResult milp;
};

// The instances, and the paper's with smaller windows.
std::vector<InstanceSpec> specs() {
  std::vector<InstanceSpec> out = paper_specs();
  for (InstanceSpec& model : model_specs()) out.push_back(std::move(model));
  for (const std::int32_t window : {1, 2})
    for (InstanceSpec& paper : paper_specs()) {
      paper.name += fmt::format(" window {}", window);
      paper.variables = 0;
      paper.window = window;
      out.push_back(std::move(paper));
    }
  return out;
}

}  // namespace

Status run_milp(Figures& figures) {
  std::vector<Case> cases;
  for (const InstanceSpec& spec : specs()) {
    Case& one = cases.emplace_back();
    TESSERA_TRY(one.instance, Instance::open(spec));
    WindowResult swept = one.instance->sweep(1);
    one.problem = one.instance->around(swept.center);
    verify_result(one.problem, *one.instance->costs, swept.result, spec.name);
    one.ours = std::move(swept.result.best.front());
    one.sweep_seconds = swept.result.solve_time.value();
  }
  parallel_for(cases.size(), kThreads, [&](std::size_t i) {
    Case& one = cases[i];
    const auto costs = one.instance->own_costs(1);
    PartitionOptions options{
        .method = PartitionMethod::milp, .time_limit = Seconds(kTimeLimit), .least_work = false};
    if (evaluate(one.problem, *costs, one.instance->serial)) options.incumbent = one.instance->serial;
    one.milp = solve_partition(one.problem, *costs, options);
  });

  Table table({"instance", "variables", "pruned", "sweep ms", "MILP s", "MILP ms", "bound ms", "gap",
               "sweep's ms", "verdict"});
  std::size_t agrees = 0;
  for (const Case& one : cases) {
    const PartitionResult& milp = one.milp;
    const Seconds ours = one.ours.value.slowest;
    verify(milp.bound <= ours * (1 + kTolerance), one.instance->name + ": the MILP proves the sweep wrong");
    if (!milp.best.empty())
      verify(milp.best.front().value.slowest >= ours * (1 - kTolerance),
             one.instance->name + ": the MILP has a faster slowest pair");
    verify(milp.reason != PartitionReason::infeasible, one.instance->name + ": infeasible for the MILP");
    const bool proved = milp.reason == PartitionReason::optimal;
    agrees += proved ? 1 : 0;
    table.add({one.instance->name, fmt::format("{}", milp.variables),
               fmt::format("{}", milp.variables_pruned), fmt::format("{:.1f}", 1e3 * one.sweep_seconds),
               fmt::format("{:.1f}", milp.solve_time.value()),
               milp.best.empty() ? "-" : fmt::format("{:.3f}", milliseconds(milp.best.front().value.slowest)),
               fmt::format("{:.3f}", milliseconds(milp.bound)), milp.best.empty() ? "-" : percent(milp.gap),
               fmt::format("{:.3f}", milliseconds(ours)),
               proved ? "proved equal" : "time limit, no contradiction"});
  }
  figures["milp_agrees"] = agrees;
  fmt::print(
      "The programme on HiGHS, one thread each, {} at a time, at most {:.0f} s, pruned by the serial "
      "balance where that fits; the\nsweep of the same window, one answer, pairs scheduled on the "
      "way.\n",
      kThreads, kTimeLimit);
  table.print();
  return {};
}

}  // namespace tessera::bench
