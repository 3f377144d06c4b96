#include "tessera/train/schedule/launch_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tessera/train/schedule/check_lowered.h"
#include "train/schedule/lists.h"

namespace tessera::train {
namespace {

using ::testing::HasSubstr;
using testing::Random;
using testing::rounds;

std::string fault(const LaunchOrders& orders) {
  const auto facts = check_launch_order(orders);
  return facts ? "sound" : facts.error().text();
}

// Each communicator sees one launch of each member, so each has the same order everywhere.
TEST(LaunchOrder, SeesACircleAcrossCommunicators) {
  LaunchOrders orders{.communicators = {{"A", {0, 1}}, {"B", {1, 2}}, {"C", {2, 0}}},
                      .devices = {{{2}, {0}}, {{0}, {1}}, {{1}, {2}}}};
  EXPECT_EQ(fault(orders),
            "the communicators deadlock: 3 launches wait for each other in a circle\n"
            "  device 0 launch 0, on C, waits for device 2 launch 1\n"
            "  device 2 launch 0, on B, waits for device 1 launch 1\n"
            "  device 1 launch 0, on A, waits for device 0 launch 1");
  orders.devices[0] = {{0}, {2}};
  EXPECT_EQ(fault(orders), "sound");
  orders.devices[0] = {{.communicator = 2}, {.communicator = 0, .grouped = true}};
  EXPECT_EQ(fault(orders), "sound");
}

// A dispatch of the forward and a combine of the backward that two peers launch in different order.
TEST(LaunchOrder, SeesMembersDisagree) {
  EXPECT_EQ(fault({.communicators = {{"EP 0", {0, 1}}}, .devices = {{{0, 7}, {0, 9}}, {{0, 9}, {0, 7}}}}),
            "launch 0 on EP 0 is operation 7 on device 0 and 9 on device 1");
  // With a communicator for each chain the order still matters.
  EXPECT_THAT(fault({.communicators = {{"F", {0, 1}}, {"B", {0, 1}}}, .devices = {{{0}, {1}}, {{1}, {0}}}}),
              HasSubstr("2 launches wait for each other"));
  EXPECT_EQ(fault({.communicators = {{"EP 0", {0, 1}}}, .devices = {{{0}, {0}}, {{0}}}}),
            "device 0 launches 2 times on EP 0, device 1 1 times");
  EXPECT_EQ(fault({.communicators = {{"EP 0", {0, 1}}}, .devices = {{}, {{0}}}}),
            "device 0 launches 0 times on EP 0, device 1 1 times");
  EXPECT_THAT(fault({.communicators = {{"EP 0", {0}}}, .devices = {{}, {{0}}}}), HasSubstr("no member"));
  EXPECT_THAT(fault({.communicators = {{"EP 0", {2}}}, .devices = {{}}}), HasSubstr("has member 2"));
}

TEST(LaunchOrder, OfSoundListsIsSoundOnAllReplicas) {
  Random random(4);
  for (int round = 0; round < 300; ++round) {
    const LoweredList list = testing::random_lowered(random);
    const int replicas = random.between(1, 3);
    const auto facts = check_launch_order(launch_orders(list, replicas));
    ASSERT_TRUE(facts) << facts.error().text();
    const auto lowered = check_lowered(list).value();
    std::int64_t collectives = 0;
    for (const auto& row : list.ranks)
      for (const Cell& cell : row)
        collectives += cell.kind == CellKind::unshard || cell.kind == CellKind::reduce_gradient;
    EXPECT_EQ(facts->instances, replicas * lowered.messages + collectives);
  }
}

// Rendezvous execution and the graph over all communicators say the same of lists whose rows are in order.
TEST(LaunchOrder, AgreesWithRendezvousExecution) {
  Random random(5);
  std::map<std::string, int> verdicts;
  for (int round = rounds(4'000, 60'000); round > 0; --round) {
    LoweredList list = testing::random_lowered(random);
    for (int k = random.between(1, 4); k > 0; --k) {  // messages only, and within a row
      auto& row = list.ranks[static_cast<std::size_t>(testing::pick(random, list.ranks.size()))];
      const auto from = row.begin() + testing::pick(random, row.size());
      if (!is_message(from->kind)) continue;
      const Cell cell = *from;
      row.erase(from);
      row.insert(row.begin() + random.between(0, static_cast<int>(row.size())), cell);
    }
    const auto facts = check_lowered(list);
    const bool deadlock = !facts && facts.error().message.starts_with("the communication deadlocks");
    if (!facts && !deadlock) continue;
    const auto graph = check_launch_order(launch_orders(list, random.between(1, 2)));
    if (deadlock) {
      ASSERT_FALSE(graph);
      ++verdicts["deadlock"];
    } else if (facts->overtaking) {
      ASSERT_FALSE(graph);
      EXPECT_THAT(graph.error().text(), HasSubstr("is operation"));
      ++verdicts["overtaking"];
    } else {
      ASSERT_TRUE(graph) << graph.error().text();
      ++verdicts["sound"];
    }
  }
  EXPECT_GT(verdicts["deadlock"], 20);
  EXPECT_GT(verdicts["overtaking"], 20);
  EXPECT_GT(verdicts["sound"], 100);
}

}  // namespace
}  // namespace tessera::train
