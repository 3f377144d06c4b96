#include "tessera/train/schedule/schedule_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/train/schedule/check_schedule.h"
#include "train/schedule/vectors.h"

namespace tessera::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::integer_at;
using testing::integer_of;
using ::testing::IsEmpty;
using testing::read_vector;
using testing::sizes_of;

int stage_at(Cursor place, int ranks) {
  const auto name = place.string();
  return name ? std::stoi(testing::with_stages(*name + "F", ranks)) : integer_at(place);
}

class ReferenceOrder : public ::testing::TestWithParam<testing::Vector> {};

TEST_P(ReferenceOrder, IsMatchedActionByAction) {
  const Document document = read_vector(GetParam().file);
  const Cursor root = document.root();
  const auto list = make_schedule(GetParam().schedule, sizes_of(root, GetParam().group));
  ASSERT_TRUE(list) << list.error().text();
  const Cursor orders = root.find("orders").value();
  ASSERT_EQ(list->ranks.size(), orders.size());
  for (std::size_t r = 0; r < orders.size(); ++r) {
    std::vector<std::string> expected, found;
    for (std::size_t i = 0; i < orders.item(r).size(); ++i)
      expected.push_back(
          testing::with_stages(orders.item(r).item(i).string().value(), integer_of(root, "ranks")));
    for (const Action& action : list->ranks[r]) found.push_back(text(action));
    EXPECT_EQ(found, expected) << "rank " << r;
  }
  const Cursor placement = root.find("placement").value();
  for (std::size_t r = 0; r < placement.size(); ++r)
    for (std::size_t i = 0; i < placement.item(r).size(); ++i)
      EXPECT_EQ(list->rank_of_stage[static_cast<std::size_t>(
                                        stage_at(placement.item(r).item(i), integer_of(root, "ranks")))]
                    .value(),
                r);
}

TEST_P(ReferenceOrder, HasTheReferencePeaks) {
  const Document document = read_vector(GetParam().file);
  const Cursor root = document.root();
  const auto facts =
      check_schedule(make_schedule(GetParam().schedule, sizes_of(root, GetParam().group)).value());
  ASSERT_TRUE(facts) << facts.error().text();
  const Cursor peaks = root.find("peak_activation_chunks").value();
  for (std::size_t r = 0; r < facts->peak_live.size(); ++r) {
    EXPECT_EQ(facts->peak_live[r], integer_at(peaks.find("peak_F_minus_dgrad")->item(r)));
    EXPECT_EQ(facts->peak_until_weight[r], integer_at(peaks.find("peak_F_minus_wgrad")->item(r)));
  }
}

INSTANTIATE_TEST_SUITE_P(Vectors, ReferenceOrder, ::testing::ValuesIn(testing::vectors()),
                         [](const auto& of) { return of.param.file; });

TEST(ScheduleTemplate, FollowsMegatronsTablesAndWarmUps) {
  const Document document = read_vector("megatron_schedule_table");
  const Cursor tables = document.root().find("tables").value();
  ASSERT_GT(tables.size(), 0U);
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const Cursor table = tables.item(t);
    const int pp = integer_of(table, "pp"), vp = integer_of(table, "vpp");
    const TemplateSizes sizes{.pp = pp,
                              .vp = vp,
                              .microbatches = integer_of(table, "microbatches"),
                              .group = integer_of(table, "group_size"),
                              .any_group = true};
    for (const auto& [schedule, key] : {std::pair{Template::interleaved, "warmup"},
                                        std::pair{Template::interleaved_overlap, "warmup_ep_overlap"}}) {
      const ActionList list = make_schedule(schedule, sizes).value();
      for (std::size_t r = 0; r < list.ranks.size(); ++r) {
        std::int32_t leading = 0;
        std::size_t step = 0;
        bool counting = true;
        for (const Action& action : list.ranks[r]) {
          if (action.kind == ActionKind::full_backward) continue;
          EXPECT_EQ(action.microbatch.value(), integer_at(table.find("microbatch_id")->item(step)));
          EXPECT_EQ(action.stage.value() / pp, integer_at(table.find("model_chunk_id")->item(step)));
          ++step;
        }
        for (const Action& action : list.ranks[r]) {
          counting = counting && action.kind == ActionKind::forward;
          leading += counting ? 1 : 0;
        }
        // Without pairs the first steady step begins with a forward, too.
        const std::int32_t warmup = integer_at(table.find(key)->item(r));
        const std::int32_t all = vp * sizes.microbatches;
        EXPECT_EQ(leading,
                  schedule == Template::interleaved ? std::min(all, warmup + 1) : std::min(all, warmup));
      }
    }
  }
  const Cursor rules = document.root().find("rules").value();
  ASSERT_GT(rules.size(), 0U);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const Cursor rule = rules.item(i);
    const auto list = make_schedule(Template::interleaved, {.pp = integer_of(rule, "pp"),
                                                            .vp = 2,
                                                            .microbatches = integer_of(rule, "microbatches"),
                                                            .group = integer_of(rule, "group_size")});
    EXPECT_EQ(list.has_value(), rule.find("verdict")->string().value() == "accepted") << i;
  }
}

