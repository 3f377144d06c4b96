#include "tessera/train/schedule/check_lowered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tessera/train/schedule/torch_csv.h"
#include "train/schedule/lists.h"
#include "train/schedule/lowered_executor.h"

namespace tessera::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::lowered_of;
using testing::Random;
using testing::rounds;

std::string fault(const LoweredList& list) {
  const auto facts = check_lowered(list);
  return facts ? "sound" : facts.error().text();
}

TEST(Cell, ReadsWhatItWrites) {
  for (const std::string_view word :
       {"3F7", "3B7", "3I7", "3W7", "(3F7;5B2)OVERLAP_F_B", "3SEND_F7", "3RECV_F7", "3SEND_B7", "3RECV_B7",
        "3UNSHARD", "3RESHARD", "3REDUCE_GRAD"}) {
    const auto cell = parse_cell(word);
    ASSERT_TRUE(cell) << word;
    EXPECT_EQ(text(*cell), word);
  }
  for (const std::string_view word : {"", "3", "SEND_F7", "3SEND_F", "3UNSHARD7", "3send_f7", "3SEND_F7x",
                                      "3SEND_F9999999999", "3SEND_F-1", "-3UNSHARD", "99999999999UNSHARD"})
    EXPECT_FALSE(parse_cell(word)) << word;
}

// The lowering of torch.distributed.pipelining itself, cell by cell.
TEST(Lower, EqualsTheReferenceForms) {
  for (const std::string name :
       {"dualpipev_p2_m4", "dualpipev_p4_m10", "interleaved_p2_v2_m4", "zbv_torch_p4_m8"}) {
    const auto compute = read_torch_csv(testing::test_file(name + ".csv"), name);
    ASSERT_TRUE(compute) << compute.error().text();
    const auto lowered = lower(without_communication(compute->list), {.shard = true});
    ASSERT_TRUE(lowered) << lowered.error().text();
    EXPECT_EQ(write_torch_csv(*lowered).value(), testing::test_file(name + ".compute_comms.csv")) << name;
  }
}

