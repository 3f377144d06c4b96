// Brute force against something plainer still, on graphs of any shape.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/train/overlap/check_pair.h"
#include "tessera/train/overlap/pair_bounds.h"
#include "train/overlap/graphs.h"

namespace tessera::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::make_task;
using testing::Random;
using testing::random_graph;
using testing::random_pair;
using testing::rounds;
using testing::shortest_makespan;
using testing::text;

// All permutations of all tasks that stay, for every set that may be left. No bound, no memory.
double by_permutations(const TaskGraph& graph, double credit) {
  const std::size_t n = graph.tasks.size();
  double best = std::numeric_limits<double>::infinity();
  for (std::uint32_t left = 0; left < (1u << n); ++left) {
    const auto gone = [&](std::size_t task) { return (left >> task & 1) != 0; };
    double sum = 0;
    bool legal = true;
    std::vector<TaskId> order;
    for (std::size_t i = 0; i < n; ++i) {
      if (gone(i)) {
        sum += graph.tasks[i].duration.value();
        legal = legal && graph.tasks[i].movable;
      } else {
        order.emplace_back(static_cast<std::int64_t>(i));
        for (const TaskId needed : graph.tasks[i].after) legal = legal && !gone(needed.index());
      }
    }
    if (!legal || sum > credit * (1 + 1e-12)) continue;
    do {
      std::vector<bool> placed(n, false);
      const bool sorted = std::ranges::all_of(order, [&](TaskId task) {
        placed[task.index()] = true;
        return std::ranges::all_of(graph.tasks[task.index()].after,
                                   [&](TaskId needed) { return placed[needed.index()]; });
      });
      if (sorted) best = std::min(best, run_order(graph, order).makespan.value());
    } while (std::ranges::next_permutation(order).found);
  }
  return best;
}

PairResult solve(const TaskGraph& graph, Seconds credit = {}) {
  return schedule_pair(graph, {.method = PairMethod::brute_force, .pool_credit = credit});
}

