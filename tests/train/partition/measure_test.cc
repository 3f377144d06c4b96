// Measuring only what can change the choice: the truth is drawn within the errors, and the claims must hold.
#include "tessera/train/partition/measure.h"

#include <gtest/gtest.h>

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

TEST(PlanMeasurements, NeverCertifiesAWorseChoiceThanItSays) {
  int certain = 0, measured = 0;
  for (int i = 0; i < rounds(300, 3'000); ++i) {
    RandomProblem random = random_problem(300'000 + static_cast<std::uint64_t>(i));
    TrueCosts truth(*random.costs, static_cast<std::uint64_t>(i));
    Random noise(static_cast<std::uint64_t>(i));
    const MeasurePlan plan = plan_measurements(random.problem, *random.costs, signature, {}, {},
                                               [&](const PairToMeasure& pair) -> std::optional<Seconds> {
                                                 return truth.times({&pair.pair, 1}).front() *
                                                        (0.99 + 0.02 * noise.unit()) / 1.0001;
                                               });
    const PartitionResult best = solve_partition(random.problem, truth);
    ASSERT_EQ(best.best.empty(), !plan.obstacle.empty()) << random.words;
    if (best.best.empty()) continue;
    const auto chosen = evaluate(random.problem, truth, plan.choice);
    ASSERT_TRUE(chosen) << random.words;
    const double optimum = best.bound.value(), slowest = chosen->slowest.value();
    ASSERT_LE(plan.lower.value(), optimum * (1 + 1e-3)) << random.words;
    ASSERT_LE(slowest, plan.upper.value() * (1 + 1e-3)) << random.words;
    if (plan.certain) {
      ASSERT_LE(slowest, optimum * 1.01 * (1 + 1e-3)) << random.words;
    }
    certain += plan.certain ? 1 : 0;
    measured += static_cast<int>(plan.next.size());
  }
  EXPECT_GT(certain, 20);
  EXPECT_GT(measured, 100);
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
