// The sweep against brute force.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/partition/random_problem.h"

namespace tessera::train {
namespace {

using testing::random_problem;
using testing::RandomProblem;
using testing::rounds;

std::vector<double> works(const PartitionResult& result) {
  std::vector<double> out;
  for (const PartitionChoice& choice : result.best) out.push_back(choice.value.work.value());
  return out;
}

void expect_equal(const PartitionResult& sweep, const PartitionResult& brute, const std::string& words) {
  ASSERT_EQ(sweep.reason == PartitionReason::infeasible, brute.reason == PartitionReason::infeasible)
      << words;
  if (brute.best.empty()) {
    EXPECT_TRUE(sweep.best.empty());
    return;
  }
  ASSERT_FALSE(sweep.best.empty()) << words;
  const PartitionValue &a = sweep.best.front().value, &b = brute.best.front().value;
  ASSERT_NEAR(a.slowest.value(), b.slowest.value(), 1e-9 * (1 + b.slowest.value())) << words;
  ASSERT_NEAR(sweep.bound.value(), b.slowest.value(), 1e-9 * (1 + b.slowest.value())) << words;
  ASSERT_NEAR(a.work.value(), b.work.value(), 1e-9 * (1 + b.work.value())) << words;
  EXPECT_EQ(sweep.reason, PartitionReason::optimal) << words;
  ASSERT_EQ(sweep.best.size(), brute.best.size()) << words;
  const std::vector<double> mine = works(sweep), its = works(brute);
  for (std::size_t k = 0; k < mine.size(); ++k)
    ASSERT_NEAR(mine[k], its[k], 1e-9 * (1 + its[k])) << words << ", number " << k;
}

TEST(Sweep, EqualsBruteForce) {
  int infeasible = 0, several = 0;
  const int problems = rounds(2'000, 20'000);
  for (int i = 0; i < problems; ++i) {
    RandomProblem random = random_problem(static_cast<std::uint64_t>(i));
    const std::int32_t keep = i % 3 == 0 ? 1 : i % 3 == 1 ? 5 : 50;
    const PartitionResult brute = solve_partition(random.problem, *random.costs,
                                                  {.method = PartitionMethod::brute_force, .keep = keep});
    ASSERT_NE(brute.reason, PartitionReason::too_big) << random.words;
    const PartitionResult sweep = solve_partition(random.problem, *random.costs, {.keep = keep});
    expect_equal(sweep, brute, random.words);
    if (HasFatalFailure()) return;
    for (const PartitionChoice& choice : sweep.best) {
      const auto value = evaluate(random.problem, *random.costs, choice.partition);
      ASSERT_TRUE(value) << random.words << value.error().text();
      ASSERT_EQ(value->slowest, choice.value.slowest);
    }
    infeasible += brute.best.empty() ? 1 : 0;
    several += brute.best.size() > 1 ? 1 : 0;
    // An incumbent prunes, and loses nothing.
    if (brute.best.empty()) continue;
    const PartitionResult pruned = solve_partition(random.problem, *random.costs,
                                                   {.keep = keep, .incumbent = brute.best.back().partition});
    expect_equal(pruned, brute, random.words + " with an incumbent");
    if (HasFatalFailure()) return;
    // Told that an incumbent is proved, it does not look for the slowest pair again, and finds the same.
    const PartitionResult told =
        solve_partition(random.problem, *random.costs,
                        {.keep = keep, .incumbent = sweep.best.front().partition, .floor = sweep.bound});
    expect_equal(told, brute, random.words + " with a floor");
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(infeasible, problems / 50);
  EXPECT_GT(several, problems / 5);
}

TEST(Sweep, IsTheSameWithEveryShortcutOff) {
  const int problems = rounds(700, 7'000);
  for (int i = 0; i < problems; ++i) {
    RandomProblem random = random_problem(100'000 + static_cast<std::uint64_t>(i));
    const std::int32_t keep = i % 2 == 0 ? 1 : 20;
    const PartitionResult brute = solve_partition(random.problem, *random.costs,
                                                  {.method = PartitionMethod::brute_force, .keep = keep});
    PartitionOptions no_search{.keep = keep, .search_nodes = 0};
    PartitionOptions no_walk{.keep = keep, .walk = false};
    PartitionOptions nothing{.keep = keep, .search_nodes = 0, .price_steps = 0};
    for (const PartitionOptions& options : {no_search, no_walk, nothing}) {
      expect_equal(solve_partition(random.problem, *random.costs, options), brute, random.words);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Sweep, SaysWhatItDidNotProveAtALowLimit) {
  int limited = 0;
  for (int i = 0; i < rounds(400, 4'000); ++i) {
    RandomProblem random = random_problem(200'000 + static_cast<std::uint64_t>(i));
    const PartitionResult brute =
        solve_partition(random.problem, *random.costs, {.method = PartitionMethod::brute_force});
    const PartitionResult low = solve_partition(random.problem, *random.costs, {.work_limit = 1});
    if (brute.best.empty()) continue;
    ASSERT_FALSE(low.best.empty()) << random.words;
    const PartitionValue &a = low.best.front().value, &b = brute.best.front().value;
    ASSERT_LE(low.bound.value(), b.slowest.value() * (1 + 1e-9)) << random.words;
    ASSERT_GE(a.slowest.value(), b.slowest.value() * (1 - 1e-9)) << random.words;
    if (low.reason == PartitionReason::optimal) {
      ASSERT_NEAR(a.work.value(), b.work.value(), 1e-9 * (1 + b.work.value())) << random.words;
    }
    if (low.reason == PartitionReason::work_gap) {
      ++limited;
      ASSERT_NEAR(a.slowest.value(), b.slowest.value(), 1e-9 * (1 + b.slowest.value())) << random.words;
      ASSERT_LE(a.work.value(), b.work.value() * (1 + low.work_gap) * (1 + 1e-9)) << random.words;
    }
  }
  EXPECT_GT(limited, 10);
}

}  // namespace
}  // namespace tessera::train
