#include "tessera/train/overlap/pair_table.h"

#include <gtest/gtest.h>

#include "train/testing.h"

namespace tessera::train {
namespace {

using testing::Random;

std::vector<PairKey> windows(int kinds) {
  std::vector<PairKey> keys;
  for (int f = 0; f < kinds; ++f)
    for (int b = 0; b < kinds; ++b) {
      keys.push_back({{f}, {b}});
      keys.push_back({{f, b}, {b, f, f}});
      keys.push_back({{}, {b, f}});
    }
  return keys;
}

TEST(PairTable, GivesTheSameForAnyNumberOfThreads) {
  Random random(3);
  std::vector<BlockCost> kinds;
  for (int i = 0; i < 6; ++i) kinds.push_back(testing::random_layer(random));
  const std::vector<PairKey> keys = windows(6);
  PairTable one(kinds, {}), many(kinds, {});
  one.solve(keys, 1);
  many.solve(keys, 8);
  EXPECT_EQ(one.size(), many.size());
  for (const PairKey& key : keys) {
    const PairResult &a = one.at(key), &b = many.at(key);
    EXPECT_EQ(a.schedule.order, b.schedule.order);
    EXPECT_EQ(a.schedule.start, b.schedule.start);
    EXPECT_EQ(a.bound, b.bound);
    EXPECT_EQ(a.work, b.work);
    EXPECT_EQ(a.schedule.makespan, schedule_pair(pair_graph(kinds, key)).schedule.makespan);
  }
}

TEST(PairTable, SolvesEachSignatureOnce) {
  Random random(5);
  const std::vector<BlockCost> kinds{testing::random_layer(random), testing::random_layer(random)};
  PairTable table(kinds, {});
  const std::vector<PairKey> keys{{{0, 1}, {1}}, {{0, 1}, {1}}, {{1}, {0, 1}}};
  table.solve(keys);
  EXPECT_EQ(table.size(), 2U);
  const PairResult* first = &table.at(keys[0]);
  table.solve(keys);
  EXPECT_EQ(table.size(), 2U);
  EXPECT_EQ(first, &table.at(keys[0]));
}

}  // namespace
}  // namespace tessera::train
