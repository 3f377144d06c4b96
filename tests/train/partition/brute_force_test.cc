#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "random_problem.h"

namespace tessera::train {
namespace {

using ::testing::ElementsAre;

// Two ranks, one stage each, six blocks: what fits on a page.
class TwoStages : public StageCosts {
 public:
  [[nodiscard]] Seconds bound(const PairQuery&) const override { return Seconds(0); }
  [[nodiscard]] std::vector<Seconds> times(std::span<const PairQuery> queries) override {
    std::vector<Seconds> out;
    for (const PairQuery& q : queries)
      out.emplace_back((q.forward_blocks.end - q.forward_blocks.begin) +
                       2 * (q.backward_blocks.end - q.backward_blocks.begin) + 0.5 * q.forward.value());
    return out;
  }
  [[nodiscard]] Seconds alone(StageId, BlockRange blocks) const override {
    return Seconds(4 * (blocks.end - blocks.begin));
  }
  [[nodiscard]] Bytes held(StageId, BlockRange blocks) const override {
    return Bytes(10 * (blocks.end - blocks.begin));
  }
  [[nodiscard]] Bytes activation(StageId, BlockRange blocks) const override {
    return Bytes(blocks.end - blocks.begin);
  }
};

PartitionProblem two_stages() {
  PartitionProblem problem;
  problem.blocks = 6;
  problem.graph.rank_of_stage = {RankId(0), RankId(1)};
  problem.graph.edges = {{StageId(0), StageId(0), 7}, {StageId(1), StageId(1), 8}};
  problem.graph.live = {{{2}}, {{1}}};
  problem.places = {{1, 2, 3, 4, 5}};
  return problem;
}

std::vector<std::int32_t> firsts(const PartitionResult& result) {
  std::vector<std::int32_t> out;
  for (const PartitionChoice& choice : result.best) out.push_back(choice.partition.stages[1].begin);
  return out;
}

TEST(Evaluate, IsTheDefinition) {
  TwoStages costs;
  const PartitionProblem problem = two_stages();
  const auto value = evaluate(problem, costs, {{{0, 2}, {2, 6}}});
  ASSERT_TRUE(value) << value.error().text();
  EXPECT_EQ(value->slowest.value(), 12.5);
  EXPECT_EQ(value->work.value(), 7 * 6 + 8 * 12.5);
  EXPECT_EQ(value->worst_rank.value(), 8 * 12.5);
}

TEST(Evaluate, CountsDirectionsAndStagesAlone) {
  TwoStages costs;
  PartitionProblem problem = two_stages();
  problem.graph.rank_of_stage = {RankId(0), RankId(0)};
  problem.graph.edges = {{StageId(0), StageId(1), 3}, {StageId(1), StageId(0), 4}};
  problem.graph.live = {{{2, 0}, {1, 1}}};
  auto value = evaluate(problem, costs, {{{0, 2}, {2, 6}}});
  ASSERT_TRUE(value) << value.error().text();
  EXPECT_EQ(value->slowest.value(), 10);                       // F of 2 blocks, B of 4
  EXPECT_EQ(value->work.value(), 3 * 10 + 4 * (4 + 4 + 0.5));  // the other way round 8.5
  problem.graph.edges.clear();
  problem.graph.alone = {{StageId(0), 5}, {StageId(1), 5}};
  value = evaluate(problem, costs, {{{0, 2}, {2, 6}}});
  ASSERT_TRUE(value) << value.error().text();
  EXPECT_EQ(value->slowest.value(), 16);
  EXPECT_EQ(value->worst_rank.value(), 5 * 24);
}

TEST(Evaluate, RefusesWithTheNumbers) {
  TwoStages costs;
  PartitionProblem problem = two_stages();
  problem.places = {{2, 4}};
  EXPECT_EQ(evaluate(problem, costs, {{{0, 3}, {3, 6}}}).error().message,
            "boundary 1 may not lie at block 3");
  EXPECT_EQ(evaluate(problem, costs, {{{0, 2}, {3, 6}}}).error().message,
            "stage 1 holds blocks 3 to 6; expected to start at 2");
  EXPECT_EQ(evaluate(problem, costs, {{{0, 6}}}).error().message,
            "the partition has 1 stages, the schedule 2");
  EXPECT_EQ(evaluate(problem, costs, {{{0, 2}, {2, 5}}}).error().message,
            "the partition ends at block 5 of 6");
  problem.places = {{2, 4, 6}};
  EXPECT_EQ(evaluate(problem, costs, {{{0, 6}, {6, 6}}}).error().message, "stage 1 is empty");
  problem.empty_stages = true;
  EXPECT_TRUE(evaluate(problem, costs, {{{0, 6}, {6, 6}}}));
  problem.budget = {Bytes(40), Bytes(1000)};  // rank 0 keeps two activations: 12 a block
  EXPECT_EQ(evaluate(problem, costs, {{{0, 4}, {4, 6}}}).error().message,
            "rank 0 needs 48 of its 40 bytes (8 too many)");
  EXPECT_TRUE(evaluate(problem, costs, {{{0, 2}, {2, 6}}}));
}

TEST(BruteForcePartition, FindsTheBestAndTheNext) {
  TwoStages costs;
  PartitionProblem problem = two_stages();
  // By boundary: slowest 15.5, 12.5, 9.5, 12, 15; Σ 145, 142, 139, 136, 133.
  PartitionResult result = solve_partition(problem, costs, {.method = PartitionMethod::brute_force});
  EXPECT_EQ(result.reason, PartitionReason::optimal);
  EXPECT_THAT(firsts(result), ElementsAre(3));
  EXPECT_EQ(result.best[0].value.work.value(), 7 * 9 + 8 * 9.5);
  EXPECT_EQ(result.reach.value(), 9.5);
  EXPECT_EQ(result.bound.value(), 9.5);
  EXPECT_EQ(result.variables, 10);  // five ranges of each stage; self-loops have no z

  // Three stay within 12.5, of which the optimum has not the least Σ.
  result =
      solve_partition(problem, costs, {.method = PartitionMethod::brute_force, .keep = 3, .widest = 2.0});
  EXPECT_EQ(result.reach.value(), 12.5);
  EXPECT_THAT(firsts(result), ElementsAre(3, 4, 2));
  // Nothing else within 10 % of the optimum.
  result = solve_partition(problem, costs, {.method = PartitionMethod::brute_force, .keep = 3});
  EXPECT_DOUBLE_EQ(result.reach.value(), 1.1 * 9.5);
  EXPECT_THAT(firsts(result), ElementsAre(3));
  // The optimum is not among the two of least Σ, and comes first all the same.
  problem.places = {{2, 3, 4, 5}};
  result =
      solve_partition(problem, costs, {.method = PartitionMethod::brute_force, .keep = 2, .widest = 1.6});
  EXPECT_THAT(firsts(result), ElementsAre(3, 4));
}

TEST(BruteForcePartition, IsHonestAboutItsLimits) {
  TwoStages costs;
  PartitionProblem problem = two_stages();
  const PartitionResult big =
      solve_partition(problem, costs, {.method = PartitionMethod::brute_force, .work_limit = 4});
  EXPECT_EQ(big.reason, PartitionReason::too_big);
  EXPECT_TRUE(big.best.empty());
  problem.budget = {Bytes(30), Bytes(30)};
  const PartitionResult none = solve_partition(problem, costs, {.method = PartitionMethod::brute_force});
  EXPECT_EQ(none.reason, PartitionReason::infeasible);
  EXPECT_NE(none.obstacle, "");
}

TEST(BruteForcePartition, AgreesWithTheCheckerOnEveryPartition) {
  int feasible = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    testing::RandomProblem random = testing::random_problem(seed, {.most_partitions = 300});
    SCOPED_TRACE(random.words);
    // All partitions by recursion, each valued by evaluate().
    std::vector<PartitionChoice> all;
    std::vector<BlockRange> stages;
    const auto extend = [&](const auto& self, std::int32_t begin) -> void {
      if (stages.size() == random.problem.places.size()) {
        Partition partition{stages};
        partition.stages.push_back({begin, random.problem.blocks});
        if (const auto value = evaluate(random.problem, *random.costs, partition))
          all.push_back({partition, *value});
        return;
      }
      for (const std::int32_t end : random.problem.places[stages.size()]) {
        stages.push_back({begin, end});
        self(self, end);
        stages.pop_back();
      }
    };
    extend(extend, 0);
    const PartitionResult result = solve_partition(
        random.problem, *random.costs, {.method = PartitionMethod::brute_force, .keep = 4, .widest = 1.2});
    if (all.empty()) {
      ++refused;
      EXPECT_EQ(result.reason, PartitionReason::infeasible);
      continue;
    }
    ++feasible;
    ASSERT_EQ(result.reason, PartitionReason::optimal);
    const auto best = std::ranges::min_element(
        all, {}, [](const PartitionChoice& c) { return std::tuple(c.value.slowest, c.value.work); });
    EXPECT_EQ(result.best[0].value.slowest, best->value.slowest);
    EXPECT_EQ(result.best[0].value.work, best->value.work);
    std::vector<Seconds> slowest;
    for (const PartitionChoice& c : all) slowest.push_back(c.value.slowest);
    std::ranges::sort(slowest);
    const Seconds widest = best->value.slowest * 1.2;
    EXPECT_EQ(result.reach, slowest.size() >= 4 ? std::min(widest, slowest[3]) : widest);
    std::vector<Seconds> works;
    for (const PartitionChoice& c : all)
      if (c.value.slowest <= result.reach) works.push_back(c.value.work);
    std::ranges::sort(works);
    works.resize(std::min<std::size_t>(works.size(), 4));
    for (std::size_t i = 1; i < result.best.size(); ++i) {
      EXPECT_LE(result.best[i].value.slowest, result.reach);
      EXPECT_LE(result.best[i].value.work, works.back());
    }
    EXPECT_GE(result.best.size(), works.size());
  }
  EXPECT_GT(feasible, 90);
  EXPECT_GT(refused, 5);
}

TEST(CountVariables, PrunesWhatNoBetterPartitionUses) {
  TwoStages costs;
  PartitionProblem problem = two_stages();
  problem.graph.rank_of_stage = {RankId(0), RankId(0)};
  problem.graph.edges = {{StageId(0), StageId(1), 3}, {StageId(1), StageId(0), 4}};
  problem.graph.live = {{{2, 0}, {1, 1}}};
  EXPECT_EQ(count_variables(problem), 5 + 5 + 5);  // neighbours share a boundary
  // F and B of x and 6 − x blocks: 12 − x and 6 + x + ½; within 9.5 is x = 3 alone.
  EXPECT_EQ(count_variables(problem, costs, Seconds(9.5)), 3);
  EXPECT_EQ(count_variables(problem, costs, Seconds(9.4)), 0);
}

TEST(Front, KeepsWhatNothingBeats) {
  const auto choice = [](double slowest, double work) {
    return PartitionChoice{{}, {Seconds(slowest), Seconds(work), Seconds(0)}};
  };
  const auto kept =
      front({choice(3, 5), choice(1, 9), choice(2, 9), choice(2, 7), choice(3, 7), choice(1, 10)});
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept[0].value.work.value(), 9);
  EXPECT_EQ(kept[1].value.work.value(), 7);
  EXPECT_EQ(kept[2].value.work.value(), 5);
}

}  // namespace
}  // namespace tessera::train
