// Templates whose order depends on durations: never worse than published orders, whatever the durations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/train/schedule/check_schedule.h"
#include "train/random.h"
#include "train/schedule/order_times.h"
#include "train/schedule/vectors.h"

namespace tessera::train {
namespace {

using testing::ChunkTimes;
using testing::costs_of;
using ::testing::HasSubstr;
using testing::order_times;
using testing::Random;

std::int32_t most(const std::vector<std::int32_t>& peaks) {
  return *std::ranges::max_element(peaks);
}

class ReferenceHeuristic : public ::testing::TestWithParam<testing::Vector> {};

TEST_P(ReferenceHeuristic, IsNotWorseThanPublished) {
  const Document document = testing::read_vector(GetParam().file);
  const Cursor root = document.root();
  const TemplateSizes sizes = testing::sizes_of(root, 0);
  const Cursor published = root.find("peak_activation_chunks").value();
  const Cursor timing = root.find("timing").value();
  ASSERT_EQ(timing.size(), 3U);
  for (std::size_t c = 0; c < timing.size(); ++c) {
    const Cursor cost = timing.item(c).find("cost").value();
    const auto number = [&](std::string_view key) { return cost.find(key)->number(0, 1e9).value(); };
    const ChunkTimes t{.f = number("F"), .i = number("I"), .w = number("W"), .comm = number("comm")};
    const auto list = make_schedule(GetParam().schedule, sizes, costs_of(t, sizes.pp * sizes.vp));
    ASSERT_TRUE(list) << list.error().text();
    const auto facts = check_schedule(*list);
    ASSERT_TRUE(facts) << facts.error().text();
    EXPECT_LE(order_times(*list, t).makespan, timing.item(c).find("makespan")->number(0, 1e9).value())
        << timing.key(c);
    for (const auto& [key, peaks] : {std::pair{"peak_F_minus_dgrad", &facts->peak_live},
                                     std::pair{"peak_F_minus_wgrad", &facts->peak_until_weight}}) {
      std::int32_t limit = 0;
      for (std::size_t r = 0; r < facts->peak_live.size(); ++r)
        limit = std::max(limit, testing::integer_at(published.find(key)->item(r)));
      EXPECT_LE(most(*peaks), limit) << key;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Vectors, ReferenceHeuristic, ::testing::ValuesIn(testing::heuristic_vectors()),
                         [](const auto& of) { return of.param.file; });

// Idle time and peak of the published heuristics with F = I = W = 1 and two microbatches a rank
// (sail-sg/zero-bubble-pipeline-parallelism, zbv_greedy.py).
TEST(ZeroBubble, HalfAndMinimalMemoryAreNotWorseThanPublished) {
  struct Row {
    Template schedule;
    int p, idle, live;
  };
  for (const Row& row :
       {Row{Template::v_half, 4, 5, 6}, Row{Template::v_half, 6, 11, 8}, Row{Template::v_half, 8, 17, 10},
        Row{Template::v_min, 4, 11, 4}, Row{Template::v_min, 6, 17, 6}, Row{Template::v_min, 8, 27, 8}}) {
    const ActionList list =
        make_schedule(row.schedule, {.pp = row.p, .vp = 2, .microbatches = 2 * row.p}).value();
    const ScheduleFacts facts = check_schedule(list).value();
    EXPECT_LE(order_times(list, ChunkTimes{}).least_idle(), row.idle) << name(row.schedule) << row.p;
    EXPECT_LE(most(facts.peak_until_weight), row.live) << name(row.schedule) << row.p;
  }
}

// Four stages, the last one 60 % slower, transfers of 1: published orders for these durations end at 433,
// with four or eight activations (sail-sg/zero-bubble-pipeline-parallelism, zb.py).
TEST(ZeroBubble, KeepsUpWhereStagesDiffer) {
  ScheduleCosts costs{.transfer = Seconds(1)};
  for (int s = 0; s < 4; ++s) {
    const double slower = s == 3 ? 1.0 : 0.0;
    costs.stages.push_back({Seconds(10 + 6 * slower), Seconds(12 + 8 * slower), Seconds(8 + 6 * slower)});
  }
  const auto of = [&](StageId s) {
    const StageCost& c = costs.stages[s.index()];
    return ChunkTimes{
        .f = c.forward.value(), .i = c.input_gradient.value(), .w = c.weight_gradient.value(), .comm = 1};
  };
  for (const int live : {4, 8}) {
    const ActionList list =
        make_schedule(Template::zb_h1, {.pp = 4, .microbatches = 8, .most_live = live}, costs).value();
    EXPECT_LE(order_times(list, of).makespan, 433);
    EXPECT_LE(most(check_schedule(list)->peak_until_weight), live);
  }
}

TEST(ZeroBubble, IsSoundForAnyDurationsAndLimits) {
  Random random(5);
  for (int round = 0; round < testing::rounds(300, 5000); ++round) {
    constexpr Template kAll[] = {Template::zb_h1,         Template::zb_h2,  Template::zb_v,
                                 Template::one_f_one_b_v, Template::v_half, Template::v_min};
    const Template schedule = kAll[random.below(6)];
    TemplateSizes sizes{.pp = random.between(1, 9),
                        .vp = traits(schedule).chunks,
                        .microbatches = random.between(1, 30),
                        .effort = random.below(2)};
    if (random.chance(0.5)) sizes.most_live = random.between(sizes.vp, 2 * sizes.pp + 2);
    ScheduleCosts costs{.transfer = Seconds(random.chance(0.5) ? 0 : random.unit())};
    for (int s = 0; s < sizes.pp * sizes.vp; ++s)
      costs.stages.push_back({Seconds(random.below(3)), Seconds(3 * random.unit()), Seconds(random.unit())});
    const auto list = make_schedule(schedule, sizes, costs);
    ASSERT_TRUE(list) << list.error().text();
    const auto facts = check_schedule(*list);
    ASSERT_TRUE(facts) << facts.error().text();
    ASSERT_EQ(*list, make_schedule(schedule, sizes, costs).value());
    if (sizes.most_live > 0) {
      EXPECT_LE(most(facts->peak_until_weight), sizes.most_live);
    }
  }
}

TEST(ZeroBubble, RefusesDurationsThatAreNone) {
  const auto refusal = [](const TemplateSizes& sizes, const ScheduleCosts& costs) {
    const auto list = make_schedule(Template::v_half, sizes, costs);
    return list ? "accepted" : list.error().text();
  };
  const TemplateSizes sizes{.pp = 2, .vp = 2, .microbatches = 4};
  EXPECT_THAT(refusal(sizes, {.stages = std::vector<StageCost>(3)}),
              HasSubstr("durations of 3 stages, but there are 4"));
  ScheduleCosts costs{.stages = std::vector<StageCost>(4)};
  costs.stages[2].input_gradient = Seconds(-1);
  EXPECT_THAT(refusal(sizes, costs), HasSubstr("stage 2 takes 1, -1 and 1 s; expected finite numbers ≥ 0"));
  EXPECT_THAT(refusal(sizes, {.transfer = Seconds(std::nan(""))}), HasSubstr("a transfer takes nan s"));
  EXPECT_THAT(refusal({.pp = 2, .vp = 2, .microbatches = 4, .most_live = 1}, {}),
              HasSubstr("a rank that may hold 1 chunk activations cannot run 2 virtual stages"));
}

}  // namespace
}  // namespace tessera::train
