#include "tessera/train/planner/pair_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/train/overlap/check_pair.h"
#include "train/testing.h"

namespace tessera::train {
namespace {

using testing::Random;
using testing::set;

// One MoE layer a stage; every task has the length given.
BlockCost moe_layer(double attention, double mlp, double comm) {
  BlockCost cost{.name = "AE"};
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    set(cost, pass, TaskKind::attention, attention);
    set(cost, pass, TaskKind::mlp, mlp);
    set(cost, pass, TaskKind::dispatch, comm);
    set(cost, pass, TaskKind::combine, comm);
  }
  set(cost, Pass::weight, TaskKind::attention, attention);
  set(cost, Pass::weight, TaskKind::mlp, mlp);
  return cost;
}

ExecutionPlan plan_of(const std::vector<std::vector<BlockCost>>& stages) {
  return testing::make_plan(
      *make_schedule(Template::interleaved_overlap, {.pp = 2, .vp = 2, .microbatches = 4, .group = 2}),
      stages);
}

ExecutionPlan four_stages(double attention, double mlp, double comm) {
  return plan_of(std::vector<std::vector<BlockCost>>(4, {moe_layer(attention, mlp, comm)}));
}

const PairRow& row(const PairReport& report, std::string_view name) {
  const PairRow* found = report.row(name);
  EXPECT_NE(found, nullptr) << name;
  return *found;
}

TEST(PairReport, ComputeBoundPairHidesEverything) {
  // F: 2 D1 2 C1; B: C1 2 D1 2 and two W of 2. All compute, 12, and F_ATTN starts at once.
  const auto report = report_pair(four_stages(2, 2, 1), StageId(0), StageId(2));
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_TRUE(report->proved);
  EXPECT_EQ(report->binding, Binding::compute);
  EXPECT_EQ(report->optimum, Seconds(12));
  EXPECT_EQ(report->bounds.communication, Seconds(4));
  EXPECT_EQ(row(*report, "serial").makespan, Seconds(16));
  EXPECT_EQ(row(*report, "serial").exposed, Seconds(4));
  EXPECT_NEAR(row(*report, "serial").above, 16.0 / 12 - 1, 1e-12);
  EXPECT_EQ(row(*report, "exact").exposed, Seconds(0));
  EXPECT_TRUE(report->gaps.empty());
  EXPECT_FALSE(report->slows());
}

TEST(PairReport, CommunicationBoundPair) {
  // Comm: C D then D C, each 5; compute is 1 each. B_COMB starts at 0, F_DISP at 5, B_DISP at 10, F_COMB
  // at 15.
  const auto report = report_pair(four_stages(1, 1, 5), StageId(1), StageId(1));
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->bounds.communication, Seconds(20));
  EXPECT_EQ(report->binding, Binding::communication);
  EXPECT_EQ(report->optimum, Seconds(20));
}

TEST(PairReport, ChainBoundPairWithAnEmptyForward) {
  ExecutionPlan plan = plan_of({{}, {moe_layer(1, 1, 1)}, {moe_layer(1, 1, 1)}, {moe_layer(1, 1, 1)}});
  const auto report = report_pair(plan, StageId(0), StageId(1));
  ASSERT_TRUE(report) << report.error().text();
  // C M D A W_ATTN; W_MLP beside the dispatch.
  EXPECT_EQ(report->binding, Binding::backward_chain);
  EXPECT_EQ(report->optimum, Seconds(5));
  ASSERT_EQ(report->path.size(), 5U);
  EXPECT_EQ(report->path.front().task, TaskId(0));
  ASSERT_EQ(report->gaps.size(), 1U);
  EXPECT_EQ(report->gaps[0].begin, Seconds(0));
  EXPECT_EQ(report->gaps[0].end, Seconds(1));
  EXPECT_EQ(report->gaps[0].awaited, TaskId(0));
  EXPECT_FALSE(report->gaps[0].queued_behind);
  EXPECT_FALSE(report->overlapped);
  EXPECT_EQ(report->forward.holds, "(empty)");
}

TEST(PairReport, TwoEmptyStagesTakeNoTime) {
  const ExecutionPlan plan = plan_of({{}, {}, {moe_layer(1, 1, 1)}, {moe_layer(1, 1, 1)}});
  const auto report = report_pair(plan, StageId(0), StageId(1));
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_TRUE(report->proved);
  EXPECT_EQ(report->optimum, Seconds(0));
  EXPECT_TRUE(report->path.empty());
}

TEST(PairReport, WhatComputeWaitsForIsNamed) {
  // The forward's dispatch comes out of attention at 1 and queues behind B_COMB until 4.
  const ExecutionPlan plan = four_stages(1, 1, 4);
  const auto report = report_pair(plan, StageId(0), StageId(0));
  ASSERT_TRUE(report) << report.error().text();
  bool queued = false;
  for (const ComputeGap& gap : report->gaps) {
    ASSERT_LT(gap.begin, gap.end);
    ASSERT_TRUE(gap.awaited);
    EXPECT_EQ(report->explained.end[gap.awaited->index()], gap.end);
    if (!gap.queued_behind) continue;
    queued = true;
    EXPECT_EQ(report->graph.tasks[gap.awaited->index()].resource, Resource::comm);
    EXPECT_EQ(report->explained.end[gap.queued_behind->index()],
              report->explained.start[gap.awaited->index()]);
  }
  EXPECT_TRUE(queued);
}

