#include <gtest/gtest.h>

#include "random_problem.h"

namespace tessera::train {
namespace {

TEST(PartitionMilp, AgreesWithBruteForce) {
  int feasible = 0, refused = 0;
  for (int seed = 1; seed <= testing::rounds(300, 3000); ++seed) {
    testing::RandomProblem random =
        testing::random_problem(static_cast<std::uint64_t>(seed), {.most_partitions = 300});
    SCOPED_TRACE(random.words);
    const PartitionResult all =
        solve_partition(random.problem, *random.costs, {.method = PartitionMethod::brute_force});
    const PartitionResult milp =
        solve_partition(random.problem, *random.costs, {.method = PartitionMethod::milp});
    ASSERT_EQ(milp.reason, all.reason) << name(milp.reason) << " for " << name(all.reason);
    EXPECT_LE(milp.variables_pruned, milp.variables);
    if (all.reason == PartitionReason::infeasible) {
      ++refused;
      continue;
    }
    ++feasible;
    const PartitionValue best = all.best[0].value;
    EXPECT_EQ(milp.best[0].value.slowest, best.slowest);
    EXPECT_NEAR(milp.best[0].value.work.value(), best.work.value(), 1e-7 * best.work.value());
    EXPECT_EQ(milp.bound, best.slowest);
    EXPECT_EQ(milp.gap, 0);

    // With an incumbent, the worst one even, the same comes out of a smaller programme.
    const PartitionResult some = solve_partition(
        random.problem, *random.costs, {.method = PartitionMethod::brute_force, .keep = 20, .widest = 1e9});
    const auto worst =
        std::ranges::max_element(some.best, {}, [](const PartitionChoice& c) { return c.value.slowest; });
    const PartitionResult pruned = solve_partition(
        random.problem, *random.costs, {.method = PartitionMethod::milp, .incumbent = worst->partition});
    ASSERT_EQ(pruned.reason, PartitionReason::optimal);
    EXPECT_EQ(pruned.best[0].value.slowest, best.slowest);
    EXPECT_NEAR(pruned.best[0].value.work.value(), best.work.value(), 1e-7 * best.work.value());
    EXPECT_LE(pruned.variables_pruned, milp.variables_pruned);
    EXPECT_EQ(pruned.variables_pruned, count_variables(random.problem, *random.costs, worst->value.slowest));
  }
  EXPECT_GT(feasible, 200);
  EXPECT_GT(refused, 10);
}

// One stage per rank; the least slowest pair needs 10,000,000,001 bytes.
class LargeStages : public StageCosts {
 public:
  [[nodiscard]] Seconds bound(const PairQuery&) const override { return Seconds(0); }
  [[nodiscard]] std::vector<Seconds> times(std::span<const PairQuery> queries) override {
    std::vector<Seconds> out;
    for (const PairQuery& q : queries) out.emplace_back(q.forward_blocks.end - q.forward_blocks.begin);
    return out;
  }
  [[nodiscard]] Seconds alone(StageId, BlockRange) const override { return Seconds(0); }
  [[nodiscard]] Bytes held(StageId stage, BlockRange blocks) const override {
    return Bytes(stage == StageId(0) && blocks.end == 3 ? 10'000'000'001.0 : 1.0);
  }
  [[nodiscard]] Bytes activation(StageId, BlockRange) const override { return Bytes(0); }
};

TEST(PartitionMilp, IsNotLooseByItsTolerance) {
  LargeStages costs;
  PartitionProblem problem;
  problem.blocks = 6;
  problem.graph.rank_of_stage = {RankId(0), RankId(1)};
  problem.graph.edges = {{StageId(0), StageId(0), 7}, {StageId(1), StageId(1), 8}};
  problem.graph.live = {{{2}}, {{1}}};
  problem.places = {{1, 2, 3, 4, 5}};
  const PartitionOptions options{.method = PartitionMethod::milp};
  EXPECT_EQ(solve_partition(problem, costs, options).best[0].value.slowest.value(), 3);
  problem.budget = {Bytes(10'000'000'001.0), Bytes(100)};
  EXPECT_EQ(solve_partition(problem, costs, options).best[0].value.slowest.value(), 3);
  problem.budget = {Bytes(10'000'000'000.0), Bytes(100)};
  const PartitionResult result = solve_partition(problem, costs, options);
  EXPECT_EQ(result.reason, PartitionReason::optimal);
  EXPECT_EQ(result.best[0].value.slowest.value(), 4);
}

TEST(PartitionMilp, KeepsTheIncumbentAtItsTimeLimit) {
  testing::RandomProblem random = testing::random_problem(2, {.most_ranks = 4, .most_chunks = 2});
  const PartitionResult all = solve_partition(
      random.problem, *random.costs, {.method = PartitionMethod::brute_force, .keep = 5, .widest = 10});
  ASSERT_FALSE(all.best.empty());
  const PartitionResult stopped = solve_partition(
      random.problem, *random.costs,
      {.method = PartitionMethod::milp, .incumbent = all.best.back().partition, .time_limit = Seconds(0)});
  ASSERT_EQ(stopped.best.size(), 1u);
  EXPECT_LE(stopped.best[0].value.slowest, all.best.back().value.slowest);
  EXPECT_LE(stopped.bound, all.best[0].value.slowest);
}

}  // namespace
}  // namespace tessera::train
