#include "closed_form.h"

#include <algorithm>

namespace tessera::bench {
namespace {

struct Rank {
  double forward = 0, backward = 0, host = 0, all_to_all = 0;
  [[nodiscard]] double time() const { return forward + backward; }
};

}  // namespace

ClosedForm closed_form(const train::ExecutionPlan& plan) {
  std::vector<Rank> ranks(plan.actions.ranks.size());
  for (std::size_t s = 0; s < plan.partition.stages.size(); ++s) {
    Rank& rank = ranks[plan.actions.rank_of_stage[s].index()];
    const train::BlockRange range = plan.partition.stages[s];
    for (std::int32_t b = range.begin; b < range.end; ++b) {
      const BlockCost& cost =
          plan.costs[static_cast<std::size_t>(plan.blocks[static_cast<std::size_t>(b)].cost)];
      rank.forward += cost.serial(Pass::forward).value();
      rank.backward += cost.serial(Pass::backward).value() + cost.serial(Pass::weight).value();
      for (const auto& pass : cost.tasks) {
        for (std::size_t k = 0; k < kTaskKinds; ++k) {
          const Estimate& duration = pass[k].duration;
          rank.host += duration.by_source[static_cast<std::size_t>(Provenance::constant)].value();
          if (resource_of(static_cast<TaskKind>(k)) == Resource::comm)
            rank.all_to_all += duration.time.value();
        }
      }
    }
  }
  const Rank& slowest = *std::ranges::max_element(ranks, {}, &Rank::time);
  double mean = 0;
  for (const Rank& rank : ranks) mean += rank.time() / static_cast<double>(ranks.size());

  const double microbatches = plan.actions.microbatches, pp = static_cast<double>(plan.layout.pp),
               vp = static_cast<double>(plan.layout.vp);
  // What hides does so under the last backward and the first forward of a chunk; the first rank ends last.
  const double never = plan.exposed_reduction;
  const auto exposed = [&](Seconds collective, double cover) {
    return never * collective.value() + std::max(0.0, (1 - never) * collective.value() - cover / vp);
  };
  const train::RankStep& first = plan.step.front();
  const double reduction =
      exposed(first.reduce_scatter, ranks[0].backward) + exposed(first.all_gather, ranks[0].forward);
  // Plain 1F1B sends and waits twice a microbatch; interleaving hides it.
  const double transfers =
      pp > 1 && vp == 1 ? 2 * microbatches * (plan.transfer_time + plan.transfer_latency).value() : 0;

  ClosedForm out;
  out.slowest_rank = Seconds(slowest.time());
  out.step =
      Seconds(microbatches * slowest.time() + (pp - 1) / vp * mean + transfers + reduction) + first.optimizer;
  out.host = Seconds(slowest.host);
  out.all_to_all = Seconds(slowest.all_to_all);
  return out;
}

}  // namespace tessera::bench