TEST(Lower, EqualsTheReferenceFormOfAMergedSchedule) {
  ActionList list = without_communication(
      read_torch_csv(testing::test_file("interleaved_zb_p2_v2_m8.csv"), "zb").value().list);
  for (auto& row : list.ranks)
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      if (row[i].kind == ActionKind::input_gradient &&
          row[i + 1] == weight_gradient(row[i].stage, row[i].microbatch)) {
        row[i].kind = ActionKind::full_backward;
        row.erase(row.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
  const std::string expected = testing::test_file("interleaved_zb_p2_v2_m8_merged.compute_comms.csv");
  EXPECT_EQ(write_torch_csv(lower(list).value()).value(), expected);
  EXPECT_EQ(testing::test_file("pytorch-zb1p-2rank-2stage-8mb.comms-notation-I-B.csv"), expected);
}

TEST(Lower, AddsOneMessagePerCrossing) {
  for (std::size_t t = 0; t < kTemplates; ++t) {
    const auto schedule = static_cast<Template>(t);
    const TemplateSizes sizes{
        .pp = 4, .vp = traits(schedule).chunks != 0 ? traits(schedule).chunks : 3, .microbatches = 8};
    const auto list = make_schedule(schedule, sizes);
    ASSERT_TRUE(list) << list.error().text();
    std::int64_t crossings = 0;
    for (std::size_t s = 1; s < list->stages(); ++s)
      if (list->has_previous(StageId(static_cast<std::int64_t>(s))) &&
          list->rank_of_stage[s] != list->rank_of_stage[s - 1])
        ++crossings;
    for (const bool shard : {false, true}) {
      const auto lowered = lower(*list, {.shard = shard});
      ASSERT_TRUE(lowered) << name(schedule) << ": " << lowered.error().text();
      EXPECT_EQ(without_communication(*lowered), *list) << name(schedule);
      const auto facts = check_lowered(*lowered);
      ASSERT_TRUE(facts) << name(schedule) << ": " << facts.error().text();
      EXPECT_EQ(facts->messages, 2 * crossings * list->microbatches) << name(schedule);
      EXPECT_FALSE(facts->overtaking) << name(schedule);
      const auto compute = check_schedule(*list).value();
      EXPECT_EQ(facts->compute.peak_live, compute.peak_live);
      EXPECT_EQ(facts->compute.peak_until_weight, compute.peak_until_weight);
      EXPECT_EQ(facts->compute.actions, compute.actions);
    }
  }
}

TEST(Lower, RefusesWhatTheCheckerRefuses) {
  ActionList list = make_schedule(Template::one_f_one_b, {.pp = 2, .microbatches = 3}).value();
  std::swap(list.ranks[1][0], list.ranks[1][1]);
  EXPECT_EQ(lower(list).error().text(), check_schedule(list).error().text());
  list = make_schedule(Template::one_f_one_b, {.pp = 2, .microbatches = 3}).value();
  list.ranks[0].pop_back();
  EXPECT_THAT(lower(list).error().text(), HasSubstr("0B2 is missing"));
  list.microbatches = std::numeric_limits<std::int32_t>::max();
  EXPECT_THAT(lower(list).error().text(), HasSubstr("is missing"));
}

TEST(CheckLowered, CountsGroups) {
  const auto facts = check_lowered(lowered_of(2, {0, 1},
                                              {"0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1",
                                               "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1"}));
  // The second send and the first receive of rank 0 are one group, and so they meet both ends of rank 1's.
  ASSERT_TRUE(facts) << facts.error().text();
  EXPECT_EQ(facts->messages, 4);
  EXPECT_EQ(facts->groups, 6);
  EXPECT_EQ(facts->largest_group, 2);
  EXPECT_THAT(facts->compute.peak_live, ElementsAre(2, 1));
}

// Rank 0 posts 0SEND_F1 alone, which rank 1 takes only after its own send has been met.
TEST(CheckLowered, ShowsTheCycleOfARendezvousDeadlock) {
  const std::string r0 = "0F0 0SEND_F0 0F1 0SEND_F1 0F2 0SEND_F2 0RECV_B0 0B0 0RECV_B1 0B1 0RECV_B2 0B2";
  const std::string r1 = "1RECV_F1 1F1 1B1 1SEND_B1 1RECV_F2 1F2 1B2 1SEND_B2";
  EXPECT_EQ(fault(lowered_of(3, {0, 1}, {r0, "1RECV_F0 1F0 1I0 1W0 1SEND_B0 " + r1})), "sound");
  EXPECT_EQ(fault(lowered_of(3, {0, 1}, {r0, "1RECV_F0 1F0 1I0 1SEND_B0 1W0 " + r1})),
            "the communication deadlocks: 2 messages wait for each other in a circle\n"
            "  rank 0 cell 3, 0SEND_F1, waits for rank 1 cell 5, 1RECV_F1\n"
            "  rank 1 cell 3, 1SEND_B0, waits for rank 0 cell 6, 0RECV_B0");
}

TEST(CheckLowered, NamesWhatIsWrongWithAMessage) {
  const std::string r0 = "0F0 0SEND_F0 0RECV_B0 0B0", r1 = "1RECV_F0 1F0 1B0 1SEND_B0";
  EXPECT_EQ(fault(lowered_of(1, {0, 1}, {r0, r1})), "sound");
  const auto of = [&](const std::string& a, const std::string& b) {
    return fault(lowered_of(1, {0, 1}, {a, b}));
  };
  EXPECT_EQ(of("0SEND_F0 0F0 0RECV_B0 0B0", r1), "0SEND_F0, cell 0 of rank 0, sends before 0F0 runs");
  EXPECT_EQ(of(r0, "1F0 1RECV_F0 1B0 1SEND_B0"),
            "1F0, cell 0 of rank 1, runs before 1RECV_F0 brings its input");
  EXPECT_EQ(of("0F0 0SEND_F0 0B0 0RECV_B0", r1),
            "0B0, cell 2 of rank 0, runs before 0RECV_B0 brings its gradient");
  EXPECT_EQ(of(r0, "1RECV_F0 1F0 1SEND_B0 1B0"),
            "1SEND_B0, cell 2 of rank 1, sends before the backward of stage 1 for microbatch 0 runs");
  EXPECT_EQ(of("0F0 0RECV_B0 0B0", r1), "0SEND_F0 is missing: rank 1 waits for it");
  EXPECT_EQ(of(r0, "1RECV_F0 1F0 1B0"), "1SEND_B0 is missing: rank 0 waits for it");
  EXPECT_THAT(of("0F0 0SEND_F0 0SEND_F0 0RECV_B0 0B0", r1), HasSubstr("stands a second time"));
  EXPECT_THAT(of("0F0 0SEND_F0 0RECV_F0 0RECV_B0 0B0", r1), HasSubstr("there is no stage before stage 0"));
  EXPECT_THAT(of(r0, "1RECV_F0 1F0 1SEND_F0 1B0 1SEND_B0"), HasSubstr("there is no stage after stage 1"));
  EXPECT_THAT(of("0F0 0SEND_F0 0RECV_B0 0B0 1SEND_B0", "1RECV_F0 1F0 1B0"),
              HasSubstr("but stage 1 is on rank 1"));
  EXPECT_THAT(of("0F0 0SEND_F7 0RECV_B0 0B0", r1), HasSubstr("names microbatch 7"));
  EXPECT_THAT(fault(lowered_of(1, {0, 0}, {"0F0 0SEND_F0 1RECV_F0 1F0 1B0 0B0"})),
              HasSubstr("stays on its rank: stage 1 is on rank 0 too"));
}

TEST(CheckLowered, HoldsShardingToItsOrder) {
  const auto of = [](const std::string& row) { return fault(lowered_of(1, {0}, {row})); };
  EXPECT_EQ(of("0UNSHARD 0F0 0B0 0REDUCE_GRAD 0RESHARD"), "sound");
  EXPECT_EQ(of("0UNSHARD 0F0 0RESHARD 0UNSHARD 0B0 0RESHARD"), "sound");
  EXPECT_THAT(of("0F0 0UNSHARD 0B0"),
              HasSubstr("0UNSHARD, cell 1 of rank 0, gathers weights with which stage 0 has computed"));
  EXPECT_THAT(of("0UNSHARD 0UNSHARD 0F0 0B0"), HasSubstr("a second time"));
  EXPECT_THAT(of("0RESHARD 0UNSHARD 0F0 0B0"), HasSubstr("drops weights of stage 0 that are not there"));
  EXPECT_THAT(of("0F0 0REDUCE_GRAD 0B0"), HasSubstr("makes a gradient after 0REDUCE_GRAD"));
  EXPECT_THAT(of("0F0 0B0 0REDUCE_GRAD 0REDUCE_GRAD"), HasSubstr("a second time"));
  EXPECT_THAT(fault(lowered_of(1, {0, 0}, {"0F0 1F0 1B0 1REDUCE_GRAD 0B0"})),
              HasSubstr("0REDUCE_GRAD is missing, while stage 1 has its own"));
}

TEST(CheckLowered, SeesMessagesOvertakeInsideAGroup) {
  const std::string r0 = "0F0 0F1 0SEND_F0 0SEND_F1 0F2 0SEND_F2 0RECV_B0 0B0 0RECV_B1 0B1 0RECV_B2 0B2";
  const std::string r1 = " 1F0 1B0 1SEND_B0 1RECV_F2 1F1 1B1 1SEND_B1 1F2 1B2 1SEND_B2";
  const auto in_order = check_lowered(lowered_of(3, {0, 1}, {r0, "1RECV_F0 1RECV_F1" + r1}));
  ASSERT_TRUE(in_order) << in_order.error().text();
  EXPECT_FALSE(in_order->overtaking);
  const auto crossed = check_lowered(lowered_of(3, {0, 1}, {r0, "1RECV_F1 1RECV_F0" + r1}));
  ASSERT_TRUE(crossed) << crossed.error().text();
  ASSERT_TRUE(crossed->overtaking);
  EXPECT_EQ(text(crossed->overtaking->send), "0SEND_F1");
  EXPECT_EQ(crossed->overtaking->from, RankId(0));
  EXPECT_EQ(crossed->overtaking->to, RankId(1));
}

TEST(CheckLowered, IsNotMisledByHugeCounts) {
  LoweredList list = lowered_of(1, {0}, {"0F0 0B0"});
  list.microbatches = std::numeric_limits<std::int32_t>::max();
  EXPECT_THAT(fault(list), HasSubstr("0F1 is missing"));
  list.microbatches = -1;
  EXPECT_THAT(fault(list), HasSubstr("-1 microbatches"));
  list.microbatches = 0;
  list.ranks[0] = {parse_cell("0UNSHARD").value()};
  EXPECT_THAT(fault(list), HasSubstr("without microbatches"));
  list.pipelines = 2;
  EXPECT_THAT(fault(list), HasSubstr("2 pipelines"));
}

TEST(CheckLowered, AgreesWithAStepByStepExecutorOnMutatedLists) {
  Random random(6);
  std::map<bool, int> verdicts;
  std::map<std::string, int> reasons;
  const int lists = rounds(10'000, 150'000);
  for (int round = 0; round < lists; ++round) {
    LoweredList list = testing::random_lowered(random);
    for (int k = random.below(4); k > 0; --k) testing::mutate(list, random);
    const auto facts = check_lowered(list);
    ASSERT_EQ(facts.has_value(), testing::SlowExecutor(list).runs_to_the_end())
        << round << ": " << fault(list) << "\n"
        << write_torch_csv(list).value_or("");
    ++verdicts[facts.has_value()];
    if (!facts) ++reasons[facts.error().message.substr(0, 27)];
  }
  // The comparison says something only if both verdicts are common, and deadlocks are among the failures.
  EXPECT_GT(verdicts[true], lists / 5);
  EXPECT_GT(verdicts[false], lists / 5);
  EXPECT_GT(reasons["the communication deadlocks"], lists / 200);
}

}  // namespace
}  // namespace tessera::train
