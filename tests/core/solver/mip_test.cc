#include "tessera/core/solver/mip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <thread>

namespace tessera {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pointwise;
using ::testing::SizeIs;

// A knapsack with several capacities, values close to the weights: easy to state, slow to prove.
MipModel hard_knapsack(std::uint64_t seed, int items, int capacities) {
  std::mt19937_64 random(seed);
  MipModel model;
  std::vector<MipColumn> take;
  std::vector<std::vector<MipTerm>> weights(static_cast<std::size_t>(capacities));
  for (int i = 0; i < items; ++i) {
    double sum = 0;
    for (auto& row : weights) {
      row.push_back({MipColumn(i), static_cast<double>(10 + random() % 90)});
      sum += row.back().coefficient;
    }
    take.push_back(model.add_binary(-std::round(sum / capacities) - static_cast<double>(random() % 10)));
  }
  for (const auto& row : weights) {
    double total = 0;
    for (const MipTerm& term : row) total += term.coefficient;
    model.add_row({.upper = std::floor(total / 2)}, row);
  }
  return model;
}

double objective_by_enumeration(const MipModel& model) {
  const MipModel::View view = model.view();
  double best = kUnbounded;
  for (std::uint32_t taken = 0; taken < 1u << view.cost.size(); ++taken) {
    const auto sum = [&](std::size_t begin, std::size_t end) {
      double total = 0;
      for (std::size_t k = begin; k < end; ++k)
        if ((taken >> view.column[k] & 1) != 0) total += view.coefficient[k];
      return total;
    };
    bool fits = true;
    for (std::size_t r = 0; r < view.row_upper.size(); ++r)
      fits = fits && sum(static_cast<std::size_t>(view.row_start[r]),
                         static_cast<std::size_t>(view.row_start[r + 1])) <= view.row_upper[r];
    double cost = 0;
    for (std::size_t i = 0; i < view.cost.size(); ++i)
      if ((taken >> i & 1) != 0) cost += view.cost[i];
    if (fits) best = std::min(best, cost);
  }
  return best;
}

// ---------------------------------------------------------------------------------------------- model

TEST(MipModel, SumsAColumnNamedTwiceAndDropsZeros) {
  MipModel model;
  const MipColumn x = model.add_column({}), y = model.add_column({}), z = model.add_column({});
  model.add_row({.upper = 1}, {{x, 1}, {y, 2}, {x, 3}});
  model.add_row({.lower = -1}, {{z, 0}, {x, 5}});
  const MipModel::View view = model.view();
  EXPECT_THAT(view.row_start, ElementsAre(0, 2, 3));
  EXPECT_THAT(view.column, ElementsAre(0, 1, 0));
  EXPECT_THAT(view.coefficient, ElementsAre(4, 2, 5));
  EXPECT_THAT(view.row_upper, ElementsAre(1, kUnbounded));
  EXPECT_THAT(view.row_lower, ElementsAre(-kUnbounded, -1));
  EXPECT_EQ(model.entries(), 3u);
  EXPECT_EQ(model.integral_columns(), 0u);
}

// ------------------------------------------------------------------------------------------------- LP

TEST(SolveLp, FindsTheVertexOfATextbookCase) {
  // max 3x + 5y, x ≤ 4, 2y ≤ 12, 3x + 2y ≤ 18: 36 at (2, 6).
  MipModel model;
  const MipColumn x = model.add_column({.cost = -3}), y = model.add_column({.cost = -5});
  model.add_row({.upper = 4}, {{x, 1}});
  model.add_row({.upper = 12}, {{y, 2}});
  model.add_row({.upper = 18}, {{x, 3}, {y, 2}});
  const MipResult result = solve(model);
  EXPECT_EQ(result.reason, MipReason::optimal);
  EXPECT_THAT(result.values, Pointwise(DoubleNear(1e-9), {2.0, 6.0}));
  EXPECT_NEAR(result.objective, -36, 1e-9);
  EXPECT_EQ(result.bound, result.objective);
  EXPECT_EQ(result.gap, 0);
  EXPECT_EQ(result.nodes, 0);
  EXPECT_THAT(result.error, IsEmpty());
}

TEST(SolveLp, HoldsEquationsAndFreeColumns) {
  // min |x − 3| with x = −2y, y ≥ 1: x = −2, distance 5.
  MipModel model;
  const MipColumn x = model.add_column({.lower = -kUnbounded}), y = model.add_column({.lower = 1});
  const MipColumn distance = model.add_column({.cost = 1});
  model.add_row({.lower = 0, .upper = 0}, {{x, 1}, {y, 2}});
  model.add_row({.lower = -3}, {{distance, 1}, {x, -1}});
  model.add_row({.lower = 3}, {{distance, 1}, {x, 1}});
  const MipResult result = solve(model);
  ASSERT_EQ(result.reason, MipReason::optimal);
  EXPECT_NEAR(result.value(x), -2, 1e-9);
  EXPECT_NEAR(result.value(y), 1, 1e-9);
  EXPECT_NEAR(result.value(distance), 5, 1e-9);
}

TEST(SolveLp, BalancesLoadOverMachinesAsACountingArgumentSays) {
  // 6 jobs with 1 … 6 of work, freely divisible over 4 machines at speeds 1, 1, 2, 3: 21 / 7 = 3 each.
  MipModel model;
  const double speeds[] = {1, 1, 2, 3};
  const MipColumn longest = model.add_column({.cost = 1});
  std::vector<std::vector<MipTerm>> machine(4);
  for (int job = 1; job <= 6; ++job) {
    std::vector<MipTerm> shares;
    for (std::size_t m = 0; m < 4; ++m) {
      shares.push_back({model.add_column({}), 1});
      machine[m].push_back({shares.back().column, 1 / speeds[m]});
    }
    model.add_row({.lower = static_cast<double>(job), .upper = static_cast<double>(job)}, shares);
  }
  for (auto& row : machine) {
    row.push_back({longest, -1});
    model.add_row({.upper = 0}, row);
  }
  const MipResult result = solve(model);
  EXPECT_EQ(result.reason, MipReason::optimal);
  EXPECT_NEAR(result.objective, 3, 1e-9);
}

TEST(SolveLp, TellsInfeasibleFromUnbounded) {
  MipModel model;
  const MipColumn x = model.add_column({.cost = -1}), y = model.add_column({});
  model.add_row({.upper = 2}, {{x, 1}, {y, -1}});
  const MipResult unbounded = solve(model);
  EXPECT_EQ(unbounded.reason, MipReason::unbounded);
  EXPECT_THAT(unbounded.values, IsEmpty());
  model.add_row({.lower = 5}, {{x, 1}});
  model.add_row({.upper = 1}, {{y, 1}});
  const MipResult infeasible = solve(model);
  EXPECT_EQ(infeasible.reason, MipReason::infeasible);
  EXPECT_THAT(infeasible.values, IsEmpty());
}

TEST(SolveLp, TakesACrossedBoundForInfeasible) {
  MipModel model;
  const MipColumn x = model.add_column({.lower = 3, .upper = 2});
  EXPECT_EQ(solve(model).reason, MipReason::infeasible);
  model.set_bounds(x, {0, 2});
  EXPECT_EQ(solve(model).reason, MipReason::optimal);
  model.add_row({.lower = 1, .upper = 0}, {{x, 1}});
  EXPECT_EQ(solve(model).reason, MipReason::infeasible);
}

TEST(SolveLp, TakesAnEmptyModel) {
  MipModel model;
  EXPECT_EQ(solve(model).reason, MipReason::optimal);
  EXPECT_EQ(solve(model).objective, 0);
  model.add_row({.lower = 1}, {});  // 0 ≥ 1
  EXPECT_EQ(solve(model).reason, MipReason::infeasible);
}

// ------------------------------------------------------------------------------------------------ MIP

TEST(SolveMip, RoundsWhereTheRelaxationDoesNot) {
  // max 5x + 4y, 6x + 4y ≤ 24, x + 2y ≤ 6: relaxed 21 at (3, 1.5), whole 20 at (4, 0).
  MipModel model;
  const MipColumn x = model.add_column({.cost = -5, .integral = true});
  const MipColumn y = model.add_column({.cost = -4, .integral = true});
  model.add_row({.upper = 24}, {{x, 6}, {y, 4}});
  model.add_row({.upper = 6}, {{x, 1}, {y, 2}});
  const MipResult result = solve(model);
  EXPECT_EQ(result.reason, MipReason::optimal);
  EXPECT_THAT(result.values, ElementsAre(4, 0));
  EXPECT_EQ(result.objective, -20);
  EXPECT_NEAR(result.bound, -20, 1e-6);
}

TEST(SolveMip, MixesWholeAndFractionalColumns) {
  // The example of the header: x = 6 leaves y = 0; x = 5 lets y = 2/3; x = 6 gives −18.
  MipModel model;
  const MipColumn x = model.add_column({.upper = 10, .cost = -3, .integral = true});
  const MipColumn y = model.add_column({.upper = 1.5, .cost = -2});
  model.add_row({.upper = 12}, {{x, 2}, {y, 3}});
  const MipResult result = solve(model);
  EXPECT_EQ(result.reason, MipReason::optimal);
  EXPECT_EQ(result.value(x), 6);
  EXPECT_NEAR(result.value(y), 0, 1e-9);
  EXPECT_NEAR(result.objective, -18, 1e-9);
}

TEST(SolveMip, EqualsEnumeration) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const MipModel model =
        hard_knapsack(seed, 6 + static_cast<int>(seed % 7), 1 + static_cast<int>(seed % 3));
    const MipResult result = solve(model);
    ASSERT_EQ(result.reason, MipReason::optimal) << seed;
    EXPECT_EQ(result.objective, objective_by_enumeration(model)) << seed;
  }
}

