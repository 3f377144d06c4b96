#include "tessera/train/partition/measure.h"

#include <algorithm>
#include <utility>

namespace tessera::train {
namespace {

/// One time of a partition: of a pair, or of a stage alone.
struct Entry {
  PairSignature signature;  // of the pair; empty for a stage alone
  StageId stage;
  BlockRange blocks;
  bool operator==(const Entry&) const = default;
};

/// The costs with every pair at one end of what is known of it, but for one entry at its upper end.
class EndCosts : public StageCosts {
 public:
  EndCosts(StageCosts& composed, const SignatureOf& signature, const MeasuredPairs& known,
           const MeasureOptions& options, double side, const Entry* raised = nullptr)
      : composed_(composed),
        signature_(signature),
        known_(known),
        options_(options),
        side_(side),
        raised_(raised) {}

  [[nodiscard]] Seconds bound(const PairQuery& query) const override {
    return end_of(signature_(query), composed_.bound(query));
  }
  [[nodiscard]] std::vector<Seconds> times(std::span<const PairQuery> queries) override {
    std::vector<Seconds> out = composed_.times(queries);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = end_of(signature_(queries[i]), out[i]);
    return out;
  }
  /// Serial times are composed too.
  [[nodiscard]] Seconds alone(StageId stage, BlockRange blocks) const override {
    const bool raised = raised_ != nullptr && *raised_ == Entry{{}, stage, blocks};
    return at_end(composed_.alone(stage, blocks), raised ? 1 : side_, options_.composed_error);
  }
  [[nodiscard]] Bytes held(StageId stage, BlockRange blocks) const override {
    return composed_.held(stage, blocks);
  }
  [[nodiscard]] Bytes activation(StageId stage, BlockRange blocks) const override {
    return composed_.activation(stage, blocks);
  }

 private:
  [[nodiscard]] Seconds end_of(const PairSignature& key, Seconds composed) const {
    const double side = raised_ != nullptr && raised_->signature == key ? 1 : side_;
    if (const auto found = known_.find(key); found != known_.end())
      return at_end(found->second.time, side, found->second.error);
    return at_end(composed, side, options_.composed_error);
  }
  // However wrong a measurement may be, no time is negative.
  [[nodiscard]] static Seconds at_end(Seconds time, double side, double error) noexcept {
    return time * std::max(0.0, 1 + side * error);
  }

  StageCosts& composed_;
  const SignatureOf& signature_;
  const MeasuredPairs& known_;
  const MeasureOptions& options_;
  double side_;
  const Entry* raised_;
};

}  // namespace

MeasurePlan plan_measurements(const PartitionProblem& problem, StageCosts& costs,
                              const SignatureOf& signature, MeasuredPairs known,
                              const MeasureOptions& options, const Measure& measure) {
  MeasurePlan plan;
  const auto pairs_of = [&](const Partition& partition) {
    std::vector<PairQuery> out;
    for (const OverlapEdge& edge : problem.graph.edges)
      out.push_back({edge.forward, partition.stages[edge.forward.index()], edge.backward,
                     partition.stages[edge.backward.index()]});
    return out;
  };
  for (;;) {
    EndCosts low(costs, signature, known, options, -1), high(costs, signature, known, options, 1);
    const PartitionResult optimist = solve_partition(problem, low);
    if (optimist.best.empty()) {
      plan.obstacle = optimist.obstacle;
      return plan;
    }
    const Partition& fastest = optimist.best.front().partition;
    const PartitionResult pessimist = solve_partition(problem, high, {.incumbent = fastest});
    plan.choice = pessimist.best.front().partition;
    plan.upper = pessimist.best.front().value.slowest;
    plan.lower = optimist.bound;

    // Whatever entry turns out to be the slowest of the choice: at its upper end, with all others at their
    // lower ends, is there a partition faster by more than the tolerance? One that holds the entry too is
    // not.
    std::vector<Entry> entries;
    std::vector<Seconds> uppers;
    for (const PairQuery& query : pairs_of(plan.choice)) {
      Entry entry{.signature = signature(query)};
      if (std::ranges::find(entries, entry) != entries.end()) continue;
      entries.push_back(std::move(entry));
      uppers.push_back(high.times({&query, 1}).front());
    }
    for (const AloneStage& alone : problem.graph.alone) {
      const BlockRange blocks = plan.choice.stages[alone.stage.index()];
      entries.push_back({.stage = alone.stage, .blocks = blocks});
      uppers.push_back(high.alone(alone.stage, blocks));
    }
    const auto holds = [&](const Partition& partition, const Entry& entry) {
      if (entry.signature.empty()) return partition.stages[entry.stage.index()] == entry.blocks;
      return std::ranges::any_of(pairs_of(partition),
                                 [&](const PairQuery& q) { return signature(q) == entry.signature; });
    };
    std::vector<PairQuery> suspects;  // pairs of the choice, and of what may beat it
    plan.certain = true;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (uppers[i] <= plan.lower * (1 + options.tolerance)) continue;
      // Raising an entry that the optimist's partition lacks changes nothing for it.
      PartitionResult rival;
      if (holds(fastest, entries[i])) {
        EndCosts raised(costs, signature, known, options, -1, &entries[i]);
        rival = solve_partition(problem, raised, {.incumbent = fastest});
      } else {
        rival.bound = optimist.bound;
        rival.best = optimist.best;
      }
      if (uppers[i] <= rival.bound * (1 + options.tolerance)) continue;
      plan.certain = false;
      if (std::cmp_greater_equal(plan.next.size(), options.most)) return plan;
      for (const Partition& partition : {plan.choice, rival.best.front().partition})
        for (const PairQuery& query : pairs_of(partition)) suspects.push_back(query);
    }
    if (plan.certain) return plan;

    // Of those, the one not yet measured that may be slowest. What is faster than any partition's slowest
    // pair even at its upper end is never it.
    const std::vector<Seconds> times = costs.times(suspects);
    std::optional<PairToMeasure> best;
    for (std::size_t i = 0; i < suspects.size(); ++i) {
      PairSignature key = signature(suspects[i]);
      if (known.contains(key) || (best && times[i] <= best->composed)) continue;
      if (times[i] * (1 + options.composed_error) <= plan.lower) continue;
      best = PairToMeasure{.pair = suspects[i], .signature = std::move(key), .composed = times[i]};
    }
    if (!best) return plan;  // what is left in doubt are serial times, and the errors of what was measured
    const std::optional<Seconds> measured = measure ? measure(*best) : std::nullopt;
    known[best->signature] = {measured.value_or(best->composed), options.measured_error};
    plan.next.push_back(*std::move(best));
  }
}

}  // namespace tessera::train