TEST(ScheduleTemplate, KnowsTheLegalGroupSizes) {
  EXPECT_THAT(legal_groups(4, 6), ElementsAre(6));
  EXPECT_THAT(legal_groups(4, 7), ElementsAre(7));
  EXPECT_THAT(legal_groups(4, 9), ElementsAre(5, 9));
  EXPECT_THAT(legal_groups(4, 10), ElementsAre(5, 6, 10));
  EXPECT_THAT(legal_groups(4, 11), ElementsAre(6, 7, 11));
  EXPECT_THAT(legal_groups(4, 13), ElementsAre(7, 8, 9, 13));
  EXPECT_THAT(legal_groups(4, 3), IsEmpty());
  EXPECT_THAT(legal_groups(6, 3), IsEmpty());
  for (int m : {3, 6, 7, 9, 10, 11, 12, 13})
    EXPECT_EQ(
        make_schedule(Template::interleaved, {.pp = 4, .vp = 2, .microbatches = m, .group = 4}).has_value(),
        m == 12);
}

TEST(ScheduleTemplate, AcceptsTwoRanksWithVirtualStages) {
  const auto list = make_schedule(Template::interleaved, {.pp = 2, .vp = 3, .microbatches = 4});
  ASSERT_TRUE(list);
  EXPECT_TRUE(check_schedule(*list));
}

std::string refusal(Template schedule, const TemplateSizes& sizes) {
  const auto list = make_schedule(schedule, sizes);
  return list ? "accepted" : list.error().text();
}

TEST(ScheduleTemplate, SaysWhichRuleTheSizesBreak) {
  EXPECT_THAT(refusal(Template::interleaved, {.pp = 6, .vp = 2, .microbatches = 3}),
              HasSubstr("3 microbatches cannot fill an interleaved pipeline of 6"));
  const std::string last_group =
      refusal(Template::interleaved, {.pp = 4, .vp = 2, .microbatches = 9, .group = 4});
  EXPECT_THAT(last_group,
              HasSubstr("9 microbatches in groups of 4 leave a last group of 1, fewer than the 4 ranks"));
  EXPECT_THAT(last_group, HasSubstr("The nearest legal group size is 5; legal are 5 and 9."));
  EXPECT_THAT(refusal(Template::interleaved, {.pp = 4, .vp = 2, .microbatches = 6}),
              HasSubstr("The nearest legal group size is 6; legal is 6."));
  EXPECT_THAT(refusal(Template::interleaved, {.pp = 4, .vp = 2, .microbatches = 12, .group = 3}),
              HasSubstr("a group of 3 microbatches is smaller than the pipeline of 4 ranks"));
  EXPECT_THAT(refusal(Template::interleaved_overlap, {.pp = 4, .vp = 2, .microbatches = 12, .group = 13}),
              HasSubstr("a group of 13 is larger than the 12 microbatches"));
  EXPECT_THAT(refusal(Template::one_f_one_b, {.pp = 4, .vp = 2, .microbatches = 12}),
              HasSubstr("1f1b has one virtual stage per rank, not 2"));
  EXPECT_THAT(refusal(Template::one_f_one_b, {.pp = 0, .microbatches = 12}),
              HasSubstr("a pipeline of 0 ranks"));
  EXPECT_THAT(refusal(Template::one_f_one_b, {.pp = 2, .microbatches = 0}), HasSubstr("0 microbatches"));
  EXPECT_THAT(refusal(Template::interleaved, {.pp = 1 << 20, .vp = 1 << 20, .microbatches = 1 << 30}),
              HasSubstr("are more than"));
}

TEST(ScheduleTemplate, TakesAnyGroupThatDoesNotDeadlock) {
  // The last group of 2 leaves the ranks idle, but it runs.
  EXPECT_TRUE(make_schedule(Template::interleaved,
                            {.pp = 4, .vp = 2, .microbatches = 6, .group = 4, .any_group = true}));
  // With pairs it does not always: here each of two ranks wants the other's gradient first.
  EXPECT_THAT(
      refusal(Template::interleaved_overlap, {.pp = 5, .vp = 2, .microbatches = 7, .any_group = true}),
      HasSubstr("wait for each other in a circle"));
}

