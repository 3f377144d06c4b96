// A job small enough to work out by hand: two ranks, four microbatches, a stage of 10 ms forward and 20 ms
// backward.
#include "tessera/train/planner/plan.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera::train {
namespace {

Job hand_job(const std::string& extra = "") {
  const std::string text =
      "model: ../data/models/Qwen3-30B-A3B.json\n"
      "cluster: {preset: H100, gpus: 16}\n"
      "layout: {pp: 2, ep: 8, microbatches: 4, sequence: 4096}\n"
      "schedule: {template: 1f1b}\n"
      "cost:\n"
      "  transfer: 0\n"
      "  stages: [{forward: 10, backward: 15, weight: 5}, {forward: 10, backward: 15, weight: 5}]\n" +
      extra;
  const auto document = Document::parse(text, "job.yaml", DocumentFormat::yaml);
  auto job = read_job(*document, TESSERA_SOURCE "/examples");
  EXPECT_TRUE(job) << job.error().text();
  return *std::move(job);
}

TEST(Plan, FiguresOfAJobByHand) {
  const auto report = make_plan(hand_job());
  ASSERT_TRUE(report) << report.error().text();
  // (m + p − 1)(F + B) = 5 · 30 ms for the pipeline, then gradients and optimizer.
  EXPECT_NEAR(report->simulated.pipeline.value(), 0.150, 1e-12);
  const double step = report->figures.iteration.value();
  EXPECT_GT(step, 0.150);
  // 4 · 4,096 tokens on each of 8 pipelines, over 16 GPUs.
  EXPECT_NEAR(report->figures.tokens_per_second_per_gpu, 4 * 4096 * 8 / 16.0 / step, 1e-6);
  EXPECT_NEAR(report->figures.mfu,
              report->plan.flops_per_token * report->figures.tokens_per_second_per_gpu / 989e12, 1e-12);
  // Rank 0: F0 F1, then it waits 20 … 40 ms for the first gradient; each rank is busy 120 of 150 ms.
  EXPECT_NEAR(report->simulated.ranks[0].warmup_idle.value(), 0.020, 1e-12);
  EXPECT_NEAR(report->simulated.ranks[1].warmup_idle.value(), 0.010, 1e-12);
  EXPECT_NEAR(report->simulated.ranks[1].cooldown_idle.value(), 0.020, 1e-12);
  EXPECT_NEAR((report->figures.warmup_bubble + report->figures.imbalance_bubble) * step, 0.030, 1e-12);
  EXPECT_EQ(report->figures.exposed_ep, 0);
  EXPECT_EQ(report->simulated.ranks[0].peak_live, 2);
  EXPECT_EQ(report->simulated.ranks[1].peak_live, 1);
  // Six prices of one microbatch, all by hand.
  EXPECT_EQ(report->sources.total, 6);
  EXPECT_NEAR(report->sources.share[static_cast<std::size_t>(Provenance::given)], 1, 1e-12);
  EXPECT_EQ(report->sources.error, 0);
}

TEST(Plan, ASlowRankIsWaitedFor) {
  Job job = hand_job();
  job.cluster.rank_speed = {1, 0.5};
  const auto report = make_plan(job);
  ASSERT_TRUE(report) << report.error().text();
  // Rank 1 takes 60 ms a microbatch: 10 until its first input, 240 of work, 20 for rank 0's last backward.
  EXPECT_NEAR(report->simulated.pipeline.value(), 0.270, 1e-12);
}

TEST(Plan, IsTheSameForAnyNumberOfCopies) {
  Job job = hand_job();
  const auto one = make_plan(job);
  job.cluster.gpus = 128;
  job.layout.dp = 64;
  const auto many = make_plan(job);
  ASSERT_TRUE(one && many);
  EXPECT_EQ(one->plan.actions, many->plan.actions);
  EXPECT_EQ(one->plan.partition, many->plan.partition);
  EXPECT_EQ(one->plan.fingerprints[2], many->plan.fingerprints[2]);
  EXPECT_EQ(one->simulated.pipeline, many->simulated.pipeline);
}

TEST(Plan, FingerprintsTellPlansApart) {
  Job job = hand_job();
  const auto plain = make_plan(job);
  job.layout.recompute.norm = true;
  const auto other = make_plan(job);
  job.cluster.gpu.memory = Bytes(1e12);
  const auto larger = make_plan(job);
  ASSERT_TRUE(plain && other && larger);
  EXPECT_NE(plain->plan.fingerprints[2], other->plan.fingerprints[2]);
  EXPECT_NE(other->plan.fingerprints[1], larger->plan.fingerprints[1]);
  EXPECT_EQ(plain->plan.fingerprints[0], larger->plan.fingerprints[0]);
}

TEST(Plan, AHandWrittenSequenceIsKept) {
  const Document document =
      Document::parse(
          "model: ../data/models/Qwen3-30B-A3B.json\ncluster: {preset: H100, gpus: 16}\n"
          "layout: {pp: 2, ep: 8, microbatches: 4, sequence: 4096, recompute: none}\n",
          "job.yaml", DocumentFormat::yaml)
          .value();
  Job job = read_job(document, TESSERA_SOURCE "/examples").value();
  const auto chosen = make_plan(job);
  ASSERT_TRUE(chosen) << chosen.error().text();
  ASSERT_FALSE(chosen->plan.pairs.empty());
  const PairPlan& pair = chosen->plan.pairs.front();
  const TaskGraph graph =
      pair_graph(chosen->plan.forward_graph(pair.forward), chosen->plan.backward_graph(pair.backward));
  std::vector<std::string> serial;
  for (const Task& task : graph.tasks)
    serial.push_back(task_name(task.name.pass, task.name.kind, task.name.layer));
  ASSERT_NE(serial, pair.sequence);
  job.partition = chosen->plan.partition;
  job.partition_rule = PartitionRule::given;
  job.pairs.push_back(
      {.forward = pair.forward.value(), .backward = pair.backward.value(), .sequence = serial});
  const auto by_hand = make_plan(job);
  ASSERT_TRUE(by_hand) << by_hand.error().text();
  EXPECT_EQ(by_hand->plan.pairs.front().sequence, serial);
  EXPECT_GE(by_hand->plan.pairs.front().makespan, pair.makespan);
  EXPECT_GE(by_hand->figures.iteration, chosen->figures.iteration);
  // No interleaving is worse than none, and none is better than the bound.
  EXPECT_LE(pair.bound.value(), pair.nominal.value() * (1 + 1e-12));
  EXPECT_LT(chosen->figures.iteration, chosen->baseline.iteration);
}

}  // namespace
}  // namespace tessera::train
