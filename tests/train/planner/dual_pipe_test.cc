// DualPipe in the planner: every stage on two ranks, both with the same blocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/train/planner/plan.h"
#include "tessera/train/planner/to_measure.h"
#include "tessera/train/simulate/audit.h"

namespace tessera::train {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<Job> job_with(const std::string& schedule, const std::string& more = "", int gpus = 32) {
  const std::string text =
      "model: ../data/models/Qwen3-30B-A3B.json\n"
      "cluster: {preset: H100, gpus: " +
      std::to_string(gpus) +
      "}\n"
      "layout: {pp: 4, vp: 2, ep: 8, microbatches: 16, sequence: 4096, recompute: none}\n"
      "schedule: {" +
      schedule + "}\n" + more;
  const auto document = Document::parse(text, "job.yaml", DocumentFormat::yaml);
  return read_job(*document, TESSERA_SOURCE "/examples");
}
PlanReport plan_with(const std::string& schedule, int gpus = 32) {
  const auto job = job_with(schedule, "", gpus);
  EXPECT_TRUE(job) << job.error().text();
  auto report = make_plan(*job);
  EXPECT_TRUE(report) << report.error().text();
  return *std::move(report);
}

TEST(DualPipe, SharesOneChoiceBetweenMirroredStages) {
  const PlanReport report = plan_with("template: dualpipe");
  const auto& stages = report.plan.partition.stages;
  ASSERT_EQ(stages.size(), 8U);
  for (std::size_t s = 0; s < 4; ++s) EXPECT_EQ(stages[s], stages[s + 4]);
  EXPECT_EQ(report.plan.actions.pipelines, 2);
  EXPECT_EQ(report.plan.actions.microbatches, 8);
  ASSERT_TRUE(report.search);
  EXPECT_EQ(report.search->chosen.partition.stages.size(), 4U);
  EXPECT_EQ(report.search->chosen.iteration, report.figures.iteration);
  EXPECT_EQ(report.search->solved.reason, PartitionReason::optimal);
  EXPECT_LE(report.figures.iteration, report.serial->iteration);
  EXPECT_GE(report.figures.iteration, report.simulated.lower_bound);
  const auto audit = audit_plan(report.plan);
  ASSERT_TRUE(audit) << audit.error().text();
  EXPECT_THAT(audit->stale, IsEmpty());
}

// Every move of one boundary, evaluated on the simulator: the search left none that helps.
TEST(DualPipe, EndsWhereNoBoundaryMoveHelps) {
  const PlanReport report = plan_with("template: dualpipe");
  Job job = *job_with("template: dualpipe");
  job.partition_rule = PartitionRule::given;
  for (std::size_t s = 1; s < 4; ++s)
    for (const int step : {-1, 1}) {
      Partition moved = report.search->chosen.partition;
      moved.stages[s].begin += step;
      moved.stages[s - 1].end += step;
      job.partition = moved;
      EXPECT_GE(make_plan(job, {.slices = false, .baselines = false})->figures.iteration,
                report.figures.iteration);
    }
}

// A rank holds two stages and their mirror ranks the same two; gradients are reduced over both copies even
// with one replica, and the optimizer state is sharded over them.
TEST(DualPipe, CountsBothCopies) {
  const PlanReport dual = plan_with("template: dualpipe, partition: even"),
                   single = plan_with("template: zb-v, partition: even");
  const auto& memory = dual.plan.memory;
  for (std::size_t r = 0; r < 2; ++r) {
    EXPECT_EQ(memory[r].weights, memory[3 - r].weights);
    EXPECT_EQ(memory[r].optimizer, memory[3 - r].optimizer);
    EXPECT_GT(dual.plan.step[r].reduce_scatter, Seconds(0));
  }
  Bytes twice, once, shards, shards_once;
  for (std::size_t r = 0; r < 4; ++r) {
    twice += memory[r].weights;
    once += single.plan.memory[r].weights;
    shards += memory[r].optimizer;
    shards_once += single.plan.memory[r].optimizer;
  }
  EXPECT_NEAR(twice / once, 2, 1e-9);
  EXPECT_NEAR(shards / shards_once, 1, 1e-9);
}

TEST(DualPipe, ComparesWithOneForwardOneBackward) {
  const PlanReport report = plan_with("template: dualpipe, partition: [11, 12, 13, 12]");
  EXPECT_THAT(report.plan.partition.stages[4], (BlockRange{0, 12}));
  Job plain = *job_with("template: dualpipe, partition: [11, 12, 13, 12]");
  plain.schedule = Template::one_f_one_b;
  plain.layout.vp = 1;
  EXPECT_EQ(report.baseline.iteration, make_plan(plain)->figures.iteration);
  EXPECT_EQ(report.baseline.peak_memory, make_plan(plain)->figures.peak_memory);
}

TEST(DualPipe, TakesGivenPartitionsOfOnePipeline) {
  EXPECT_THAT(job_with("template: dualpipe, partition: [6, 6, 6, 6, 6, 6, 6, 6]").error().text(),
              HasSubstr("8 entries for 4 stages (pp)"));
  EXPECT_THAT(
      job_with("template: dualpipe, placement: {pinned: [{stage: 4, first_layer: 9}]}").error().text(),
      HasSubstr("pinned[0].stage"));
  EXPECT_THAT(job_with("template: dualpipe", "cost: {stages: [{forward: 1, backward: 2}]}\n").error().text(),
              HasSubstr("1 entries for 4 stages (pp)"));
  const auto job = job_with("template: dualpipe",
                            "cost: {stages: [{forward: 1, backward: 1, weight: 1}, "
                            "{forward: 1, backward: 1, weight: 1}, {forward: 1, "
                            "backward: 1, weight: 1}, {forward: 1, backward: 1, "
                            "weight: 1}], transfer: 0}\n");
  ASSERT_TRUE(job) << job.error().text();
  // F = I = W, a pair takes as long as its parts: makespan = work of a rank + (pp/2 − 1)(F + B + B − 3W).
  const auto report = make_plan(*job);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_NEAR(report->simulated.pipeline.value(), 1e-3 * (16 * 3 + 1 * (3 + 2 - 3)), 1e-9);
}

// The slower of the two ranks that hold a stage decides.
TEST(DualPipe, KnowsStragglers) {
  Job job = *job_with("template: dualpipe");
  job.cluster.rank_speed = {1, 1, 1, 0.7};
  const auto report = make_plan(job);
  ASSERT_TRUE(report) << report.error().text();
  const auto& stages = report->plan.partition.stages;
  const auto blocks = [&](std::size_t s) { return stages[s].end - stages[s].begin; };
  // Ranks 0 and 3 share stages 0 and 3; those give layers to 1 and 2.
  EXPECT_LT(blocks(0) + blocks(3), blocks(1) + blocks(2));
  EXPECT_LE(report->figures.iteration, report->serial->iteration);
}

TEST(DualPipe, NamesPairsToMeasureThatRun) {
  const Job job = *job_with("template: dualpipe");
  const auto report = pairs_to_measure(job);
  ASSERT_TRUE(report) << report.error().text();
  ASSERT_FALSE(report->next.empty());
  const PlanReport plan = *make_plan(job);
  for (const PairToProfile& pair : report->next)
    EXPECT_NE(plan.plan.pair(pair.forward, pair.backward), nullptr);
}

}  // namespace
}  // namespace tessera::train
