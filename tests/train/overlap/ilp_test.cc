// The MILP against brute force, and its limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

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

// HiGHS works with tolerances; what differs by less is equal to it.
constexpr double kTolerance = 1e-7;

// Legal, not below the optimum, its bound not above, and equal where it says so.
void expect_sound(const TaskGraph& graph, const PairResult& result, double shortest, Seconds credit = {}) {
  const Status legal = check_pair(graph, result.schedule, credit);
  ASSERT_TRUE(legal) << legal.error().text() << text(graph);
  ASSERT_GE(result.schedule.makespan.value(), shortest * (1 - 1e-12)) << text(graph);
  ASSERT_LE(result.bound.value(), shortest * (1 + kTolerance)) << text(graph);
  ASSERT_EQ(result.reason, PairReason::optimal) << text(graph);
  ASSERT_LE(result.schedule.makespan.value(), shortest * (1 + kTolerance)) << text(graph);
}

TEST(IlpPair, EqualsBruteForceOnPairs) {
  Random random(1);
  int hard = 0;
  const int pairs = rounds(400, 4'000);
  for (int done = 0; done < pairs;) {
    const TaskGraph graph = random_pair(random, random.below(3), random.below(2), random.chance(0.3) ? 0 : 1);
    if (graph.tasks.empty() || graph.tasks.size() > 13) continue;
    ++done;
    const double shortest = shortest_makespan(graph);
    expect_sound(graph, schedule_pair(graph, {.method = PairMethod::ilp}), shortest);
    if (HasFatalFailure()) return;
    hard += shortest > pair_bound(graph).value() * (1 + 1e-9) ? 1 : 0;
  }
  EXPECT_GT(hard, pairs / 10);
}

TEST(IlpPair, EqualsBruteForceWithAPoolCredit) {
  Random random(2);
  int left = 0;
  const int pairs = rounds(250, 2'000);
  for (int done = 0; done < pairs;) {
    const TaskGraph graph = random_pair(random, random.below(2), 1, random.chance(0.3) ? 0 : 1);
    if (graph.tasks.empty() || graph.tasks.size() > 12) continue;
    ++done;
    const Seconds credit(random.chance(0.2) ? 100 : random.chance(0.3) ? 2 : 2 * random.unit());
    const PairResult result = schedule_pair(graph, {.method = PairMethod::ilp, .pool_credit = credit});
    expect_sound(graph, result, shortest_makespan(graph, credit), credit);
    if (HasFatalFailure()) return;
    left += result.schedule.left.empty() ? 0 : 1;
  }
  EXPECT_GT(left, pairs / 4);
}

TEST(IlpPair, EqualsBruteForceOnAnyGraph) {
  Random random(3);
  for (int i = 0; i < rounds(250, 2'000); ++i) {
    TaskGraph graph = random_graph(random, 1 + random.below(8), random.chance(0.4));
    if (i % 10 < 3)  // one stream only, or nothing that takes time
      for (Task& task : graph.tasks) {
        if (i % 10 == 2)
          task.duration = Seconds(0);
        else
          task.resource = i % 10 == 0 ? Resource::comm : Resource::comp;
      }
    const Seconds credit(i % 3 == 0 ? random.unit() : 0);
    const PairResult result = schedule_pair(graph, {.method = PairMethod::ilp, .pool_credit = credit});
    expect_sound(graph, result, shortest_makespan(graph, credit), credit);
    if (HasFatalFailure()) return;
  }
}

TEST(IlpPair, LeavesATaskTogetherWithTheOneThatNeedsIt) {
  TaskGraph graph;
  graph.tasks = {make_task({Pass::weight, TaskKind::shared, 0}, Resource::comp, 2, {}, true),
                 make_task({Pass::weight, TaskKind::mlp, 0}, Resource::comp, 1, {0}, true),
                 make_task({Pass::backward, TaskKind::mlp, 1}, Resource::comp, 4, {})};
  const auto solve = [&](double credit) {
    return schedule_pair(graph, {.method = PairMethod::ilp, .pool_credit = Seconds(credit)}).schedule;
  };
  EXPECT_THAT(solve(2).left, ElementsAre(TaskId(1)));
  EXPECT_EQ(solve(2).makespan, Seconds(6));
  EXPECT_THAT(solve(3).left, ElementsAre(TaskId(0), TaskId(1)));
  EXPECT_EQ(solve(3).makespan, Seconds(4));
}

TEST(IlpPair, TakesAnEmptyGraph) {
  const PairResult result = schedule_pair({}, {.method = PairMethod::ilp});
  EXPECT_EQ(result.reason, PairReason::optimal);
  EXPECT_THAT(result.schedule.order, IsEmpty());
}

TEST(IlpPair, DoesNotDependOnTheUnitOfTime) {
  Random random(5);
  for (int i = 0; i < 20; ++i) {
    const TaskGraph graph = random_pair(random, 1, 1);
    const double makespan = schedule_pair(graph, {.method = PairMethod::ilp}).schedule.makespan.value();
    for (const double factor : {1e-6, 1e5}) {
      TaskGraph scaled = graph;
      for (Task& task : scaled.tasks) task.duration *= factor;
      const PairResult result = schedule_pair(scaled, {.method = PairMethod::ilp});
      ASSERT_EQ(result.reason, PairReason::optimal);
      ASSERT_NEAR(result.schedule.makespan.value() / factor, makespan, kTolerance * makespan) << text(graph);
    }
  }
}

TEST(IlpPair, TakesTasksManyOrdersOfMagnitudeApart) {
  Random random(6);
  for (int i = 0; i < 40; ++i) {
    TaskGraph graph = random_graph(random, 8, false);
    for (Task& task : graph.tasks) task.duration *= std::pow(10.0, -random.between(0, 14));
    expect_sound(graph, schedule_pair(graph, {.method = PairMethod::ilp}), shortest_makespan(graph));
    if (HasFatalFailure()) return;
  }
}

// ---------------------------------------------------------------------------------------------- limits

// A pair of two layers each that HiGHS does not settle at the root of its tree.
TaskGraph hard_pair() {
  Random random(176);
  return random_pair(random, 2, 2);
}

TEST(IlpPair, StopsAtALimitWithAScheduleAndABound) {
  const TaskGraph graph = hard_pair();
  const Seconds rule = schedule_pair(graph, {.method = PairMethod::align}).schedule.makespan;
  for (const PairOptions& options : {PairOptions{.method = PairMethod::ilp, .time_limit = Seconds(0)},
                                     PairOptions{.method = PairMethod::ilp, .time_limit = Seconds(0.01)},
                                     PairOptions{.method = PairMethod::ilp, .work_limit = 0}}) {
    const PairResult result = schedule_pair(graph, options);
    EXPECT_EQ(result.reason, PairReason::limit);
    EXPECT_TRUE(check_pair(graph, result.schedule));
    EXPECT_LE(result.schedule.makespan, rule);
    EXPECT_LT(result.bound, result.schedule.makespan);
    EXPECT_GE(result.bound, pair_bound(graph));
    EXPECT_NEAR(result.gap, result.best_nominal / result.bound - 1, 1e-12);
    EXPECT_LE(result.work, 1);
  }
}

TEST(IlpPair, StartsFromTheWarmStart) {
  const TaskGraph graph = hard_pair();
  const PairSchedule best = schedule_pair(graph).schedule;
  const PairSchedule worst = schedule_pair(graph, {.method = PairMethod::serial}).schedule;
  const auto with = [&](const PairSchedule& start, std::int64_t work_limit) {
    return schedule_pair(graph, {.method = PairMethod::ilp, .work_limit = work_limit, .warm_start = &start});
  };
  const PairResult warm = with(best, 0);
  EXPECT_EQ(warm.schedule.makespan, best.makespan);
  const PairResult cold = with(worst, 5'000);
  EXPECT_LT(cold.schedule.makespan, worst.makespan);
  EXPECT_GE(cold.schedule.makespan, best.makespan * (1 - 1e-12));
  // One of another graph is not a start, and not an upper bound.
  PairSchedule foreign = best;
  foreign.start[0] -= Seconds(1);
  foreign.makespan *= 0.5;
  EXPECT_EQ(with(foreign, 0).schedule.makespan,
            schedule_pair(graph, {.method = PairMethod::ilp, .work_limit = 0}).schedule.makespan);
}

TEST(IlpPair, IsTheSameInEveryRunAndThread) {
  Random random(8);
  std::vector<TaskGraph> graphs;
  for (int i = 0; i < 12; ++i) graphs.push_back(random_pair(random, 1, 1));
  std::vector<PairResult> alone(graphs.size()), together(2 * graphs.size());
  for (std::size_t i = 0; i < graphs.size(); ++i)
    alone[i] = schedule_pair(graphs[i], {.method = PairMethod::ilp});
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        for (std::size_t i = 0; i < graphs.size(); ++i)
          together[t * graphs.size() + i] = schedule_pair(graphs[i], {.method = PairMethod::ilp});
      });
  }
  for (std::size_t i = 0; i < together.size(); ++i) {
    EXPECT_EQ(together[i].schedule.order, alone[i % graphs.size()].schedule.order);
    EXPECT_EQ(together[i].bound, alone[i % graphs.size()].bound);
    EXPECT_EQ(together[i].work, alone[i % graphs.size()].work);
  }
}

}  // namespace
}  // namespace tessera::train
