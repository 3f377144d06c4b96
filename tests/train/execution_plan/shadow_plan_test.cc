// Shadow microbatches in a plan: its checks, its file, and targets that cannot hold them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/train/execution_plan/export.h"
#include "tessera/train/execution_plan/plan_file.h"
#include "tessera/train/schedule/shadow.h"
#include "train/testing.h"

namespace tessera::train {
namespace {

using ::testing::HasSubstr;

ExecutionPlan padded_plan(Template schedule, int pp, int real, int padded, std::vector<std::int32_t> places) {
  testing::Random random(7);
  ActionList list =
      make_padded_schedule(schedule, {.pp = pp, .vp = 2, .microbatches = real}, padded, places).value();
  const std::size_t distinct = list.stages() / static_cast<std::size_t>(list.pipelines);
  std::vector<std::vector<BlockCost>> stages(list.stages());
  for (std::size_t s = 0; s < distinct; ++s) stages[s] = {testing::random_layer(random)};
  ExecutionPlan plan;
  if (list.pipelines == 1) {
    plan = testing::make_plan(std::move(list), stages);
  } else {
    // Both pipelines hold the same blocks, so the plan is made in two steps.
    ActionList alone = list;
    for (auto& rank : alone.ranks) rank.clear();
    plan = testing::make_plan(std::move(alone), stages);
    for (std::size_t s = 0; s < distinct; ++s) plan.partition.stages[distinct + s] = plan.partition.stages[s];
    for (const auto& rank : list.ranks)
      for (const Action& action : rank) {
        if (action.kind != ActionKind::overlap || plan.pair(action.stage, action.backward_stage) != nullptr)
          continue;
        const TaskGraph graph =
            pair_graph(plan.forward_graph(action.stage), plan.backward_graph(action.backward_stage));
        plan.pairs.push_back({.forward = action.stage,
                              .backward = action.backward_stage,
                              .sequence = names_of(graph, testing::defer_sequence(graph))});
      }
    plan.actions = std::move(list);
  }
  plan.layout.microbatches = real;
  plan.schedule = std::string(name(schedule));
  plan.group = pp;
  return plan;
}

TEST(ShadowPlan, ComesBackFromItsFile) {
  for (const ExecutionPlan& plan : {padded_plan(Template::interleaved_overlap, 4, 10, 12, {0, 7}),
                                    padded_plan(Template::dual_pipe, 4, 9, 10, {3}),
                                    padded_plan(Template::interleaved_zb, 4, 3, 4, {2})}) {
    const Status sound = check_plan(plan);
    ASSERT_TRUE(sound) << sound.error().text();
    const std::string text = write_plan(plan);
    const auto read = read_plan(Document::parse(text, "plan.yaml", DocumentFormat::yaml)->root());
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(read->actions, plan.actions);
    EXPECT_EQ(write_plan(*read), text);
  }
  // Number 3 of both pipelines together is the second one's microbatch 1.
  EXPECT_THAT(write_plan(padded_plan(Template::dual_pipe, 4, 9, 10, {3})), HasSubstr("\n  shadows: [6]\n"));
}

TEST(ShadowPlan, RefusesADamagedFile) {
  const std::string text = write_plan(padded_plan(Template::interleaved, 4, 10, 12, {0, 7}));
  const auto fault = [&](const std::string& shadows) {
    std::string changed = text;
    const std::string line = "  shadows: [0, 7]\n";
    changed.replace(changed.find(line), line.size(), shadows);
    const auto plan = read_plan(Document::parse(changed, "plan.yaml", DocumentFormat::yaml)->root());
    return plan ? std::string("sound") : plan.error().text();
  };
  EXPECT_EQ(fault("  shadows: [7, 0]\n"), "sound");
  EXPECT_THAT(fault("  shadows: [0, 12]\n"), HasSubstr("actions.shadows[1]"));
  EXPECT_THAT(fault("  shadows: [0, 12]\n"), HasSubstr("0 … 11"));
  EXPECT_THAT(fault("  shadows: [7, 7]\n"), HasSubstr("microbatch 7 is there twice"));
  EXPECT_THAT(fault("  shadows: []\n"), HasSubstr("leave the key out when there are none"));
  EXPECT_THAT(fault("  shadows: 7\n"), HasSubstr("expected the numbers of the shadow microbatches"));
  EXPECT_THAT(fault("  shadows: [7]\n"),
              HasSubstr("12 microbatches, 11 of them no shadows, but layout.microbatches is 10"));
  EXPECT_THAT(fault(""), HasSubstr("12 microbatches, but layout.microbatches is 10"));
}

TEST(ShadowPlan, IsRefusedWhereTheTargetKnowsNoShadows) {
  const auto refused = megatron_layout(padded_plan(Template::interleaved, 4, 10, 12, {0, 7}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(),
            "Megatron's layout string cannot hold this plan: 2 of its 12 microbatches are shadows, and a "
            "launcher that is given 12 would train on all of them\n"
            "  The nearest legal group size is 5: plan with schedule.group: 5. Shadows need a runtime that "
            "skips their compute and their collectives.");
  // No group is legal for fewer microbatches than ranks.
  EXPECT_THAT(check_no_shadows(padded_plan(Template::interleaved_zb, 4, 3, 4, {2}), "X").error().text(),
              HasSubstr("Plan with 4 real microbatches, or another template."));
  EXPECT_TRUE(check_no_shadows(padded_plan(Template::interleaved, 4, 12, 12, {}), "X"));
}

TEST(ShadowPlan, IsRefusedForALayoutStringOnOtherRanks) {
  EXPECT_THAT(megatron_layout(padded_plan(Template::dual_pipe, 4, 10, 10, {})).error().text(),
              HasSubstr("puts stage k on rank k mod pp, and the plan has every stage on two ranks"));
  EXPECT_THAT(megatron_layout(padded_plan(Template::zb_v, 4, 10, 10, {})).error().text(),
              HasSubstr("the plan has stage 4 on rank 3"));
}

}  // namespace
}  // namespace tessera::train
