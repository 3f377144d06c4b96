// Leaves that other leaves wait for, and that nothing in the chain joins: the shared expert at the end of a
// backward chunk whose last block has no attention. With a pool credit, leaves of one length that differ in
// what may become of them.
#include <gtest/gtest.h>

#include "tessera/train/overlap/check_pair.h"
#include "tessera/train/overlap/pair_schedule.h"
#include "train/overlap/graphs.h"
#include "train/testing.h"

namespace tessera::train {
namespace {

using testing::Random;
using testing::rounds;
using testing::set;
using testing::text;

BlockCost moe(std::initializer_list<double> forward, std::initializer_list<double> backward,
              std::initializer_list<double> weight, double shared = -1, double shared_weight = -1) {
  BlockCost cost{.name = "moe"};
  const auto fill = [&](Pass pass, std::initializer_list<double> times,
                        std::initializer_list<TaskKind> kinds) {
    const auto* kind = kinds.begin() + (kinds.size() - times.size());
    for (const double time : times) set(cost, pass, *kind++, time);
  };
  fill(Pass::forward, forward, {TaskKind::attention, TaskKind::dispatch, TaskKind::mlp, TaskKind::combine});
  fill(Pass::backward, backward, {TaskKind::attention, TaskKind::dispatch, TaskKind::mlp, TaskKind::combine});
  fill(Pass::weight, weight, {TaskKind::attention, TaskKind::mlp});
  if (shared >= 0) set(cost, Pass::backward, TaskKind::shared, shared);
  if (shared_weight >= 0) set(cost, Pass::weight, TaskKind::shared, shared_weight);
  return cost;
}

TaskGraph pair_of(const std::vector<BlockCost>& forward, const std::vector<BlockCost>& backward) {
  std::vector<ChunkBlock> f, b;
  for (std::size_t k = 0; k < forward.size(); ++k) f.push_back({&forward[k], static_cast<std::int32_t>(k)});
  for (std::size_t k = 0; k < backward.size(); ++k)
    b.push_back({&backward[k], static_cast<std::int32_t>(100 + k)});
  return pair_graph(forward_chunk(f), backward_chunk(b));
}

void expect_optimum(const TaskGraph& graph, double makespan, Seconds credit = {}) {
  const PairResult result = schedule_pair(graph, {.pool_credit = credit});
  EXPECT_EQ(result.reason, PairReason::optimal);
  EXPECT_NEAR(result.schedule.makespan.value(), makespan, 1e-9) << text(graph);
  EXPECT_TRUE(check_pair(graph, result.schedule, credit));
}

// W_ATTN 1 and W_MLP 4 can go in any order; W_SHARED 4 only after B_SHARED 1. Equal lengths do not make the
// second couple as good as the first.
TEST(NeededLeaf, IsNotAsGoodAsAFreeOne) {
  expect_optimum(pair_of({moe({5, 5, 1, 2}, {}, {}), moe({3, 1, 5, 2}, {}, {})},
                         {moe({}, {1, 4, 5}, {1}, 1, 4), moe({}, {2, 2, 0, 3}, {1, 4})}),
                 31);
  expect_optimum(pair_of({moe({1, 1, 0, 5}, {}, {}), moe({4, 1, 1, 4}, {}, {})},
                         {moe({}, {5, 4, 2}, {1}, 4, 1), moe({}, {1, 2, 4, 5}, {4, 4})}),
                 33);
}

// B_SHARED 2 must run and W_ATTN 2 need not: to run the second first leaves less to the pool.
TEST(NeededLeaf, IsNotMergedWithAnEqualOneForThePool) {
  expect_optimum(pair_of({moe({2, 1, 4, 2}, {}, {}), moe({4, 3, 2}, {}, {})},
                         {moe({}, {2, 1, 3}, {5}, 2), moe({}, {5, 3, 0, 3}, {2, 3})}),
                 22, Seconds(7));
}

TEST(NeededLeaf, EqualsBruteForce) {
  Random random(223);
  const int pairs = rounds(1'500, 60'000);
  for (int i = 0; i < pairs; ++i) {
    const bool pool = random.chance(0.5);
    const auto any = [&] { return static_cast<double>(random.between(0, 5)); };
    const auto leaf = [&] { return random.chance(0.5) ? 1.0 : 4.0; };
    std::vector<BlockCost> f{moe({any(), any(), any(), any()}, {}, {})};
    if (random.chance(0.5)) f.push_back(moe({any(), any(), any(), any()}, {}, {}));
    const TaskGraph graph = pair_of(f, {moe({}, {any(), any(), any()}, {leaf()}, leaf(), pool ? -1 : leaf()),
                                        moe({}, {any(), any(), any(), any()}, {leaf(), leaf()})});
    const Seconds credit(pool ? random.between(1, 7) : 0);
    const PairResult exact = schedule_pair(graph, {.pool_credit = credit});
    const PairResult brute = schedule_pair(graph, {.method = PairMethod::brute_force, .pool_credit = credit});
    ASSERT_EQ(brute.reason, PairReason::optimal);
    ASSERT_EQ(exact.reason, PairReason::optimal) << text(graph);
    ASSERT_NEAR(exact.schedule.makespan.value(), brute.schedule.makespan.value(), 1e-9)
        << "credit " << credit.value() << "\n"
        << text(graph);
  }
}

}  // namespace
}  // namespace tessera::train
