#include "tessera/train/simulate/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/train/schedule/check_schedule.h"
#include "train/simulate/slow_twin.h"
#include "train/testing.h"

namespace tessera::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::make_plan;
using testing::plain_block;
using testing::plain_plan;
using testing::Random;
using testing::random_embedding;
using testing::random_head;
using testing::random_layer;
using testing::rounds;
using testing::SlowTwin;
using testing::TwinResult;

ActionList schedule(Template t, int pp, int vp, int m, int group = 0) {
  return make_schedule(t, {.pp = pp, .vp = vp, .microbatches = m, .group = group, .any_group = true}).value();
}

// A plan with everything in it: empty stages, split backwards, shadow microbatches, stragglers, interference,
// slow links, unequal steps.
ExecutionPlan random_plan(Random& random) {
  const int pp = random.between(1, 5), vp = random.between(1, 3), m = random.between(1, 9);
  const auto t =
      vp == 1 ? static_cast<Template>(random.below(3)) : static_cast<Template>(random.between(1, 2));
  auto made = make_schedule(t, {.pp = pp, .vp = vp, .microbatches = m, .any_group = true});
  if (!made) return random_plan(random);  // groups that deadlock
  ActionList list = *std::move(made);
  if (random.chance(0.4)) {
    for (auto& rank : list.ranks)
      for (std::size_t i = 0; i < rank.size(); ++i) {
        Action& a = rank[i];
        const bool pair = a.kind == ActionKind::overlap;
        if ((!pair && a.kind != ActionKind::full_backward) || !random.chance(0.5)) continue;
        const Action w{.kind = ActionKind::weight_gradient,
                       .stage = pair ? a.backward_stage : a.stage,
                       .microbatch = pair ? a.backward_microbatch : a.microbatch};
        (pair ? a.backward_kind : a.kind) = ActionKind::input_gradient;
        rank.insert(rank.begin() + random.between(static_cast<int>(i) + 1, static_cast<int>(rank.size())), w);
      }
  }
  std::vector<std::vector<BlockCost>> stages(list.stages());
  for (auto& blocks : stages) {
    if (random.chance(0.15)) continue;
    for (int k = random.between(1, 3); k > 0; --k)
      blocks.push_back(random_layer(random, random.chance(0.2) ? 0 : 1));
  }
  if (random.chance(0.5)) stages.front().insert(stages.front().begin(), random_embedding(random));
  if (random.chance(0.5)) stages.back().push_back(random_head(random));
  if (m > 1 && random.chance(0.4)) {
    list.shadow.assign(static_cast<std::size_t>(m), false);
    for (int k = random.between(1, m - 1); k > 0; --k)
      list.shadow[static_cast<std::size_t>(random.below(m))] = true;
  }
  ExecutionPlan plan = make_plan(std::move(list), stages);
  plan.layout.microbatches = plan.actions.real_microbatches();
  plan.exposed_reduction = random.chance(0.2) ? 1 : 0.5 * random.unit();
  if (random.chance(0.5)) plan.transfer_latency = Seconds(random.unit());
  if (random.chance(0.5)) plan.transfer_time = Seconds(2 * random.unit());
  if (random.chance(0.5)) plan.interference = {.compute_bound_rate = 0.8, .memory_bound_rate = 0.95};
  for (int r = 0; r < pp; ++r) {
    if (pp % 2 == 0) plan.rank_speed.push_back(0.5 + random.unit());
    plan.step[static_cast<std::size_t>(r)] = {Seconds(3 * random.unit()), Seconds(random.unit()),
                                              Seconds(random.unit())};
    if (random.chance(0.3)) plan.step[static_cast<std::size_t>(r)].all_gather = Seconds(20 * random.unit());
    plan.memory[static_cast<std::size_t>(r)].weights = Bytes(random.between(10, 20));
  }
  return plan;
}

