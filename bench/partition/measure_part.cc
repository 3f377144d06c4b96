#include <fmt/format.h>

#include <set>
#include <vector>

#include "../report.h"
#include "instance.h"
#include "parts.h"
#include "tessera/train/partition/measure.h"

namespace tessera::bench {
namespace {

using namespace train;

// Of every pair that the schedule may overlap, whatever it costs.
std::size_t distinct_signatures(const PartitionProblem& problem, const SignatureOf& signature) {
  std::set<PairSignature> seen;
  for (const PairQuery& query : possible_pairs(problem)) seen.insert(signature(query));
  return seen.size();
}

}  // namespace

Status run_measure(Figures& figures) {
  Table table({"model", "distinct pairs", "to measure", "share", "certain", "upper / lower", "s"});
  std::size_t to_measure = 0, distinct = 0;
  std::size_t certain = 0;
  const MeasureOptions options;
  const double left = (1 + options.measured_error) / (1 - options.measured_error) - 1;
  for (const InstanceSpec& spec : model_specs()) {
    TESSERA_TRY(const auto instance, Instance::open(spec));
    const std::vector<std::int32_t>& kinds = instance->priced.cost.kind_of_block;
    const SignatureOf signature = [&](const PairQuery& query) {
      PairSignature out(kinds.begin() + query.forward_blocks.begin, kinds.begin() + query.forward_blocks.end);
      out.push_back(-1);  // between the chunks
      out.insert(out.end(), kinds.begin() + query.backward_blocks.begin,
                 kinds.begin() + query.backward_blocks.end);
      return out;
    };
    const PartitionProblem problem = instance->around(instance->sweep(1).center);
    const std::size_t all = distinct_signatures(problem, signature);
    const auto start = std::chrono::steady_clock::now();
    const MeasurePlan plan = plan_measurements(problem, *instance->costs, signature, {}, options);
    const double seconds = seconds_since(start);
    verify(plan.obstacle.empty(), spec.name + ": " + plan.obstacle);
    verify(evaluate(problem, *instance->costs, plan.choice).has_value(), spec.name + ": not a partition");
    to_measure += plan.next.size();
    distinct += all;
    certain += plan.certain ? 1 : 0;
    verify(plan.certain || plan.upper <= plan.lower * (1 + left) * (1 + options.tolerance),
           spec.name + ": more is left than the measurements' own error");
    table.add({spec.name, fmt::format("{}", all), fmt::format("{}", plan.next.size()),
               percent(static_cast<double>(plan.next.size()) / static_cast<double>(all)),
               plan.certain ? "yes" : "no", fmt::format("{:.4f}", plan.upper / plan.lower),
               fmt::format("{:.1f}", seconds)});
  }
  fmt::print(
      "Pairs to measure until the choice is certain within {} of its slowest pair, composed times "
      "taken as ± {},\nmeasured ones as ± {}. Distinct: signatures in the table of the window before "
      "any pruning.\n",
      percent(options.tolerance), percent(options.composed_error), percent(options.measured_error));
  table.print();
  fmt::print(
      "{} of {} are certain. In the others no further measurement would decide anything: what is left "
      "is the measurements'\nown error, between two partitions whose slowest pairs are different ones "
      "and nearly equal: up to {}.\n",
      certain, model_specs().size(), percent(left));
  figures["to_measure_share"] = static_cast<double>(to_measure) / static_cast<double>(distinct);
  return {};
}

}  // namespace tessera::bench
