// The sweep at limits that leave it undecided: what it then says has to be true all the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "train/partition/random_problem.h"

namespace tessera::train {
namespace {

using ::testing::HasSubstr;
using testing::random_problem;
using testing::RandomProblem;
using testing::rounds;

constexpr double kRounding = 1e-9;

struct Seen {
  int limited = 0, gaps = 0;
};

// Against the optimum of all partitions, which is empty when there is none.
void expect_true(const PartitionResult& low, const PartitionResult& all, RandomProblem& random, Seen& seen) {
  if (all.best.empty()) {
    ASSERT_TRUE(low.best.empty());
    ASSERT_THAT(low.reason, ::testing::AnyOf(PartitionReason::infeasible, PartitionReason::limit));
    ASSERT_NE(low.obstacle, "");
    return;
  }
  const PartitionValue& optimum = all.best.front().value;
  ASSERT_NE(low.reason, PartitionReason::infeasible) << low.obstacle;
  ASSERT_LE(low.bound.value(), optimum.slowest.value() * (1 + kRounding));
  // So few stages: a few dives always find some partition.
  ASSERT_FALSE(low.best.empty());
  for (const PartitionChoice& choice : low.best) {
    const auto value = evaluate(random.problem, *random.costs, choice.partition);
    ASSERT_TRUE(value) << value.error().text();
    ASSERT_EQ(value->slowest, choice.value.slowest);
    ASSERT_EQ(value->work, choice.value.work);
    ASSERT_LE(choice.value.slowest, low.reach);
  }
  const PartitionValue& found = low.best.front().value;
  ASSERT_GE(found.slowest, optimum.slowest);
  if (low.reason == PartitionReason::limit) {
    ++seen.limited;
    ASSERT_GT(low.gap, 0);
    if (low.bound.value() > 0) {
      ASSERT_NEAR(low.gap, found.slowest / low.bound - 1, kRounding);
    }
    return;
  }
  ASSERT_EQ(found.slowest, optimum.slowest);
  ASSERT_EQ(low.bound, optimum.slowest);
  ASSERT_LE(found.work.value(), optimum.work.value() * (1 + low.work_gap) * (1 + kRounding));
  seen.gaps += low.reason == PartitionReason::work_gap ? 1 : 0;
}

TEST(SweepLimits, NeverClaimMoreThanIsProved) {
  Seen seen;
  for (int i = 0; i < rounds(250, 3'000); ++i) {
    RandomProblem random =
        random_problem(800'000 + static_cast<std::uint64_t>(i), {.most_stages = 9, .most_partitions = 2'000});
    for (const bool budgets : {true, false}) {
      if (!budgets) random.problem.budget.clear();
      const PartitionResult all = solve_partition(
          random.problem, *random.costs, {.method = PartitionMethod::brute_force, .keep = 5, .widest = 1.5});
      for (const std::int64_t nodes : {0, 1, 2, 3})
        for (const std::int64_t work : {1, 100, 400, 2'000, 10'000})
          for (const bool given : {false, true}) {
            PartitionOptions options{
                .keep = i % 2 == 0 ? 1 : 7, .work_limit = work, .search_nodes = nodes, .walk = i % 5 != 0};
            if (given && all.best.empty()) continue;
            if (given) options.incumbent = all.best.back().partition;
            SCOPED_TRACE(::testing::Message() << random.words << ", budgets " << budgets << ", nodes "
                                              << nodes << ", work " << work << ", incumbent " << given);
            const PartitionResult low = solve_partition(random.problem, *random.costs, options);
            expect_true(low, all, random, seen);
            if (HasFatalFailure()) return;
            if (given) {
              ASSERT_FALSE(low.best.empty());
              ASSERT_LE(low.best.front().value.slowest, all.best.back().value.slowest);
            }
          }
    }
  }
  EXPECT_GT(seen.limited, 100);
  EXPECT_GT(seen.gaps, 100);
}

// A search that stops leaves thresholds below its limit that no search has looked at.
TEST(SweepLimits, BoundIsBelowWhatWasLeftUntested) {
  RandomProblem random = random_problem(
      800'346, {.most_ranks = 4, .most_chunks = 3, .most_stages = 9, .most_partitions = 6'000});
  if (random.problem.budget.empty())
    random.problem.budget.assign(random.problem.graph.live.size(), Bytes(1e12));
  const PartitionResult all =
      solve_partition(random.problem, *random.costs, {.method = PartitionMethod::brute_force});
  const PartitionResult low =
      solve_partition(random.problem, *random.costs, {.work_limit = 100, .search_nodes = 1});
  EXPECT_NEAR(all.best.front().value.slowest.value(), 4.6207, 1e-4);
  EXPECT_EQ(low.reason, PartitionReason::limit);
  EXPECT_LE(low.bound, all.best.front().value.slowest);
}

// Many stages and hardly any room: what no search comes upon may still be there.
TEST(SweepLimits, NothingFoundIsNotInfeasible) {
  constexpr std::int32_t kRanks = 4, kChunks = 8, kStages = kRanks * kChunks;
  PartitionProblem problem;
  problem.graph = overlap_graph(*make_schedule(Template::interleaved_overlap,
                                               {.pp = kRanks, .vp = kChunks, .microbatches = 4 * kRanks}));
  problem.blocks = 3 * kStages;
  for (std::int32_t s = 1; s < kStages; ++s) {
    std::vector<std::int32_t>& places = problem.places.emplace_back();
    for (std::int32_t b = 3 * s - 2; b <= 3 * s + 2; ++b) places.push_back(b);
  }
  int nothing = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    testing::RandomCosts costs(
        {.seed = seed, .blocks = problem.blocks, .noise = 0.3, .bound_least = 1, .monotone_memory = false});
    testing::Random draw(900 + seed);
    const Partition some = *testing::some_partition(draw, problem);
    const auto give = [&](double share) {
      problem.budget.clear();
      for (std::size_t r = 0; r < problem.graph.live.size(); ++r)
        problem.budget.push_back(testing::rank_need(problem, costs, some, r) * share);
    };
    PartitionOptions low{.work_limit = 1, .search_nodes = 5};
    give(0.5);
    const PartitionResult half = solve_partition(problem, costs, low);
    EXPECT_EQ(half.best.empty(), half.obstacle != "");
    if (half.best.empty() && half.reason == PartitionReason::limit) {
      ++nothing;
      EXPECT_THAT(half.obstacle, HasSubstr("no partition was found before the solver stopped"));
    }
    give(1);
    const Seconds bound = solve_partition(problem, costs, low).bound;
    low.incumbent = some;
    const PartitionResult given = solve_partition(problem, costs, low);
    ASSERT_FALSE(given.best.empty());
    EXPECT_LE(given.best.front().value.slowest, evaluate(problem, costs, some)->slowest);
    EXPECT_LE(bound, given.best.front().value.slowest);
  }
  EXPECT_GT(nothing, 0);
}

