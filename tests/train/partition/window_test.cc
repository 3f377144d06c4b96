#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "random_problem.h"

namespace tessera::train {
namespace {

using ::testing::StartsWith;

// Blocks of one second and ten bytes; a stage's pair takes as long as it has blocks, the last twice as long.
class PlainCosts : public StageCosts {
 public:
  explicit PlainCosts(int last) : last_(last) {}
  [[nodiscard]] Seconds bound(const PairQuery&) const override { return Seconds(0); }
  [[nodiscard]] std::vector<Seconds> times(std::span<const PairQuery> queries) override {
    std::vector<Seconds> out;
    for (const PairQuery& q : queries) out.push_back(alone(q.forward, q.forward_blocks));
    return out;
  }
  [[nodiscard]] Seconds alone(StageId stage, BlockRange blocks) const override {
    return Seconds((blocks.end - blocks.begin) * (stage == StageId(last_) ? 2 : 1));
  }
  [[nodiscard]] Bytes held(StageId, BlockRange blocks) const override {
    return Bytes(10.0 * (blocks.end - blocks.begin));
  }
  [[nodiscard]] Bytes activation(StageId, BlockRange blocks) const override {
    return Bytes(blocks.end - blocks.begin);
  }

 private:
  int last_;
};

// One stage a rank, self-loops only.
PartitionProblem chain(int stages, int blocks) {
  PartitionProblem problem;
  problem.blocks = blocks;
  for (int s = 0; s < stages; ++s) {
    problem.graph.rank_of_stage.emplace_back(s);
    problem.graph.edges.push_back({StageId(s), StageId(s), 1});
    problem.graph.live.push_back({{stages - s}});
  }
  for (int s = 1; s < stages; ++s) {
    problem.places.emplace_back();
    for (int b = s; b <= blocks - (stages - s); ++b) problem.places.back().push_back(b);
  }
  return problem;
}

Partition cut(std::vector<std::int32_t> boundaries, std::int32_t blocks) {
  Partition out;
  std::int32_t begin = 0;
  boundaries.push_back(blocks);
  for (const std::int32_t end : boundaries) {
    out.stages.push_back({begin, end});
    begin = end;
  }
  return out;
}

TEST(SolveInWindow, WalksToTheOptimum) {
  PlainCosts costs(3);
  const PartitionProblem problem = chain(4, 28);  // 8, 8, 8 and 4 blocks: 8 s each
  const WindowResult far = solve_in_window(problem, problem.places, costs, cut({2, 4, 6}, 28), {.window = 2});
  EXPECT_EQ(far.result.reason, PartitionReason::optimal);
  EXPECT_EQ(far.result.best[0].partition, cut({8, 16, 24}, 28));
  EXPECT_GE(far.moves, 9);  // boundary 3 has 18 blocks to go
  EXPECT_GE(far.solve_time, far.result.solve_time);
  // At the optimum it stays.
  const WindowResult there =
      solve_in_window(problem, problem.places, costs, cut({8, 16, 24}, 28), {.window = 2});
  EXPECT_EQ(there.moves, 0);
  EXPECT_EQ(there.center, cut({8, 16, 24}, 28));
  // A limit of moves is kept.
  const WindowResult limited =
      solve_in_window(problem, problem.places, costs, cut({2, 4, 6}, 28), {.window = 2, .most_moves = 3});
  EXPECT_EQ(limited.moves, 3);
}

TEST(SolveInWindow, EndsWithAsManyAsAreWanted) {
  PlainCosts costs(3);
  const PartitionProblem problem = chain(4, 28);
  const PartitionOptions many{.keep = 10, .widest = 1.5};
  const WindowResult walked =
      solve_in_window(problem, problem.places, costs, cut({6, 12, 18}, 28), {.solve = many, .window = 2});
  EXPECT_GT(walked.moves, 0);
  PartitionProblem window = problem;
  window.places = places_around(problem.places, walked.center, 2);
  const PartitionResult direct = solve_partition(window, costs, many);
  ASSERT_EQ(walked.result.best.size(), direct.best.size());
  EXPECT_GE(direct.best.size(), 10u);
  for (std::size_t k = 0; k < direct.best.size(); ++k)
    EXPECT_EQ(walked.result.best[k].value.work, direct.best[k].value.work);
}

TEST(SolveInWindow, MovesAnIllegalCenterFirst) {
  PlainCosts costs(3);
  PartitionProblem problem = chain(4, 28);
  problem.places = {{10, 20}, {10, 20, 22}, {10, 20, 24}};  // one by one the nearest to 9, 11, 12 would be 10
  const WindowResult result =
      solve_in_window(problem, problem.places, costs, cut({9, 11, 12}, 28), {.window = 1});
  EXPECT_EQ(result.result.reason, PartitionReason::optimal);
  ASSERT_FALSE(result.result.best.empty());
  EXPECT_EQ(result.result.best[0].partition, cut({10, 20, 24}, 28));
}

TEST(SolveInWindow, LooksForMemoryWhereTheCenterHasTooLittle) {
  PlainCosts costs(3);
  PartitionProblem problem = chain(4, 28);
  problem.budget.assign(4, Bytes(1000));
  problem.budget[0] = Bytes(3 * (10 + 4));  // rank 0 keeps four activations of each of three blocks
  const WindowResult result =
      solve_in_window(problem, problem.places, costs, cut({9, 17, 24}, 28), {.window = 2});
  EXPECT_EQ(result.result.reason, PartitionReason::optimal);
  ASSERT_FALSE(result.result.best.empty());
  EXPECT_EQ(result.result.best[0].partition.stages[0].end, 3);
  EXPECT_EQ(result.result.best[0].value.slowest.value(), 10);  // 3, 10, 10 and 5 blocks
}

// More stages than a proof of the least excess is worth: the descent has to find the way.
TEST(SolveInWindow, LooksForMemoryAmongManyStages) {
  constexpr int kStages = 16, kBlocks = 80;
  PlainCosts costs(kStages - 1);
  PartitionProblem problem = chain(kStages, kBlocks);
  // Five blocks a rank exceed the first eight ranks' room, where only three fit, and the last have room for
  // eight.
  for (int r = 0; r < kStages; ++r)
    problem.budget.emplace_back((r < kStages / 2 ? 3 : 8) * (10.0 + (kStages - r)));
  std::vector<std::int32_t> even;
  for (int s = 1; s < kStages; ++s) even.push_back(5 * s);
  const WindowResult result =
      solve_in_window(problem, problem.places, costs, cut(even, kBlocks), {.window = 2});
  EXPECT_EQ(result.result.reason, PartitionReason::optimal);
  ASSERT_FALSE(result.result.best.empty());
  EXPECT_TRUE(evaluate(problem, costs, result.result.best[0].partition));
  EXPECT_EQ(result.result.best[0].value.slowest.value(),
            8);  // 24 blocks, then 7 of 8 and the last of 4 at most
}

TEST(SolveInWindow, ReachesTheLegalOptimumOnRandomProblems) {
  int equal = 0, feasible = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    testing::RandomProblem random = testing::random_problem(seed, {.most_partitions = 300});
    SCOPED_TRACE(random.words);
    const PartitionResult whole =
        solve_partition(random.problem, *random.costs, {.method = PartitionMethod::brute_force});
    const std::vector<std::vector<std::int32_t>> legal = random.problem.places;
    testing::Random draw(seed);
    Partition center = cut({}, random.problem.blocks);
    center.stages.resize(static_cast<std::size_t>(random.problem.stages()),
                         {random.problem.blocks, random.problem.blocks});
    if (const auto some = testing::some_partition(draw, random.problem)) center = *some;
    const WindowResult result = solve_in_window(random.problem, legal, *random.costs, center, {.window = 1});
    if (whole.best.empty()) {
      EXPECT_EQ(result.result.reason, PartitionReason::infeasible);
      EXPECT_NE(result.result.obstacle, "");
      continue;
    }
    ++feasible;
    if (result.result.best.empty()) continue;  // no way there leads through windows that lack less
    EXPECT_TRUE(evaluate(random.problem, *random.costs, result.result.best[0].partition));
    EXPECT_GE(result.result.best[0].value.slowest, whole.best[0].value.slowest);
    equal += result.result.best[0].value.slowest == whole.best[0].value.slowest ? 1 : 0;
  }
  EXPECT_GT(equal, feasible * 6 / 10);
}

std::string obstacle(const PartitionProblem& problem) {
  PlainCosts costs(-1);
  const PartitionResult result = solve_partition(problem, costs, {.method = PartitionMethod::brute_force});
  EXPECT_EQ(result.reason, PartitionReason::infeasible);
  return result.obstacle;
}

TEST(Obstacle, NamesTheBoundary) {
  PartitionProblem problem = chain(3, 12);
  problem.places = {{6, 7}, {3, 5}};
  EXPECT_EQ(
      obstacle(problem),
      "boundary 2 has no place: stage 1 starts at block 6 at the earliest, and the boundary lies at block "
      "5 at the latest, 2 blocks too early");
  problem.places = {{6, 7}, {12}};
  EXPECT_THAT(obstacle(problem), StartsWith("the last stage has no place: it starts at block 12"));
  problem.places = {{6, 7}, {}};
  EXPECT_EQ(obstacle(problem), "boundary 2 has no place at all");
}

TEST(Obstacle, NamesTheRankAndWhatItLacks) {
  PartitionProblem problem = chain(3, 12);
  problem.places = {{3, 4, 5}, {8, 9}};
  problem.budget = {Bytes(38), Bytes(1000), Bytes(1000)};
  // At least three blocks of ten bytes and three activations.
  EXPECT_EQ(obstacle(problem),
            "rank 0 needs at least 39 of its 38 bytes even with the lightest stages (1 too many)");
  problem.budget = {Bytes(38), Bytes(1000), Bytes(5)};
  EXPECT_EQ(
      obstacle(problem),
      "rank 2 needs at least 33 of its 5 bytes even with the lightest stages (28 too many); 1 more rank "
      "needs too much too");
}

TEST(Obstacle, SaysWhenTheLeastIsNotProved) {
  constexpr int kStages = 16, kBlocks = 80;
  PartitionProblem problem = chain(kStages, kBlocks);
  for (int r = 0; r < kStages; ++r) problem.budget.emplace_back(4.5 * (10.0 + (kStages - r)));
  PlainCosts costs(kStages - 1);
  const WindowResult result = solve_in_window(problem, problem.places, costs,
                                              cut(
                                                  [] {
                                                    std::vector<std::int32_t> even;
                                                    for (int s = 1; s < kStages; ++s) even.push_back(5 * s);
                                                    return even;
                                                  }(),
                                                  kBlocks),
                                              {.window = 2});
  EXPECT_EQ(result.result.reason, PartitionReason::infeasible);
  EXPECT_THAT(result.result.obstacle,
              StartsWith("every rank can fit alone, but not all at once: in the best"));
}

TEST(Obstacle, NamesWhatAllRanksLackTogether) {
  PartitionProblem problem = chain(3, 12);
  // Blocks cost 13, 12 and 11 bytes on the three ranks; room for 4, 3 and 4 blocks: one is left over.
  problem.budget = {Bytes(52), Bytes(36), Bytes(44)};
  EXPECT_EQ(
      obstacle(problem),
      "every rank can fit alone, but not all at once: at best rank 2 needs 55 of its 44 bytes (11 too many)");
}

}  // namespace
}  // namespace tessera::train
