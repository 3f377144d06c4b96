// The overlap-aware partition from the job file to the plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tessera/train/execution_plan/plan_file.h"
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

// Orders made by durations are made anew for every partition: what was simulated must be what is planned.
TEST(ChoosePartition, IsNoSlowerUnderOrdersMadeByDurations) {
  for (std::size_t t = 0; t < kTemplates; ++t) {
    const auto schedule = static_cast<Template>(t);
    if (!traits(schedule).durations) continue;
    SCOPED_TRACE(std::string(name(schedule)));
    const auto plan = [&](const std::string& rule) {
      const std::string text =
          "model: ../data/models/Qwen3-30B-A3B.json\ncluster: {preset: H100, gpus: 32, memory_gb: 300}\n"
          "layout: {pp: 4, vp: " +
          std::to_string(traits(schedule).placement == StagePlacement::v_shape ? 2 : 1) +
          ", ep: 8, microbatches: 12, sequence: 4096}\nschedule: {template: " + std::string(name(schedule)) +
          ", partition: " + rule + "}\n";
      auto document = Document::parse(text, "job.yaml", DocumentFormat::yaml);
      auto report = make_plan(read_job(*document, TESSERA_SOURCE "/examples").value(), {.slices = false});
      EXPECT_TRUE(report) << report.error().text();
      return *std::move(report);
    };
    const PlanReport aware = plan("overlap-aware"), serial = plan("serial-balanced");
    EXPECT_EQ(aware.search->chosen.iteration, aware.figures.iteration);
    EXPECT_EQ(aware.search->serial.iteration, serial.figures.iteration);
    EXPECT_LE(aware.figures.iteration, serial.figures.iteration);
    EXPECT_LE(aware.figures.iteration, plan("even").figures.iteration);
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

// A dense model on PP 8 × VP 5 whose head costs as much as `head` layers, and its embedding a tenth of one.
Job with_head(double head, const std::string& schedule) {
  const std::string text =
      "model: ../tests/data/native-models/llama-70b.yaml\n"
      "cluster: {preset: H100, gpus: 64}\n"
      "layout: {pp: 8, vp: 5, tp: 4, microbatches: 32, sequence: 2048}\n"
      "schedule: {template: interleaved, " +
      schedule +
      "}\n"
      "cost:\n"
      "  transfer: 0\n"
      "  given:\n"
      "    AD: {F_ATTN: 0.2, F_MLP: 0.2, B_ATTN: 0.15, B_MLP: 0.15, W_ATTN: 0.15, W_MLP: 0.15}\n"
      "    embedding: {F_EMBED: 0.05, W_EMBED: 0.05}\n"
      "    head: {F_HEAD: " +
      std::to_string(head / 2) + ", B_HEAD: " + std::to_string(head / 4) +
      ", W_HEAD: " + std::to_string(head / 4) + "}\n";
  auto document = Document::parse(text, "job.yaml", DocumentFormat::yaml);
  auto job = read_job(*document, TESSERA_SOURCE "/examples");
  EXPECT_TRUE(job) << job.error().text();
  return *std::move(job);
}

// Megatron-Bridge's layout for Llama 3 70B (067f987d, Apache-2.0): one stage of three layers in the middle
// pays for a light last one. It wins when the head costs more than a layer, and loses when it costs less.
TEST(ChoosePartition, FindsALightLastStageByItself) {
  const std::string string = "megatron_layout: 'Et*2|(t*2|)*34,t*3|(t*2|)*3,tL'";
  struct Case {
    double head, slowest;
    int last_layers;
  };
  for (const auto& [head, slowest, last_layers] : {Case{1.5, 3.0, 1}, Case{0.5, 2.5, 2}}) {
    const auto searched = make_plan(with_head(head, "partition: overlap-aware"));
    ASSERT_TRUE(searched) << searched.error().text();
    const PartitionSearch& search = *searched->search;
    EXPECT_NEAR(search.solved.best.front().value.slowest.value(), slowest * 1e-3, 1e-9) << head;
    const BlockRange last = search.solved.best.front().partition.stages.back();
    EXPECT_EQ(last.end - last.begin - 1, last_layers) << head;
    const auto by_string = make_plan(with_head(head, string)),
               even = make_plan(with_head(head, "partition: even"));
    ASSERT_TRUE(by_string && even);
    EXPECT_EQ(by_string->figures.iteration < even->figures.iteration, head > 1) << head;
    EXPECT_LE(searched->figures.iteration, std::min(by_string->figures.iteration, even->figures.iteration));
  }
}

// Data-parallel copies do the same thing.
TEST(ChoosePartition, DoesNotDependOnDataParallelism) {
  const auto plan = [](int gpus) {
    const std::string text =
        "model: ../data/models/Qwen3-Next-80B-A3B.json\n"
        "cluster: {preset: H100, gpus: " +
        std::to_string(gpus) +
        "}\n"
        "layout: {pp: 4, vp: 2, ep: 4, tp: 4, microbatches: 16}\nsoftware: {distributed_optimizer: false}\n"
        "cost: {constants: {exposed_reduction: 0}}\n";
    auto document = Document::parse(text, "job.yaml", DocumentFormat::yaml);
    auto report = make_plan(read_job(*document, TESSERA_SOURCE "/examples").value());
    EXPECT_TRUE(report) << report.error().text();
    return *std::move(report);
  };
  const ExecutionPlan one = plan(16).plan, many = plan(16 * 128).plan;
  EXPECT_EQ(one.layout.dp, 1);
  EXPECT_EQ(many.layout.dp, 128);
  // All but what data parallelism is about: its size, the reduction over it, and what is predicted from
  // these.
  const auto rest = [](const ExecutionPlan& whole) {
    std::istringstream lines(write_plan(whole));
    std::string out;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("predicted:") || line.find("reduce_scatter:") != std::string::npos) continue;
      if (const std::size_t at = line.find(" dp: "); at != std::string::npos)
        line.erase(at, line.find(',', at) - at);
      out += line + "\n";
    }
    return out;
  };
  EXPECT_EQ(rest(one), rest(many));
}

TEST(ChoosePartition, KeepsWhatIsWrittenByHand) {
  const auto job = [](const std::string& partition) {
    return job_with(partition + "pairs: [{forward: 3, backward: 0, sequence: [F_ATTN:L0]}]");
  };
  EXPECT_THAT(job("partition: overlap-aware, ").error().text(),
              HasSubstr("a searched partition would move their layers"));
  EXPECT_EQ(job("").value().partition_rule, PartitionRule::serial_balanced);
}

}  // namespace
}  // namespace tessera::train
