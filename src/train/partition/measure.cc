#include "tessera/train/partition/measure.h"

#include <algorithm>
#include <utility>

namespace tessera::train {
namespace {

/// The costs with every pair at one end of what is known of it.
class EndCosts : public StageCosts {
 public:
  EndCosts(StageCosts& composed, const SignatureOf& signature, const MeasuredPairs& known,
           const MeasureOptions& options, double side)
      : composed_(composed), signature_(signature), known_(known), options_(options), side_(side) {}

  [[nodiscard]] Seconds bound(const PairQuery& query) const override {
    if (const auto found = known_.find(signature_(query)); found != known_.end())
      return measured(found->second);
    return composed_.bound(query) * (1 + side_ * options_.composed_error);
  }
  [[nodiscard]] std::vector<Seconds> times(std::span<const PairQuery> queries) override {
    std::vector<Seconds> out = composed_.times(queries);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto found = known_.find(signature_(queries[i]));
      out[i] =
          found != known_.end() ? measured(found->second) : out[i] * (1 + side_ * options_.composed_error);
    }
    return out;
  }
  /// Serial times are composed too.
  [[nodiscard]] Seconds alone(StageId stage, BlockRange blocks) const override {
    return composed_.alone(stage, blocks) * (1 + side_ * options_.composed_error);
  }
  [[nodiscard]] Bytes held(StageId stage, BlockRange blocks) const override {
    return composed_.held(stage, blocks);
  }
  [[nodiscard]] Bytes activation(StageId stage, BlockRange blocks) const override {
    return composed_.activation(stage, blocks);
  }

 private:
  [[nodiscard]] Seconds measured(Seconds time) const noexcept {
    return time * (1 + side_ * options_.measured_error);
  }

  StageCosts& composed_;
  const SignatureOf& signature_;
  const MeasuredPairs& known_;
  const MeasureOptions& options_;
  double side_;
};

}  // namespace

MeasurePlan plan_measurements(const PartitionProblem& problem, StageCosts& costs,
                              const SignatureOf& signature, MeasuredPairs known,
                              const MeasureOptions& options, const Measure& measure) {
  MeasurePlan plan;
  for (;;) {
    EndCosts low(costs, signature, known, options, -1), high(costs, signature, known, options, 1);
    const PartitionResult optimist = solve_partition(problem, low);
    const PartitionResult pessimist = solve_partition(problem, high);
    if (optimist.best.empty() || pessimist.best.empty()) {
      plan.obstacle = optimist.obstacle;
      return plan;
    }
    plan.choice = pessimist.best.front().partition;
    plan.upper = pessimist.best.front().value.slowest;
    plan.lower = optimist.bound;
    plan.certain = plan.upper <= plan.lower * (1 + options.tolerance);
    if (plan.certain || std::cmp_greater_equal(plan.next.size(), options.most)) return plan;

    // The pair not yet measured that stands most in the way: of the partition that could be fastest, the one
    // that may be slowest; when all of those are known, of the partition chosen.
    std::optional<PairToMeasure> best;
    Seconds most;
    const Partition* candidates[] = {&optimist.best.front().partition, &plan.choice};
    for (const Partition* partition : candidates) {
      if (best) break;
      std::vector<PairQuery> queries;
      for (const OverlapEdge& edge : problem.graph.edges)
        queries.push_back({edge.forward, partition->stages[edge.forward.index()], edge.backward,
                           partition->stages[edge.backward.index()]});
      const std::vector<Seconds> times = costs.times(queries);
      for (std::size_t i = 0; i < queries.size(); ++i) {
        PairSignature key = signature(queries[i]);
        if (known.contains(key) || (best && times[i] <= most)) continue;
        // Even at its upper end it could not spoil the partition: measuring it decides nothing.
        if (times[i] * (1 + options.composed_error) <= plan.lower * (1 + options.tolerance)) continue;
        most = times[i];
        best = PairToMeasure{.pair = queries[i], .signature = std::move(key), .composed = times[i]};
      }
    }
    if (!best) return plan;  // only serial times are left, and nobody measures those here
    const std::optional<Seconds> measured = measure ? measure(*best) : std::nullopt;
    known[best->signature] = measured.value_or(best->composed);
    plan.next.push_back(*std::move(best));
  }
}

}  // namespace tessera::train