TEST(BruteForce, EqualsAllPermutations) {
  Random random(3);
  int hard = 0, with_credit = 0;
  for (int i = 0; i < rounds(600, 6'000); ++i) {
    const TaskGraph graph = random_graph(random, 1 + random.below(6), random.chance(0.4));
    const Seconds credit(random.chance(0.5) ? 0 : random.chance(0.3) ? 100 : 3 * random.unit());
    const double expected = by_permutations(graph, credit.value());
    const PairResult result = solve(graph, credit);
    ASSERT_EQ(result.reason, PairReason::optimal);
    ASSERT_NEAR(result.schedule.makespan.value(), expected, 1e-12 * (1 + expected)) << text(graph);
    const Status legal = check_pair(graph, result.schedule, credit);
    ASSERT_TRUE(legal) << legal.error().text() << text(graph);
    hard += expected > pair_bounds(graph, credit).longest().value() * (1 + 1e-9) ? 1 : 0;
    with_credit += result.schedule.left.empty() ? 0 : 1;
  }
  EXPECT_GT(hard, 30);
  EXPECT_GT(with_credit, 50);
}

TEST(BruteForce, FindsTheOrderThatNoRuleFinds) {
  // Compute is free at 0, 1, … with two chains that need comm for 2 after 1 of compute: the longer tail (3)
  // has to go first, though it is second by number and equal in duration.
  TaskGraph graph;
  graph.tasks = {make_task({Pass::forward, TaskKind::attention, 0}, Resource::comp, 1, {}),
                 make_task({Pass::forward, TaskKind::dispatch, 0}, Resource::comm, 2, {0}),
                 make_task({Pass::backward, TaskKind::mlp, 1}, Resource::comp, 1, {}),
                 make_task({Pass::backward, TaskKind::dispatch, 1}, Resource::comm, 2, {2}),
                 make_task({Pass::backward, TaskKind::attention, 1}, Resource::comp, 3, {3})};
  EXPECT_EQ(schedule_pair(graph, {.method = PairMethod::fifo}).schedule.makespan, Seconds(8));
  const PairResult result = solve(graph);
  EXPECT_EQ(result.schedule.makespan, Seconds(6));
  EXPECT_EQ(result.bound, Seconds(6));
  EXPECT_THAT(result.schedule.order, ElementsAre(TaskId(2), TaskId(0), TaskId(3), TaskId(1), TaskId(4)));
}

TEST(BruteForce, LeavesWhatShortensThePairMost) {
  // Compute has 9 of work; of the weight gradients 2, 3 and 4, a credit of 5 takes 2 and 3 together.
  TaskGraph graph;
  graph.tasks = {make_task({Pass::weight, TaskKind::mlp, 0}, Resource::comp, 4, {}, true),
                 make_task({Pass::weight, TaskKind::mlp, 1}, Resource::comp, 3, {}, true),
                 make_task({Pass::weight, TaskKind::mlp, 2}, Resource::comp, 2, {}, true)};
  const PairResult result = solve(graph, Seconds(5));
  EXPECT_EQ(result.schedule.makespan, Seconds(4));
  EXPECT_THAT(result.schedule.left, ElementsAre(TaskId(1), TaskId(2)));
  EXPECT_EQ(solve(graph, Seconds(4.5)).schedule.makespan, Seconds(5));
  EXPECT_EQ(solve(graph, Seconds(9)).schedule.makespan, Seconds(0));
}

TEST(BruteForce, TakesPairsOfTwoLayers) {
  Random random(7);
  int pairs = 0;
  for (int i = 0; i < 300; ++i) {
    const TaskGraph graph = random_pair(random, 1 + random.below(2), 1 + random.below(2), i % 3 == 0 ? 0 : 1);
    if (graph.tasks.size() < 12 || graph.tasks.size() > 20) continue;
    ++pairs;
    const PairResult result = solve(graph);
    ASSERT_EQ(result.reason, PairReason::optimal);
    ASSERT_TRUE(check_pair(graph, result.schedule)) << text(graph);
    ASSERT_LE(result.schedule.makespan,
              schedule_pair(graph, {.method = PairMethod::defer}).schedule.makespan * (1 + 1e-12));
    ASSERT_GE(result.schedule.makespan, pair_bound(graph) * (1 - 1e-12));
  }
  EXPECT_GT(pairs, 100);
}

TEST(BruteForce, TakesAnEmptyGraph) {
  const PairResult result = solve({});
  EXPECT_EQ(result.reason, PairReason::optimal);
  EXPECT_EQ(result.schedule.makespan, Seconds(0));
  EXPECT_THAT(result.schedule.order, IsEmpty());
}

TEST(BruteForce, SaysTooBig) {
  Random random(9);
  const TaskGraph graph = random_graph(random, 21, false);
  const PairResult result = solve(graph);
  EXPECT_EQ(result.reason, PairReason::too_big);
  EXPECT_EQ(result.work, 0);
  EXPECT_EQ(result.schedule.order, schedule_pair(graph, {.method = PairMethod::defer}).schedule.order);
  EXPECT_LT(result.bound, result.schedule.makespan);
  EXPECT_TRUE(std::isnan(shortest_makespan(graph)));
}

TEST(BruteForce, StopsAtItsWorkLimit) {
  Random random(13);
  int stopped = 0;
  for (int i = 0; i < 50; ++i) {
    const TaskGraph graph = random_graph(random, 14, false);
    const PairResult result = schedule_pair(graph, {.method = PairMethod::brute_force, .work_limit = 40});
    ASSERT_TRUE(check_pair(graph, result.schedule)) << text(graph);
    ASSERT_LE(result.work, 40);
    ASSERT_LE(result.bound, result.schedule.makespan);
    if (result.reason == PairReason::optimal) continue;  // a simple bound was met
    ++stopped;
    EXPECT_EQ(result.reason, PairReason::limit);
    EXPECT_EQ(result.bound, pair_bound(graph));
    EXPECT_GT(result.gap, 0);
  }
  EXPECT_GT(stopped, 10);
  // With no work at all it finds nothing, and a rule's schedule stands in.
  const TaskGraph graph = random_graph(random, 10, false);
  EXPECT_TRUE(
      check_pair(graph, schedule_pair(graph, {.method = PairMethod::brute_force, .work_limit = 0}).schedule));
}

}  // namespace
}  // namespace tessera::train
