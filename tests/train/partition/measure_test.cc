// Measuring only what can change the choice: the truth is drawn within the errors, and the claims must hold.
#include "tessera/train/partition/measure.h"

#include <gtest/gtest.h>

#include <utility>

#include "train/partition/random_problem.h"

namespace tessera::train {
namespace {

using testing::Random;
using testing::random_problem;
using testing::RandomProblem;
using testing::rounds;

PairSignature signature(const PairQuery& q) {
  return {q.forward.value(),  q.forward_blocks.begin,  q.forward_blocks.end,
          q.backward.value(), q.backward_blocks.begin, q.backward_blocks.end};
}

// The composed costs, each off by its own factor.
class TrueCosts : public StageCosts {
 public:
  TrueCosts(StageCosts& composed, std::uint64_t seed) : composed_(composed), seed_(seed) {}
  [[nodiscard]] Seconds bound(const PairQuery& query) const override {
    return composed_.bound(query) * factor(signature(query));
  }
  [[nodiscard]] std::vector<Seconds> times(std::span<const PairQuery> queries) override {
    std::vector<Seconds> out = composed_.times(queries);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] *= factor(signature(queries[i]));
    return out;
  }
  [[nodiscard]] Seconds alone(StageId stage, BlockRange blocks) const override {
    return composed_.alone(stage, blocks) * factor({stage.value(), blocks.begin, blocks.end});
  }
  [[nodiscard]] Bytes held(StageId s, BlockRange b) const override { return composed_.held(s, b); }
  [[nodiscard]] Bytes activation(StageId s, BlockRange b) const override {
    return composed_.activation(s, b);
  }

 private:
  [[nodiscard]] double factor(const PairSignature& key) const {
    std::uint64_t seed = seed_;
    for (const std::int32_t part : key) seed = seed * 1'000'003 + static_cast<std::uint64_t>(part);
    return 0.85 + 0.3 * Random(seed).unit();
  }
  StageCosts& composed_;
  std::uint64_t seed_;
};

// A truth that every measurement allows and that is hardest on the choice: one of its entries at the upper
// end, all else at the lower.
class CornerCosts : public StageCosts {
 public:
  CornerCosts(StageCosts& composed, const MeasuredPairs& known, PairSignature raised)
      : composed_(composed), known_(known), raised_(std::move(raised)) {}
  [[nodiscard]] Seconds bound(const PairQuery&) const override { return Seconds(0); }
  [[nodiscard]] std::vector<Seconds> times(std::span<const PairQuery> queries) override {
    std::vector<Seconds> out = composed_.times(queries);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const PairSignature key = signature(queries[i]);
      const double side = key == raised_ ? 1 : -1;
      const auto found = known_.find(key);
      out[i] = found == known_.end() ? out[i] * (1 + 0.15 * side)
                                     : found->second.time * (1 + found->second.error * side);
    }
    return out;
  }
  [[nodiscard]] Seconds alone(StageId stage, BlockRange blocks) const override {
    const bool raised = raised_ == PairSignature{stage.value(), blocks.begin, blocks.end};
    return composed_.alone(stage, blocks) * (raised ? 1.15 : 0.85);
  }
  [[nodiscard]] Bytes held(StageId s, BlockRange b) const override { return composed_.held(s, b); }
  [[nodiscard]] Bytes activation(StageId s, BlockRange b) const override {
    return composed_.activation(s, b);
  }

 private:
  StageCosts& composed_;
  const MeasuredPairs& known_;
  PairSignature raised_;
};

// Every time that a partition has.
std::vector<PairSignature> entries_of(const PartitionProblem& problem, const Partition& partition) {
  std::vector<PairSignature> out;
  const auto range = [&](StageId stage) { return partition.stages[stage.index()]; };
  for (const OverlapEdge& e : problem.graph.edges)
    out.push_back(signature({e.forward, range(e.forward), e.backward, range(e.backward)}));
  for (const AloneStage& a : problem.graph.alone)
    out.push_back({a.stage.value(), range(a.stage).begin, range(a.stage).end});
  return out;
}