TEST(SolveMip, TellsInfeasibleFromUnbounded) {
  MipModel model;
  const MipColumn x = model.add_column({.integral = true}), y = model.add_column({.integral = true});
  model.add_row({.lower = 7, .upper = 7}, {{x, 2}, {y, 4}});  // an odd sum of even numbers
  EXPECT_EQ(solve(model).reason, MipReason::infeasible);

  MipModel open;
  open.add_column({.cost = -1, .integral = true});
  open.add_column({.upper = 1, .cost = 1, .integral = true});
  EXPECT_EQ(solve(open).reason, MipReason::unbounded);
}

TEST(SolveMip, StopsAtANodeLimitWithABoundBelow) {
  const MipModel model = hard_knapsack(1, 60, 5);
  const MipResult result = solve(model, {.node_limit = 20});
  ASSERT_EQ(result.reason, MipReason::feasible);
  EXPECT_LE(result.nodes, 21);
  EXPECT_LT(result.bound, result.objective);
  EXPECT_NEAR(result.gap, (result.objective - result.bound) / -result.objective, 1e-12);
  EXPECT_THAT(result.values, SizeIs(60));
  const MipResult again = solve(model, {.node_limit = 20});
  EXPECT_EQ(again.values, result.values);
  EXPECT_EQ(again.bound, result.bound);
  EXPECT_EQ(again.iterations, result.iterations);
}