// Times all alike; needs of a block that do not add up to the same in every order.
class Tenths : public StageCosts {
 public:
  [[nodiscard]] Seconds bound(const PairQuery&) const override { return Seconds(1); }
  [[nodiscard]] std::vector<Seconds> times(std::span<const PairQuery> queries) override {
    return std::vector<Seconds>(queries.size(), Seconds(1));
  }
  [[nodiscard]] Seconds alone(StageId, BlockRange) const override { return Seconds(1); }
  [[nodiscard]] Bytes held(StageId stage, BlockRange) const override {
    return Bytes(0.1 * (1 + static_cast<double>(stage.index())));
  }
  [[nodiscard]] Bytes activation(StageId, BlockRange) const override { return Bytes(0); }
};

PartitionProblem one_rank(std::int32_t stages, std::int32_t blocks) {
  PartitionProblem problem;
  problem.blocks = blocks;
  problem.graph.live.push_back({std::vector<std::int32_t>(static_cast<std::size_t>(stages), 0)});
  for (std::int32_t s = 0; s < stages; ++s) {
    problem.graph.rank_of_stage.emplace_back(0);
    problem.graph.alone.push_back({StageId(s), 1});
  }
  for (std::int32_t s = 1; s < stages; ++s) {
    problem.places.emplace_back();
    for (std::int32_t b = s; b <= blocks - (stages - s); ++b) problem.places.back().push_back(b);
  }
  return problem;
}

TEST(SweepLimits, KeepBudgetsToTheLastBit) {
  Tenths costs;
  PartitionProblem problem = one_rank(3, 5);
  const double exact = 0.1 * 1 + 0.1 * 2 + 0.1 * 3;  // as the checker adds it up
  for (const bool walk : {true, false})
    for (const std::int64_t nodes : {0, 200}) {
      const PartitionOptions options{.keep = 10, .search_nodes = nodes, .walk = walk};
      problem.budget = {Bytes(exact)};
      const PartitionResult fits = solve_partition(problem, costs, options);
      EXPECT_EQ(fits.reason, PartitionReason::optimal);
      EXPECT_EQ(fits.best.size(), 6u);
      problem.budget = {Bytes(std::nextafter(exact, 0))};
      const PartitionResult over = solve_partition(problem, costs, options);
      EXPECT_EQ(over.reason, PartitionReason::infeasible);
      EXPECT_TRUE(over.best.empty());
    }
}

TEST(SweepLimits, RefuseMorePlacesThanASetHolds) {
  Tenths costs;
  const PartitionProblem fits = one_rank(2, 65);
  EXPECT_EQ(solve_partition(fits, costs).reason, PartitionReason::optimal);
  const PartitionProblem problem = one_rank(2, 66);
  const PartitionResult result = solve_partition(problem, costs);
  EXPECT_EQ(result.reason, PartitionReason::too_big);
  EXPECT_TRUE(result.best.empty());
  EXPECT_EQ(result.obstacle, "boundary 1 has 65 places; the sweep takes at most 64");
  for (const PartitionMethod method : {PartitionMethod::milp, PartitionMethod::brute_force})
    EXPECT_EQ(solve_partition(problem, costs, {.method = method}).best.front().value.slowest, Seconds(1));
  // Without a place to begin with, a window is infeasible however many places it has.
  PartitionProblem none = one_rank(3, 67);
  none.places[1] = {67};
  const WindowResult window =
      solve_in_window(none, none.places, costs, {{{0, 1}, {1, 2}, {2, 67}}}, {.window = 40});
  EXPECT_EQ(window.result.reason, PartitionReason::infeasible);
  EXPECT_THAT(window.result.obstacle, HasSubstr("last stage has no place"));
}

TEST(SweepLimits, RefuseTablesTooLargeToKeep) {
  Tenths costs;
  PartitionProblem problem = one_rank(8, 71);  // 64 places each
  problem.graph.alone.clear();
  for (std::int32_t a = 0; a < 8; ++a)
    for (std::int32_t b = a + 1; b < 8; ++b) problem.graph.edges.push_back({StageId(a), StageId(b), 1});
  const PartitionResult result = solve_partition(problem, costs);
  EXPECT_EQ(result.reason, PartitionReason::too_big);
  // 64 ranges of the first and the last stage, 64 · 65 / 2 of each between: 15, 12 and 1 pairs of stages.
  EXPECT_EQ(result.obstacle,
            "the ranges of overlapped stages make 66497536 pairs; the sweep takes at most 50000000");
}

}  // namespace
}  // namespace tessera::train
