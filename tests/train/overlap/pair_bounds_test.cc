#include "tessera/train/overlap/pair_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/testing.h"

namespace tessera::train {
namespace {

using testing::Random;
using testing::random_pair;
using testing::set;

// Forward and backward of one MoE layer, every task `comp` or `comm` long, W `w`.
TaskGraph layer_pair(double comp, double comm, double w) {
  BlockCost cost;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    set(cost, pass, TaskKind::attention, comp);
    set(cost, pass, TaskKind::dispatch, comm);
    set(cost, pass, TaskKind::mlp, comp);
    set(cost, pass, TaskKind::combine, comm);
  }
  set(cost, Pass::weight, TaskKind::mlp, w);
  set(cost, Pass::weight, TaskKind::attention, w);
  const std::vector<ChunkBlock> f{{&cost, 0}}, b{{&cost, 1}};
  return pair_graph(forward_chunk(f), backward_chunk(b));
}

TEST(PairBounds, AreLoadsAndChains) {
  const PairBounds bounds = pair_bounds(layer_pair(2, 3, 1));
  EXPECT_EQ(bounds.compute, Seconds(10));
  EXPECT_EQ(bounds.communication, Seconds(12));
  EXPECT_EQ(bounds.forward_chain, Seconds(10));
  EXPECT_EQ(bounds.backward_chain, Seconds(11));  // its last weight gradient included
  EXPECT_EQ(bounds.longest(), Seconds(12));
  EXPECT_EQ(binding(bounds, Seconds(12)), Binding::communication);
  EXPECT_EQ(binding(bounds, Seconds(13)), Binding::order);
}

TEST(PairBounds, NameWhatBinds) {
  const auto bound_by = [](double comp, double comm, double w) {
    const TaskGraph graph = layer_pair(comp, comm, w);
    return binding(pair_bounds(graph), schedule_pair(graph).schedule.makespan);
  };
  EXPECT_EQ(bound_by(4, 1, 1), Binding::compute);
  EXPECT_EQ(bound_by(0, 1, 0), Binding::communication);
  EXPECT_EQ(binding({.forward_chain = Seconds(3)}, Seconds(3)), Binding::forward_chain);
  EXPECT_EQ(binding({.compute = Seconds(1), .backward_chain = Seconds(3)}, Seconds(3)),
            Binding::backward_chain);
}

TEST(PairBounds, GiveThePoolItsCredit) {
  const TaskGraph graph = layer_pair(2, 1, 3);
  EXPECT_EQ(pair_bounds(graph).compute, Seconds(14));
  EXPECT_EQ(pair_bounds(graph, Seconds(3)).compute, Seconds(11));
  EXPECT_EQ(pair_bounds(graph, Seconds(100)).compute, Seconds(8));  // no more than there is
  EXPECT_EQ(pair_bounds(graph).backward_chain, Seconds(9));
  EXPECT_EQ(pair_bounds(graph, Seconds(3)).backward_chain, Seconds(6));
}

TEST(CriticalPath, HasNoPauseAndReachesTheEnd) {
  Random random(17);
  int waits = 0;
  for (int i = 0; i < 300; ++i) {
    const TaskGraph graph = random_pair(random, 1 + random.below(4), 1 + random.below(4));
    const PairSchedule s = schedule_pair(graph).schedule;
    const std::vector<CriticalTask> path = critical_path(graph, s);
    ASSERT_FALSE(path.empty());
    EXPECT_NEAR(s.start[path.front().task.index()].value(), 0, 1e-9);
    EXPECT_NEAR(s.end[path.back().task.index()].value(), s.makespan.value(), 1e-9);
    for (std::size_t k = 1; k < path.size(); ++k) {
      const TaskId before = path[k - 1].task, task = path[k].task;
      EXPECT_NEAR(s.start[task.index()].value(), s.end[before.index()].value(), 1e-9);
      const auto& needed = graph.tasks[task.index()].after;
      const bool same_stream = graph.tasks[task.index()].resource == graph.tasks[before.index()].resource;
      if (path[k].waited_for_stream) {
        EXPECT_TRUE(same_stream);
        ++waits;
      } else {
        EXPECT_THAT(needed, ::testing::Contains(before));
      }
    }
  }
  EXPECT_GT(waits, 100);
}

TEST(ExposedCommunication, IsWhatNoComputeCovers) {
  const TaskGraph graph = layer_pair(2, 3, 1);
  const PairSchedule serial = schedule_pair(graph, {.method = PairMethod::serial}).schedule;
  EXPECT_EQ(exposed_communication(graph, serial), Seconds(12));
  Random random(19);
  for (int i = 0; i < 100; ++i) {
    const TaskGraph pair = random_pair(random, 1 + random.below(3), 1 + random.below(3));
    const PairSchedule s = schedule_pair(pair).schedule;
    double idle = s.makespan.value() - pair.load(Resource::comp).value();
    EXPECT_LE(exposed_communication(pair, s).value(), idle + 1e-9);
    EXPECT_GE(exposed_communication(pair, s).value(), 0);
  }
}

}  // namespace
}  // namespace tessera::train