TEST(Simulate, AgreesWithItsSlowTwinOnRandomPlans) {
  Random random(101);
  for (int round = 0; round < rounds(400, 4'000); ++round) {
    const ExecutionPlan plan = random_plan(random);
    const Status sound = check_plan(plan);
    ASSERT_TRUE(sound) << sound.error().text();
    const auto result = simulate(plan, {.slices = true});
    ASSERT_TRUE(result) << result.error().text();
    const TwinResult twin = SlowTwin(plan, static_cast<std::uint64_t>(round)).run();
    ASSERT_TRUE(twin.finished);
    const double near = 1e-9 * (1 + twin.iteration);
    ASSERT_NEAR(result->pipeline.value(), twin.pipeline, near) << round;
    ASSERT_NEAR(result->iteration.value(), twin.iteration, near) << round;
    for (const ActionSpan& span : result->actions) {
      const auto& other =
          twin.actions[static_cast<std::size_t>(span.rank)][static_cast<std::size_t>(span.index)];
      ASSERT_NEAR(span.start.value(), other.start, near);
      ASSERT_NEAR(span.end.value(), other.end, near);
    }
    for (std::size_t r = 0; r < result->ranks.size(); ++r) {
      const RankResult& rank = result->ranks[r];
      ASSERT_NEAR(rank.comp_busy.value(), twin.comp_busy[r], near);
      ASSERT_NEAR(rank.comm_busy.value(), twin.comm_busy[r], near);
      ASSERT_NEAR(rank.exposed_comm.value(), twin.exposed[r], near) << round << " rank " << r;
      ASSERT_NEAR(rank.warmup_idle.value(), twin.warmup[r], near);
      ASSERT_NEAR(rank.imbalance_idle.value(), twin.imbalance[r], near);
      ASSERT_NEAR(rank.cooldown_idle.value(), twin.cooldown[r], near);
      ASSERT_NEAR(rank.step_end.value(), twin.step_end[r], near);
      ASSERT_NEAR(rank.peak_activation.value(), twin.peak_activation[r], near);
      // Nothing is lost: inside an action some stream always runs, outside none does.
      ASSERT_NEAR(
          (rank.comp_busy + rank.exposed_comm + rank.warmup_idle + rank.imbalance_idle + rank.cooldown_idle)
              .value(),
          result->pipeline.value(), near);
      Bytes peak;
      for (const MemoryPoint& point : rank.memory) peak = std::max(peak, point.used);
      ASSERT_NEAR(rank.peak_memory.value(), peak.value(), 1e-9);
      ASSERT_NEAR(rank.memory.back().used.value(), plan.memory[r].total().value(), 1e-9);
    }
    ASSERT_LE(result->lower_bound.value(), result->iteration.value() * (1 + 1e-12)) << round;
    ASSERT_EQ(result->lower_bound, lower_bound(plan));
  }
}

// Worked by hand: rank 0 runs F0 F1 B0 B1, rank 1 F0 B0 F1 B1, and 0 is a shadow.
TEST(Simulate, ShadowsTakeNoTimeAndHoldNothing) {
  ActionList list = schedule(Template::one_f_one_b, 2, 1, 2);
  list.shadow = {true, false};
  ExecutionPlan plan = plain_plan(list, 2, 4);
  plan.layout.microbatches = 1;
  for (BlockCost& cost : plan.costs) cost.memory.activation = Bytes(10);
  ASSERT_TRUE(check_plan(plan));
  SimulateResult result = simulate(plan, {.slices = true}).value();
  EXPECT_EQ(result.pipeline.value(), 2 * (2 + 4));
  EXPECT_EQ(result.lower_bound, result.iteration);
  for (const RankResult& rank : result.ranks) {
    EXPECT_EQ(rank.comp_busy.value(), 2 + 4);
    EXPECT_EQ(rank.peak_live, 1);
    EXPECT_EQ(rank.peak_activation, Bytes(10));
  }
  EXPECT_EQ(result.ranks[0].warmup_idle.value(), 6);  // until its own real backward
  for (const Slice& slice : result.slices) EXPECT_EQ(slice.microbatch, MicrobatchId(1));
  EXPECT_EQ(result.actions.size(), 8U);
  // Its dummy tensors are as large as any: F0 arrives at 1, F1 at 3, B1 back at 10.
  plan.transfer_time = Seconds(1);
  result = simulate(plan, {.slices = true}).value();
  EXPECT_EQ(result.pipeline.value(), 14);
  EXPECT_EQ(result.transfers.size(), 4U);
}

TEST(Simulate, GivesTheSameFiguresWithoutSlices) {
  Random random(103);
  for (int round = 0; round < 50; ++round) {
    const ExecutionPlan plan = random_plan(random);
    const auto with = simulate(plan, {.slices = true}), without = simulate(plan);
    ASSERT_EQ(with->iteration, without->iteration);
    EXPECT_TRUE(without->slices.empty() && without->actions.empty() && without->transfers.empty());
    for (std::size_t r = 0; r < with->ranks.size(); ++r) {
      ASSERT_EQ(with->ranks[r].peak_memory, without->ranks[r].peak_memory);
      EXPECT_TRUE(without->ranks[r].memory.empty());
    }
  }
}

TEST(Simulate, RunsEachStreamOneTaskAtATime) {
  Random random(107);
  for (int round = 0; round < 50; ++round) {
    const ExecutionPlan plan = random_plan(random);
    const SimulateResult result = simulate(plan, {.slices = true}).value();
    std::map<std::pair<int, Resource>, std::vector<std::pair<Seconds, Seconds>>> streams;
    for (const Slice& s : result.slices) streams[{s.rank, s.stream}].emplace_back(s.start, s.end);
    for (const TransferSpan& t : result.transfers) {
      EXPECT_LE(t.ready, t.start);
      streams[{t.from_rank, Resource::p2p}].emplace_back(t.start, t.start + plan.transfer_time);
    }
    for (auto& [key, spans] : streams) {
      std::ranges::sort(spans);
      for (std::size_t i = 1; i < spans.size(); ++i)
        ASSERT_GE(spans[i].first.value(), spans[i - 1].second.value() - 1e-9);
    }
  }
}

TEST(Simulate, TimesOnePairAsRunOrderDoes) {
  Random random(109);
  for (int round = 0; round < 100; ++round) {
    ActionList list{.microbatches = 2, .rank_of_stage = {RankId(0)}};
    const auto f = [](int m) { return forward(StageId(0), MicrobatchId(m)); };
    const auto b = [](int m) { return backward(StageId(0), MicrobatchId(m)); };
    list.ranks = {{f(0), overlap(f(1), b(0)), b(1)}};
    std::vector<BlockCost> blocks;
    for (int k = random.between(1, 5); k > 0; --k) blocks.push_back(random_layer(random));
    ExecutionPlan plan = make_plan(list, {blocks});
    plan.interference = {.compute_bound_rate = 0.8, .memory_bound_rate = 0.9};
    const SimulateResult result = simulate(plan, {.slices = true}).value();
    const PairRun run = pair_run(plan, plan.actions.ranks[0][1]).value();
    const Seconds alone = run_order(run.graph, run.order, plan.interference).makespan;
    EXPECT_EQ(result.actions[1].end, result.actions[1].start + alone);
  }
}

// A pair that was measured takes what was measured, its tasks in proportion; one with a split backward is
// another pair.
TEST(Simulate, StretchesAMeasuredPair) {
  Random random(113);
  for (int round = 0; round < 100; ++round) {
    ActionList list{.microbatches = 2, .rank_of_stage = {RankId(0)}};
    const auto f = [](int m) { return forward(StageId(0), MicrobatchId(m)); };
    const auto b = [](int m) { return backward(StageId(0), MicrobatchId(m)); };
    list.ranks = {{f(0), overlap(f(1), b(0)), b(1)}};
    std::vector<BlockCost> blocks{plain_block(1, 2, 1)};
    for (int k = random.between(1, 4); k > 0; --k) blocks.push_back(random_layer(random));
    ExecutionPlan plan = make_plan(list, {blocks});
    plan.interference = {.compute_bound_rate = 0.8, .memory_bound_rate = 0.9};
    plan.rank_speed = {0.5 + random.unit()};
    const SimulateResult composed = simulate(plan, {.slices = true}).value();
    const Seconds took = composed.actions[1].end - composed.actions[1].start;
    const double factor = 0.5 + random.unit();
    plan.pairs[0].measured = MeasuredPair{.makespan = took * factor, .error = 0.01};
    ASSERT_TRUE(check_plan(plan));
    const SimulateResult result = simulate(plan, {.slices = true}).value();
    const Seconds start = result.actions[1].start;
    EXPECT_NEAR((result.actions[1].end - start).value(), (took * factor).value(), 1e-9);
    EXPECT_EQ(result.actions[0].end, composed.actions[0].end);
    EXPECT_NEAR((result.actions[2].end - result.actions[2].start).value(),
                (composed.actions[2].end - composed.actions[2].start).value(), 1e-9);
    ASSERT_EQ(result.slices.size(), composed.slices.size());
    for (std::size_t i = 0; i < result.slices.size(); ++i) {
      if (composed.slices[i].start < start || composed.slices[i].end > composed.actions[1].end) continue;
      EXPECT_NEAR((result.slices[i].start - start).value(),
                  factor * (composed.slices[i].start - start).value(), 1e-9);
    }
    EXPECT_LE(result.lower_bound.value(), result.iteration.value() * (1 + 1e-12));

    plan.actions.ranks[0][1].backward_kind = ActionKind::input_gradient;
    plan.actions.ranks[0].push_back(
        {.kind = ActionKind::weight_gradient, .stage = StageId(0), .microbatch = MicrobatchId(0)});
    ExecutionPlan nothing = plan;
    nothing.pairs[0].measured.reset();
    const auto split = simulate(plan), without = simulate(nothing);
    ASSERT_TRUE(split && without) << split.error().text();
    EXPECT_EQ(split->iteration, without->iteration);
  }
}

TEST(Simulate, StaysAboveItsBoundWithMeasuredPairs) {
  Random random(127);
  int measured = 0;
  for (int round = 0; round < rounds(300, 3'000); ++round) {
    ExecutionPlan plan = random_plan(random);
    for (PairPlan& pair : plan.pairs) {
      const PairRun run = pair_run(plan, overlap(forward(pair.forward, MicrobatchId(0)),
                                                 backward(pair.backward, MicrobatchId(0))))
                              .value();
      const Seconds composed = run_order(run.graph, run.order, plan.interference).makespan;
      if (composed <= Seconds(0) || random.chance(0.3)) continue;
      pair.measured = MeasuredPair{.makespan = composed * (0.3 + random.unit()), .error = 0};
      ++measured;
    }
    ASSERT_TRUE(check_plan(plan));
    const auto result = simulate(plan);
    ASSERT_TRUE(result) << result.error().text();
    ASSERT_LE(result->lower_bound.value(), result->iteration.value() * (1 + 1e-12)) << round;
  }
  EXPECT_GT(measured, 100);
}

TEST(Simulate, PassesThroughAnEmptyStage) {
  std::vector<std::vector<BlockCost>> blocks(4, {plain_block(1, 2)});
  for (auto& stage : blocks) stage[0].memory.activation = Bytes(5);
  blocks[1].clear();
  const SimulateResult result =
      simulate(make_plan(schedule(Template::one_f_one_b, 4, 1, 8), blocks), {.slices = true}).value();
  EXPECT_EQ(result.ranks[1].comp_busy, Seconds());
  EXPECT_EQ(result.ranks[1].peak_activation, Bytes());
  EXPECT_EQ(result.ranks[1].peak_live, 0);
  EXPECT_EQ(result.ranks[0].peak_live, 4);
  EXPECT_EQ(result.pipeline, Seconds(8 * 3 + 2 * 3));
  for (const ActionSpan& span : result.actions)
    if (span.rank == 1) {
      EXPECT_EQ(span.start, span.end);
    }
}

TEST(Simulate, QueuesTransfersOnTheSendersLink) {
  // Two chunks per rank: rank 0 sends stage 0's outputs one after another, each 3 on the link.
  ExecutionPlan plan = plain_plan(schedule(Template::one_f_one_b, 2, 1, 4), 1, 1);
  plan.transfer_time = Seconds(3);
  plan.transfer_latency = Seconds(0.5);
  const SimulateResult result = simulate(plan, {.slices = true}).value();
  ASSERT_EQ(result.transfers.size(), 8U);
  const TransferSpan &first = result.transfers[0], &second = result.transfers[1];
  EXPECT_EQ(first.ready, Seconds(1));
  EXPECT_EQ(first.start, Seconds(1));
  EXPECT_EQ(first.end, Seconds(4.5));
  EXPECT_EQ(second.ready, Seconds(2));
  EXPECT_EQ(second.start, Seconds(4));  // the latency does not hold the link
  EXPECT_EQ(second.end, Seconds(7.5));
  EXPECT_FALSE(first.backward);
  EXPECT_EQ(first.to_stage, StageId(1));
}

TEST(Simulate, SlowsAStragglersComputeButNotItsCommunication) {
  BlockCost cost = plain_block(2, 4);
  testing::set(cost, Pass::forward, TaskKind::dispatch, 3);
  ExecutionPlan plan = make_plan(schedule(Template::one_f_one_b, 2, 1, 2), {{cost}, {cost}});
  plan.rank_speed = {1, 0.5};
  const SimulateResult result = simulate(plan).value();
  EXPECT_EQ(result.ranks[0].comp_busy, Seconds(12));
  EXPECT_EQ(result.ranks[1].comp_busy, Seconds(24));
  EXPECT_EQ(result.ranks[1].comm_busy, Seconds(6));
  EXPECT_EQ(result.ranks[1].exposed_comm, Seconds(6));
}

// Alone, a chunk computes again right before the B that needs it, and a shared expert with its recompute runs
// beside the all-to-all: forward 2; backward 3 + 1 + 4 + 1 + 4 with the shared expert's 0.5 + 2 in the 3.
TEST(Simulate, ComputesAgainRightBeforeTheGradient) {
  BlockCost cost = plain_block(2, 4);
  testing::set(cost, Pass::backward, TaskKind::combine, 3);
  testing::set(cost, Pass::backward, TaskKind::mlp, 4);
  testing::set(cost, Pass::backward, TaskKind::shared, 2);
  testing::set(cost, Pass::recompute, TaskKind::shared, 0.5);
  testing::set(cost, Pass::recompute, TaskKind::mlp, 1);
  testing::set(cost, Pass::recompute, TaskKind::attention, 1);
  const ExecutionPlan plan = make_plan(schedule(Template::one_f_one_b, 1, 1, 1), {{cost}});
  const SimulateResult result = simulate(plan, {.slices = true}).value();
  EXPECT_EQ(result.pipeline, Seconds(2 + 13));
  EXPECT_EQ(result.ranks[0].comp_busy, Seconds(2 + 0.5 + 2 + 10));
  EXPECT_EQ(result.ranks[0].exposed_comm, Seconds(0.5));
  std::map<std::string, std::pair<double, double>> span;
  for (const Slice& slice : result.slices)
    span[task_name(slice.task.pass, slice.task.kind, -1)] = {slice.start.value(), slice.end.value()};
  EXPECT_EQ(span["R_SHARED"], std::pair(2.0, 2.5));
  EXPECT_EQ(span["B_SHARED"], std::pair(2.5, 4.5));
  EXPECT_EQ(span["R_MLP"], std::pair(5.0, 6.0));
  EXPECT_EQ(span["R_ATTN"], std::pair(10.0, 11.0));
}

TEST(Simulate, HidesTheReductionUnderTheLastBackwards) {
  // Two stages on one rank, gradients 3 : 1: forwards in [0, 2], stage 1's backward in [2, 5], stage 0's in
  // [5, 8].
  ActionList list{.microbatches = 1, .rank_of_stage = {RankId(0), RankId(0)}};
  list.ranks = {{forward(StageId(0), MicrobatchId(0)), forward(StageId(1), MicrobatchId(0)),
                 backward(StageId(1), MicrobatchId(0)), backward(StageId(0), MicrobatchId(0))}};
  std::vector<std::vector<BlockCost>> blocks(2, {plain_block(1, 2, 1)});
  blocks[0][0].memory.gradients = Bytes(1);
  blocks[1][0].memory.gradients = Bytes(3);
  ExecutionPlan plan = make_plan(list, blocks);
  plan.exposed_reduction = 0.25;
  plan.step[0] = {.reduce_scatter = Seconds(4), .optimizer = Seconds(0.25)};
  EXPECT_EQ(simulate(plan)->pipeline, Seconds(8));
  // Three quarters fit: stage 1 in [2, 4.25], stage 0 in [5, 5.75]. The last quarter never hides.
  EXPECT_EQ(simulate(plan)->iteration, Seconds(8 + 1 + 0.25));
  // Stage 1 in [2, 11], stage 0 in [11, 14].
  plan.step[0].reduce_scatter = Seconds(16);
  EXPECT_EQ(simulate(plan)->iteration, Seconds(14 + 4 + 0.25));
  EXPECT_EQ(lower_bound(plan), Seconds(8 + 4 + 0.25))
      << "3 of stage 0's reduction may hide under its backward";
}

TEST(Simulate, HidesTheGatheredWeightsUnderTheFirstForwards) {
  ActionList list{.microbatches = 1, .rank_of_stage = {RankId(0), RankId(0)}};
  list.ranks = {{forward(StageId(0), MicrobatchId(0)), forward(StageId(1), MicrobatchId(0)),
                 backward(StageId(1), MicrobatchId(0)), backward(StageId(0), MicrobatchId(0))}};
  std::vector<std::vector<BlockCost>> blocks(2, {plain_block(1, 2, 1)});
  blocks[0][0].memory.gradients = Bytes(1);
  blocks[1][0].memory.gradients = Bytes(3);
  ExecutionPlan plan = make_plan(list, blocks);
  plan.exposed_reduction = 0.25;
  // Stage 0's 0.375 are there by 1, both stages' 1.5 by 2.
  plan.step[0] = {.all_gather = Seconds(2)};
  EXPECT_EQ(simulate(plan)->iteration, Seconds(8 + 0.5));
  // 12 are to hide and 2 do.
  plan.step[0].all_gather = Seconds(16);
  EXPECT_EQ(simulate(plan)->iteration, Seconds(8 + 4 + 10));
}

TEST(Simulate, FollowsMemoryThroughASplitBackward) {
  ActionList list{.microbatches = 1, .rank_of_stage = {RankId(0)}};
  list.ranks = {{forward(StageId(0), MicrobatchId(0)), backward(StageId(0), MicrobatchId(0)),
                 backward(StageId(0), MicrobatchId(0))}};
  list.ranks[0][1].kind = ActionKind::input_gradient;
  list.ranks[0][2].kind = ActionKind::weight_gradient;
  BlockCost cost = plain_block(1, 2, 4);
  cost.memory.activation = Bytes(10);
  cost.memory.weight_stash = Bytes(6);
  ExecutionPlan plan = make_plan(list, {{cost}});
  plan.memory[0].weights = Bytes(100);
  const RankResult rank = simulate(plan, {.slices = true}).value().ranks[0];
  std::vector<std::pair<double, double>> curve;
  for (const MemoryPoint& point : rank.memory) curve.emplace_back(point.time.value(), point.used.value());
  EXPECT_THAT(curve, ElementsAre(std::pair(0.0, 110.0), std::pair(3.0, 106.0), std::pair(7.0, 100.0)));
  EXPECT_EQ(rank.peak_activation, Bytes(10));
  EXPECT_EQ(rank.peak_memory, Bytes(110));
}

TEST(Simulate, CallsADeadlockByItsName) {
  ExecutionPlan plan = plain_plan(schedule(Template::one_f_one_b, 2, 1, 3), 1, 2);
  std::swap(plan.actions.ranks[1][1], plan.actions.ranks[1][4]);  // 1F2 before 1B0
  std::swap(plan.actions.ranks[0][1], plan.actions.ranks[0][2]);
  const auto result = simulate(plan);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::infeasible);
  EXPECT_THAT(result.error().text(), HasSubstr("wait for each other in a circle"));
}

TEST(Simulate, SplitsIdleTimeAtTheTurningPoints) {
  const SimulateResult result = simulate(plain_plan(schedule(Template::one_f_one_b, 4, 1, 8), 1, 2)).value();
  // The last rank waits for its first input and for nobody else; the first waits in between and at the end.
  EXPECT_EQ(result.ranks[3].warmup_idle, Seconds(3));
  EXPECT_EQ(result.ranks[3].imbalance_idle, Seconds());
  EXPECT_EQ(result.ranks[3].cooldown_idle, Seconds(6));
  EXPECT_EQ(result.ranks[0].warmup_idle, Seconds(6));
  EXPECT_EQ(result.ranks[0].imbalance_idle, Seconds());
  EXPECT_EQ(result.ranks[0].cooldown_idle, Seconds(3));
}

}  // namespace
}  // namespace tessera::train
