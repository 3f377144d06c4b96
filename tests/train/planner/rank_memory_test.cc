// What a rank of a planned job holds.

#include <gtest/gtest.h>

#include "tessera/train/planner/plan.h"

namespace tessera::train {
namespace {

ExecutionPlan planned(std::string_view text) {
  const auto document = Document::parse(text, "job.yaml", DocumentFormat::yaml);
  EXPECT_TRUE(document);
  const auto job = read_job(*document, TESSERA_SOURCE "/data/models");
  EXPECT_TRUE(job) << job.error().text();
  auto report = make_plan(*job, {.slices = false, .baselines = false});
  EXPECT_TRUE(report) << report.error().text();
  return report ? std::move(report->plan) : ExecutionPlan{};
}

TEST(RankMemory, HoldsTwoBlocksDispatchBuffersWherePairsRun) {
  const auto plan = [](std::string_view schedule) {
    return planned(std::string("model: Qwen3-30B-A3B.json\ncluster: {preset: H100, gpus: 16}\n"
                               "layout: {pp: 2, vp: 2, ep: 8, microbatches: 8}\nschedule: {template: ") +
                   std::string(schedule) + "}\n");
  };
  const ExecutionPlan plain = plan("interleaved"), pairs = plan("interleaved-overlap");
  ASSERT_EQ(plain.memory.size(), 2U);
  for (std::size_t r = 0; r < 2; ++r) {
    EXPECT_GT(plain.memory[r].workspace.value(), 4096.0 * 8 * 2048 * 4);
    EXPECT_EQ(plain.memory[r].pair_buffers, Bytes(0));
    EXPECT_EQ(pairs.memory[r].workspace, plain.memory[r].workspace);
    EXPECT_EQ(pairs.memory[r].pair_buffers, plain.memory[r].workspace);
    EXPECT_EQ(pairs.memory[r].weights, plain.memory[r].weights);
  }
}

// Ranks hold every matrix once, however their blocks fall: all parameters of DeepSeek-V3 with its MTP block,
// and a copy of embedding and head where that block is not with them.
TEST(RankMemory, HoldsAnMtpBlocksEndsOnceARank) {
  constexpr double kMatrix = 129'280.0 * 7'168;
  const ExecutionPlan one = planned(
      "model: DeepSeek-V3.json\ncluster: {preset: H100, gpus: 64}\n"
      "layout: {ep: 64, microbatches: 8}\nschedule: {template: 1f1b}\n");
  const ExecutionPlan two = planned(
      "model: DeepSeek-V3.json\ncluster: {preset: H100, gpus: 128}\n"
      "layout: {pp: 2, ep: 64, microbatches: 8}\nschedule: {template: 1f1b}\n");
  ASSERT_EQ(two.memory.size(), 2U);
  // The last rank has MTP block and head: one more copy of the embedding in all, two bytes each.
  EXPECT_DOUBLE_EQ((two.memory[0].weights + two.memory[1].weights - one.memory[0].weights).value(),
                   2 * kMatrix);
}

}  // namespace
}  // namespace tessera::train