TEST(ScheduleTemplate, SaysWhatAFixedShapeNeeds) {
  EXPECT_THAT(refusal(Template::zb_v, {.pp = 4, .vp = 1, .microbatches = 8}),
              HasSubstr("zb-v has 2 virtual stages per rank, not 1\n  Set vp to 2."));
  EXPECT_THAT(refusal(Template::dual_pipe, {.pp = 3, .vp = 2, .microbatches = 8}),
              HasSubstr("dualpipe needs an even number of ranks, not 3\n  The nearest legal pp is 4"));
  EXPECT_THAT(refusal(Template::dual_pipe, {.pp = 4, .vp = 2, .microbatches = 9}),
              HasSubstr("9 cannot be halved\n  The nearest legal numbers are 8 and 10"));
  EXPECT_THAT(refusal(Template::dual_pipe_v, {.pp = 4, .vp = 2, .microbatches = 7}),
              HasSubstr("7 microbatches are too few for dualpipe-v on 4 ranks\n  The nearest legal number is "
                        "2 · pp = 8."));
  EXPECT_THAT(refusal(Template::interleaved_zb, {.pp = 4, .vp = 2, .microbatches = 9, .group = 4}),
              HasSubstr("The nearest legal group size is 5"));
}

TEST(ScheduleTemplate, GivesInterleavedZeroBubbleTheSmallestLegalGroup) {
  const TemplateSizes sizes{.pp = 4, .vp = 2, .microbatches = 10};
  TemplateSizes five = sizes;
  five.group = 5;
  EXPECT_EQ(make_schedule(Template::interleaved_zb, sizes).value(),
            make_schedule(Template::interleaved_zb, five).value());
}

TEST(ScheduleTemplate, PutsStagesWhereTheyBelong) {
  for (int s = 0; s < 8; ++s) {
    EXPECT_EQ(rank_of_stage(Template::interleaved, 4, StageId(s)), RankId(s % 4));
    EXPECT_EQ(rank_of_stage(Template::zb_v, 4, StageId(s)), RankId(s < 4 ? s : 7 - s));
  }
  const ActionList dual = make_schedule(Template::dual_pipe, {.pp = 2, .vp = 2, .microbatches = 6}).value();
  EXPECT_EQ(dual.pipelines, 2);
  EXPECT_EQ(dual.microbatches, 3);
  EXPECT_THAT(dual.rank_of_stage, ElementsAre(RankId(0), RankId(1), RankId(1), RankId(0)));
  EXPECT_FALSE(dual.has_next(StageId(1)));
  EXPECT_FALSE(dual.has_previous(StageId(2)));
  EXPECT_TRUE(dual.has_next(StageId(2)));
}

TEST(ScheduleTemplate, IsFoundByItsName) {
  for (std::size_t t = 0; t < kTemplates; ++t)
    EXPECT_EQ(template_by_name(name(static_cast<Template>(t))).value(), static_cast<Template>(t));
  EXPECT_EQ(template_by_name("ZB_V").value(), Template::zb_v);
  EXPECT_EQ(template_by_name("zbv").value(), Template::zb_v);
  EXPECT_EQ(template_by_name("dualpipev").value(), Template::dual_pipe_v);
  EXPECT_THAT(template_by_name("interleave").error().text(), HasSubstr("Did you mean interleaved?"));
}

TEST(ScheduleTemplate, PassesTheCheckerForAllSmallSizes) {
  int lists = 0;
  for (int pp = 1; pp <= 6; ++pp)
    for (int vp = 1; vp <= 3; ++vp)
      for (int m = 1; m <= 14; ++m)
        for (std::size_t all = 0; all < kTemplates; ++all)
          for (int n = 0; n <= m; ++n) {
            const auto t = static_cast<Template>(all);
            if (!traits(t).groups && n > 0) continue;
            const auto list =
                make_schedule(t, {.pp = pp, .vp = vp, .microbatches = m, .group = n, .effort = 0});
            if (!list) continue;
            const auto facts = check_schedule(*list);
            ASSERT_TRUE(facts) << pp << ' ' << vp << ' ' << m << ' ' << n << ' ' << facts.error().text();
            ++lists;
          }
  EXPECT_GT(lists, 5000);
}

}  // namespace
}  // namespace tessera::train
