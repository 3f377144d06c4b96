#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tessera/train/execution_plan/execution_plan.h"
#include "train/testing.h"

namespace tessera::train {
namespace {

using ::testing::HasSubstr;
using testing::make_plan;
using testing::Random;
using testing::random_layer;

ExecutionPlan sound_plan() {
  Random random(3);
  std::vector<std::vector<BlockCost>> stages(4);
  for (auto& blocks : stages)
    for (int k = 0; k < 2; ++k) blocks.push_back(random_layer(random));
  return make_plan(
      make_schedule(Template::interleaved_overlap, {.pp = 2, .vp = 2, .microbatches = 4}).value(), stages);
}

template <class Change>
std::string fault(Change&& change) {
  ExecutionPlan plan = sound_plan();
  change(plan);
  const Status status = check_plan(plan);
  return status ? "sound" : status.error().text();
}

TEST(CheckPlan, AcceptsASoundPlan) {
  EXPECT_EQ(fault([](ExecutionPlan&) {}), "sound");
}

TEST(CheckPlan, HoldsTheSizesTogether) {
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.version = 2; }), HasSubstr("version 2 is not 1 … 1"));
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.layout.pp = 3; }),
              HasSubstr("actions: 2 ranks, but layout.pp is 3"));
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.layout.pp = 0; }),
              HasSubstr("layout: pp 0 and vp 2 must be at least 1"));
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.layout.vp = 1; }),
              HasSubstr("actions: 4 stages, but pp · vp is 2"));
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.layout.microbatches = 5; }),
              HasSubstr("actions: 4 microbatches, but layout.microbatches is 5"));
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.actions.pipelines = 3; }),
              HasSubstr("actions: 4 stages are not 3 pipelines of equal length"));
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.actions.pipelines = 2; }),
              HasSubstr("actions: 4 microbatches in each of 2 pipelines, but layout.microbatches is 4"));
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.partition.stages.pop_back(); }),
              HasSubstr("partition: 3 stages, but pp · vp is 4"));
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.rank_speed = {1.0}; }),
              HasSubstr("rank_speed: 1 entries, but layout.pp is 2"));
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.step.clear(); }), HasSubstr("step: 0 entries"));
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.memory.clear(); }), HasSubstr("memory: 0 entries"));
}

TEST(CheckPlan, WantsSoundNumbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(fault([&](ExecutionPlan& p) { testing::set(p.costs[1], Pass::forward, TaskKind::mlp, nan); }),
              HasSubstr("costs[1]: F_MLP of layer takes nan"));
  EXPECT_THAT(fault([&](ExecutionPlan& p) { testing::set(p.costs[1], Pass::forward, TaskKind::mlp, -1); }),
              HasSubstr("costs[1]: F_MLP of layer takes -1"));
  EXPECT_THAT(fault([&](ExecutionPlan& p) { testing::set(p.costs[0], Pass::weight, TaskKind::dispatch, 1); }),
              HasSubstr("a communication has no weight gradient"));
  EXPECT_THAT(
      fault([&](ExecutionPlan& p) { testing::set(p.costs[0], Pass::recompute, TaskKind::combine, 1); }),
      HasSubstr("R_COMB of layer: only ATTN, MLP and SHARED have recompute of their own"));
  EXPECT_THAT(fault([&](ExecutionPlan& p) {
                testing::set(p.costs[0], Pass::recompute, TaskKind::mlp, 1);
                p.costs[0].task(Pass::backward, TaskKind::mlp).exists = false;
              }),
              HasSubstr("R_MLP of layer: there is no B task that needs it"));
  EXPECT_THAT(
      fault([&](ExecutionPlan& p) { testing::set(p.costs[0], Pass::forward, TaskKind::mlp, 1, 1.5); }),
      HasSubstr("has compute share 1.5; expected 0 … 1"));
  EXPECT_THAT(fault([&](ExecutionPlan& p) { p.costs[2].memory.workspace = Bytes(-1); }),
              HasSubstr("holds -1 bytes"));
  EXPECT_THAT(fault([&](ExecutionPlan& p) { p.interference.compute_bound_rate = 0; }),
              HasSubstr("rate 0 is not above 0"));
  EXPECT_THAT(fault([&](ExecutionPlan& p) { p.transfer_time = Seconds(nan); }),
              HasSubstr("transfer.time: nan"));
  EXPECT_THAT(fault([&](ExecutionPlan& p) { p.rank_speed = {1.0, 0.0}; }),
              HasSubstr("rank_speed[1]: 0 is not"));
  EXPECT_THAT(fault([&](ExecutionPlan& p) { p.step[1].optimizer = Seconds(-2); }),
              HasSubstr("step[1]: -2 is not"));
  EXPECT_THAT(fault([&](ExecutionPlan& p) { p.memory[0].context = Bytes(nan); }),
              HasSubstr("memory[0]: nan is not"));
}

TEST(CheckPlan, WantsACoverAndASoundSchedule) {
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.partition.stages[1].begin = 3; }), HasSubstr("partition: "));
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.partition.stages[1].begin = 3; }),
              HasSubstr("no stage holds layer 2"));
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.blocks[2].cost = 99; }),
              HasSubstr("blocks[2]: cost 99 of 8 costs"));
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.actions.ranks[0].pop_back(); }),
              HasSubstr("actions: 0B3 is missing"));
}

TEST(CheckPlan, WantsASequenceForEveryOverlappedPair) {
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.pairs.pop_back(); }),
              HasSubstr("but the plan has no such pair"));
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.pairs[0].sequence.pop_back(); }),
              HasSubstr("the sequence lacks"));
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.pairs.push_back(p.pairs[0]); }), HasSubstr("is there twice"));
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.pairs[0].forward = StageId(9); }),
              HasSubstr("stage 9 of 4 stages"));
  EXPECT_THAT(fault([](ExecutionPlan& p) { p.pairs[0].makespan = Seconds(-1); }),
              HasSubstr("pairs[0]: -1 is not"));
}

TEST(ExecutionPlan, LeavesWeightGradientsOutOfASplitPair) {
  ExecutionPlan plan = sound_plan();
  Action pair = *std::ranges::find(plan.actions.ranks[0], ActionKind::overlap, &Action::kind);
  const PairRun full = pair_run(plan, pair).value();
  pair.backward_kind = ActionKind::input_gradient;
  const PairRun split = pair_run(plan, pair).value();
  EXPECT_LT(split.order.size(), full.order.size());
  for (const Task& task : split.graph.tasks) EXPECT_NE(task.name.pass, Pass::weight);
}

TEST(ExecutionPlan, AddsUpWhatAStageKeepsAlive) {
  const ExecutionPlan plan = sound_plan();
  EXPECT_EQ(plan.activation(StageId(1)), plan.costs[2].memory.activation + plan.costs[3].memory.activation);
  EXPECT_EQ(plan.weight_stash(StageId(3)),
            plan.costs[6].memory.weight_stash + plan.costs[7].memory.weight_stash);
}

}  // namespace
}  // namespace tessera::train