TEST(SolveMip, StopsAtATimeLimit) {
  const MipModel model = hard_knapsack(2, 100, 10);
  const MipResult result = solve(model, {.time_limit = Seconds(0.3)});
  ASSERT_EQ(result.reason, MipReason::feasible);
  EXPECT_GE(result.solve_time, Seconds(0.25));
  EXPECT_LT(result.bound, result.objective);
  const MipResult none = solve(model, {.time_limit = Seconds(0)});
  EXPECT_EQ(none.reason, MipReason::limit);
  EXPECT_THAT(none.values, IsEmpty());
}

TEST(SolveMip, StopsWithinTheGapAskedFor) {
  const MipModel model = hard_knapsack(3, 60, 5);
  const MipResult result = solve(model, {.relative_gap = 0.05});
  ASSERT_EQ(result.reason, MipReason::optimal);
  EXPECT_LE(result.gap, 0.05);
  EXPECT_LT(result.nodes, 1000);
}

TEST(SolveMip, KeepsAWarmStartThatItCannotBetter) {
  const MipModel model = hard_knapsack(4, 60, 5);
  const MipResult good = solve(model, {.node_limit = 500});
  ASSERT_TRUE(good.solved());
  const MipResult cold = solve(model, {.node_limit = 0});
  const MipResult warm = solve(model, {.node_limit = 0, .warm_start = good.values});
  ASSERT_EQ(warm.reason, MipReason::feasible);
  EXPECT_LE(warm.objective, good.objective);
  EXPECT_GT(cold.objective, good.objective);
}

TEST(SolveMip, CompletesAWarmStartByItsWholeNumbers) {
  // Pay 10 per open site, 1 per unit of flow; the flows of the warm start are nonsense.
  MipModel model;
  const MipColumn open = model.add_binary(10), other = model.add_binary(9);
  const MipColumn flow = model.add_column({.cost = 1}), detour = model.add_column({.cost = 3});
  model.add_row({.lower = 4}, {{flow, 1}, {detour, 1}});
  model.add_row({.upper = 0}, {{flow, 1}, {open, -4}});
  model.add_row({.upper = 0}, {{detour, 1}, {other, -4}});
  const std::vector<double> start{0, 1, 3, 0.5};
  const MipResult result = solve(model, {.time_limit = Seconds(5), .warm_start = start});
  EXPECT_EQ(result.reason, MipReason::optimal);
  EXPECT_THAT(result.values, Pointwise(DoubleNear(1e-9), {1.0, 0.0, 4.0, 0.0}));
}

TEST(SolveMip, IgnoresAWarmStartThatLeadsNowhere) {
  MipModel model = hard_knapsack(5, 10, 2);
  const std::vector<double> everything(10, 1.0);
  const MipResult result = solve(model, {.warm_start = everything});
  EXPECT_EQ(result.reason, MipReason::optimal);
  EXPECT_EQ(result.objective, objective_by_enumeration(model));
}

// --------------------------------------------------------------------------------------------- faults