TEST(PlanMeasurements, NeverCertifiesAWorseChoiceThanItSays) {
  int certain = 0, measured = 0, draws = 0, corners = 0;
  for (int i = 0; i < rounds(400, 4'000); ++i) {
    RandomProblem random = random_problem(300'000 + static_cast<std::uint64_t>(i));
    SCOPED_TRACE(random.words);
    TrueCosts truth(*random.costs, static_cast<std::uint64_t>(i));
    Random noise(static_cast<std::uint64_t>(i));
    MeasuredPairs known;
    const auto measure = [&](const PairToMeasure& pair) -> std::optional<Seconds> {
      const Seconds time = truth.times({&pair.pair, 1}).front() * (0.99 + 0.02 * noise.unit()) / 1.0001;
      known[pair.signature] = {time, 0.01};
      return time;
    };
    const MeasurePlan plan = plan_measurements(random.problem, *random.costs, signature, {}, {}, measure);
    const PartitionResult best = solve_partition(random.problem, truth);
    ASSERT_EQ(best.best.empty(), !plan.obstacle.empty());
    if (best.best.empty()) continue;
    ++draws;
    measured += static_cast<int>(plan.next.size());
    const auto chosen = evaluate(random.problem, truth, plan.choice);
    ASSERT_TRUE(chosen);
    const double optimum = best.bound.value(), slowest = chosen->slowest.value();
    ASSERT_LE(plan.lower.value(), optimum * (1 + 1e-3));
    ASSERT_LE(slowest, plan.upper.value() * (1 + 1e-3));
    if (!plan.certain) continue;
    ++certain;
    ASSERT_LE(slowest, optimum * 1.01 * (1 + 1e-3));
    for (PairSignature& raised : entries_of(random.problem, plan.choice)) {
      CornerCosts corner(*random.costs, known, std::move(raised));
      const auto there = evaluate(random.problem, corner, plan.choice);
      const PartitionResult rival = solve_partition(random.problem, corner);
      ASSERT_TRUE(there);
      ASSERT_LE(there->slowest.value(), rival.bound.value() * 1.01 * (1 + 1e-9));
      ASSERT_LE(there->slowest.value(), plan.upper.value() * (1 + 1e-9));
      ASSERT_GE(rival.best.front().value.slowest.value(), plan.lower.value() * (1 - 1e-9));
      ++corners;
    }
  }
  EXPECT_GT(certain, 50);
  EXPECT_GT(measured, 100);
  EXPECT_GE(draws + corners, 1'000);
}

// What one pair was measured badly does not make the others worse.
TEST(PlanMeasurements, KeepsTheErrorOfEachMeasurement) {
  RandomProblem random = random_problem(300'001);
  random.problem.budget.clear();
  const Partition choice = solve_partition(random.problem, *random.costs).best.front().partition;
  MeasuredPairs known;
  for (const PairQuery& query : possible_pairs(random.problem))
    known[signature(query)] = {random.costs->times({&query, 1}).front(), 0.002};
  const MeasurePlan exact = plan_measurements(random.problem, *random.costs, signature, known);
  PairQuery unused{StageId(0), {0, 0}, StageId(0), {0, 0}};
  known[signature(unused)] = {Seconds(1), 0.5};
  const MeasurePlan same = plan_measurements(random.problem, *random.costs, signature, known);
  EXPECT_EQ(exact.upper, same.upper);
  EXPECT_EQ(exact.lower, same.lower);
  EXPECT_LT(exact.upper / exact.lower, 1.005);
  EXPECT_EQ(exact.choice, choice);
}

TEST(PlanMeasurements, AsksForNothingWhenNothingCanChange) {
  RandomProblem random = random_problem(1);
  for (auto& places : random.problem.places) places.resize(1);
  random.problem.budget.clear();
  const MeasurePlan plan = plan_measurements(random.problem, *random.costs, signature, {},
                                             {.composed_error = 0.001, .measured_error = 0.001});
  EXPECT_TRUE(plan.next.empty());
}

}  // namespace
}  // namespace tessera::train