TEST(PairReport, CreditIsLeftToThePool) {
  const ExecutionPlan plan = four_stages(2, 2, 1);
  const auto report = report_pair(plan, StageId(0), StageId(2), {.pool_credit = Seconds(3)});
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_TRUE(check_pair(report->graph, report->nominal, Seconds(3)));
  ASSERT_EQ(report->nominal.left.size(), 1U);
  EXPECT_EQ(report->graph.tasks[report->nominal.left[0].index()].name.pass, Pass::weight);
  EXPECT_EQ(report->optimum, Seconds(10));
  EXPECT_EQ(report->row("plan"), nullptr);
}

TEST(PairReport, ThePlansOwnSequenceIsShown) {
  ExecutionPlan plan = four_stages(2, 2, 1);
  PairPlan& own = plan.pairs.front();
  const TaskGraph graph = pair_graph(plan.forward_graph(own.forward), plan.backward_graph(own.backward));
  std::vector<TaskId> serial = schedule_pair(graph, {.method = PairMethod::serial}).schedule.order;
  own.sequence = names_of(graph, serial);
  const auto report = report_pair(plan, own.forward, own.backward);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_TRUE(report->overlapped);
  EXPECT_EQ(row(*report, "plan").makespan, run_order(graph, serial).makespan);
}

// Whatever the pair: the shown order is legal, the optimum is no longer than any row, the slowed time no
// shorter than the bound, gaps and path add up.
TEST(PairReport, HoldsOnRandomPairs) {
  Random random(211);
  int slowed_chose = 0, order_bound = 0;
  for (int i = 0; i < testing::rounds(150, 2'000); ++i) {
    std::vector<std::vector<BlockCost>> stages(4);
    for (auto& stage : stages)
      for (int k = random.below(4); k > 0; --k) stage.push_back(testing::random_layer(random));
    ExecutionPlan plan = plan_of(stages);
    plan.interference = {.compute_bound_rate = 0.6 + 0.4 * random.unit(), .memory_bound_rate = 0.8};
    const auto report = report_pair(plan, StageId(random.below(4)), StageId(random.below(4)));
    ASSERT_TRUE(report) << report.error().text();
    ASSERT_TRUE(check_pair(report->graph, report->nominal));
    ASSERT_TRUE(check_pair(report->graph, report->explained));
    ASSERT_NEAR(report->explained.makespan.value(), report->optimum.value(), 1e-9);
    for (const PairRow& row : report->rows) {
      ASSERT_GE(row.makespan.value(), report->optimum.value() * (1 - 1e-12)) << row.name;
      ASSERT_GE(row.slowed.value(), report->slowed.makespan.value() * (row.name == "serial" ? 0 : 1 - 1e-9));
      ASSERT_GE(row.slowed.value(), row.makespan.value() * (1 - 1e-9)) << row.name;
    }
    ASSERT_GE(report->slowed.makespan.value(), report->bound.value() * (1 - 1e-9));
    Seconds idle;
    for (const ComputeGap& gap : report->gaps) {
      idle += gap.end - gap.begin;
      ASSERT_TRUE(gap.awaited);
    }
    ASSERT_NEAR((idle + report->bounds.compute).value(), report->optimum.value(), 1e-9);
    Seconds along;
    for (const CriticalTask& at : report->path) along += report->graph.tasks[at.task.index()].duration;
    ASSERT_NEAR(along.value(), report->optimum.value(), 1e-9);
    slowed_chose += report->row("exact-slowed") != nullptr ? 1 : 0;
    order_bound += report->binding == Binding::order ? 1 : 0;
  }
  EXPECT_GT(slowed_chose, 10);
  EXPECT_GT(order_bound, 10);
}

TEST(PairReport, BadInputIsRefused) {
  const ExecutionPlan plan = four_stages(1, 1, 1);
  const auto refused = [&](StageId f, StageId b, const PairReportOptions& options, std::string_view words) {
    const auto report = report_pair(plan, f, b, options);
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().kind, ErrorKind::bad_input);
    EXPECT_THAT(report.error().text(), ::testing::HasSubstr(words));
  };
  refused(StageId(4), StageId(0), {}, "forward stage 4 is outside 0 … 3");
  refused(StageId(0), StageId(-1), {}, "backward stage -1 is outside 0 … 3");
  refused(StageId(0), StageId(0), {.pool_credit = Seconds(-1)}, "a pool credit of -1000 ms is no time");
  refused(StageId(0), StageId(0), {.ilp_time_limit = Seconds(0)}, "a time limit of 0 s");
  refused(StageId(0), StageId(0), {.labels = 0}, "a limit of 0 labels");
}

}  // namespace
}  // namespace tessera::train
