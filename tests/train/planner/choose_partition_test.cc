// The overlap-aware partition from the job file to the plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/train/planner/plan.h"

namespace tessera::train {
namespace {

using ::testing::HasSubstr;

Result<Job> job_with(const std::string& schedule) {
  const std::string text =
      "model: ../data/models/Qwen3-Next-80B-A3B.json\n"
      "cluster: {preset: H100, gpus: 64}\n"
      "layout: {pp: 4, vp: 2, ep: 16, microbatches: 16, sequence: 4096}\n"
      "schedule: {template: interleaved-overlap, " +
      schedule + "}\n";
  const auto document = Document::parse(text, "job.yaml", DocumentFormat::yaml);
  return read_job(*document, TESSERA_SOURCE "/examples");
}

PlanReport plan_with(const std::string& schedule) {
  const auto job = job_with(schedule);
  EXPECT_TRUE(job) << job.error().text();
  auto report = make_plan(*job);
  EXPECT_TRUE(report) << report.error().text();
  return *std::move(report);
}

TEST(ChoosePartition, IsNoSlowerThanAnyRival) {
  const PlanReport aware = plan_with("partition: overlap-aware");
  ASSERT_TRUE(aware.search);
  const PartitionSearch& search = *aware.search;
  EXPECT_EQ(search.chosen.partition, aware.plan.partition);
  EXPECT_EQ(search.chosen.iteration, aware.figures.iteration);
  EXPECT_TRUE(search.chosen.usable);
  EXPECT_LE(search.solved.best.front().value.slowest, search.serial_slowest);
  EXPECT_EQ(search.solved.reason, PartitionReason::optimal);
  EXPECT_GT(search.simulated, 50);
  for (const std::string rule : {"serial-balanced", "even", "parameter-balanced", "flop-balanced", "alpa"}) {
    const PlanReport rival = plan_with("partition: " + rule);
    EXPECT_FALSE(rival.search);
    EXPECT_LE(aware.figures.iteration, rival.figures.iteration) << rule;
  }
}

TEST(ChoosePartition, KeepsToThePlacementAsked) {
  const PlanReport report = plan_with(
      "partition: overlap-aware, placement: {uncut: [12, 24], pinned: [{stage: 3, first_layer: 17}]}");
  const auto& stages = report.plan.partition.stages;
  EXPECT_EQ(stages[3].begin, 18);  // block 0 is the embedding
  for (const BlockRange stage : stages) {
    EXPECT_NE(stage.begin, 13);
    EXPECT_NE(stage.begin, 25);
  }
}

TEST(ChoosePartition, RefusesAPlacementThatCannotBe) {
  const auto fault = [](const std::string& schedule) {
    const auto job = job_with(schedule);
    if (!job) return job.error().text();
    const auto report = make_plan(*job);
    return report ? std::string("no error") : report.error().text();
  };
  EXPECT_THAT(fault("partition: serial"), HasSubstr("unknown partition rule serial"));
  EXPECT_THAT(fault("placement: {pinned: [{stage: 9, first_layer: 3}]}"), HasSubstr("pinned[0].stage"));
  EXPECT_THAT(fault("placement: {uncut: 3}"), HasSubstr("expected a list of layers"));
  EXPECT_THAT(fault("placement: {empty: true}"), HasSubstr("empty"));
}

}  // namespace
}  // namespace tessera::train