TEST(SolveMip, SaysWhichNumberIsWrong) {
  const auto fault = [](auto&& change, MipOptions options = {}) {
    MipModel model;
    const MipColumn x = model.add_column({});
    change(model, x);
    const MipResult result = solve(model, options);
    EXPECT_EQ(result.reason, MipReason::failed);
    EXPECT_THAT(result.values, IsEmpty());
    return result.error;
  };
  const double nan = std::nan("");
  EXPECT_EQ(fault([&](MipModel& m, MipColumn) { m.add_column({.cost = nan}); }),
            "column 1 costs nan, expected less than 1e+20");
  EXPECT_EQ(fault([&](MipModel& m, MipColumn) { m.add_column({.upper = nan}); }),
            "column 1 has the bounds 0 and nan");
  EXPECT_EQ(fault([](MipModel& m, MipColumn x) { m.add_row({.lower = kUnbounded}, {{x, 1}}); }),
            "row 0 has the bounds inf and inf");
  EXPECT_EQ(fault([](MipModel& m, MipColumn x) { m.add_row({.upper = 1}, {{x, 1e-12}}); }),
            "row 0 has the coefficient 1e-12 at column 0, expected a size of 1e-09 to 1e+15");
  const auto sound = [](MipModel&, MipColumn) {};
  EXPECT_EQ(fault(sound, {.tolerance = 1}), "the tolerance is 1, expected 1e-10 to 1e-2");
  EXPECT_EQ(fault(sound, {.threads = 0}), "0 threads, expected 1 or more");
  const std::vector<double> two(2);
  EXPECT_EQ(fault(sound, {.warm_start = two}), "a warm start of 2 values for 1 columns");
}

TEST(SolveMip, PrintsNothing) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  static_cast<void>(solve(hard_knapsack(6, 30, 3), {.node_limit = 50}));
  static_cast<void>(solve(MipModel(), {}));
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), IsEmpty());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
}

// -------------------------------------------------------------------------------------------- threads

TEST(SolveMip, GivesTheSameInSeveralThreadsAtOnce) {
  constexpr std::size_t kModels = 6;
  std::vector<MipModel> models;
  std::vector<MipResult> alone;
  for (std::size_t i = 0; i < kModels; ++i) {
    models.push_back(hard_knapsack(10 + i, 25, 3));
    alone.push_back(solve(models.back(), {.node_limit = 100}));
  }
  std::vector<MipResult> together(2 * kModels);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        for (std::size_t i = 0; i < kModels; ++i)
          together[t * kModels + i] = solve(models[i], {.node_limit = 100});
      });
  }
  for (std::size_t i = 0; i < together.size(); ++i) {
    EXPECT_EQ(together[i].reason, alone[i % kModels].reason);
    EXPECT_EQ(together[i].values, alone[i % kModels].values);
    EXPECT_EQ(together[i].nodes, alone[i % kModels].nodes);
    EXPECT_EQ(together[i].iterations, alone[i % kModels].iterations);
  }
}

TEST(SolveMip, TakesAnotherNumberOfThreadsAtEachCall) {
  const MipModel model = hard_knapsack(20, 15, 2);
  const double objective = solve(model).objective;
  for (const std::int32_t threads : {2, 1, 3, 1}) {
    const MipResult result = solve(model, {.threads = threads});
    EXPECT_EQ(result.reason, MipReason::optimal) << threads;
    EXPECT_EQ(result.objective, objective) << threads;
  }
}

// ----------------------------------------------------------------------------------------------- size

TEST(SolveMip, TakesTensOfThousandsOfColumnsInOneCall) {
  // Assign 150 jobs to 150 places, cost |i − j|: the diagonal, and the relaxation is whole.
  constexpr int kSize = 150;
  MipModel model;
  model.reserve(kSize * kSize, 2 * kSize, 2 * kSize * kSize);
  for (int i = 0; i < kSize; ++i)
    for (int j = 0; j < kSize; ++j) model.add_binary(std::abs(i - j));
  std::vector<MipTerm> terms(kSize);
  for (const bool by_row : {true, false})
    for (int i = 0; i < kSize; ++i) {
      for (int j = 0; j < kSize; ++j)
        terms[static_cast<std::size_t>(j)] = {MipColumn(by_row ? i * kSize + j : j * kSize + i), 1};
      model.add_row({.lower = 1, .upper = 1}, terms);
    }
  EXPECT_EQ(model.columns(), 22'500u);
  EXPECT_EQ(model.entries(), 45'000u);
  const MipResult result = solve(model);
  ASSERT_EQ(result.reason, MipReason::optimal);
  EXPECT_EQ(result.objective, 0);
  for (int i = 0; i < kSize; ++i) EXPECT_EQ(result.value(MipColumn(i * kSize + i)), 1);
}

}  // namespace
}  // namespace tessera
