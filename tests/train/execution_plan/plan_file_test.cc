#include "tessera/train/execution_plan/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tessera/train/schedule/schedule_template.h"
#include "train/testing.h"

namespace tessera::train {
namespace {

using ::testing::HasSubstr;

// A small sound plan with odd doubles, names that need escaping, and every section filled.
ExecutionPlan sample_plan(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto real = [&] { return static_cast<double>(random()) / 3e19; };
  ExecutionPlan plan;
  plan.model = "odd \"name\" \\ with\ttabs";
  plan.device = "H100";
  plan.fingerprints = {"0123456789abcdef", "1", "2", "3"};
  plan.layout = {.pp = 2,
                 .vp = 2,
                 .ep = 4,
                 .dp = 4,
                 .microbatches = 4,
                 .microbatch_size = 2,
                 .sequence = 8192,
                 .dtype = Dtype::mxfp8,
                 .recompute = {.moe = true, .core_attention = true}};
  plan.schedule = "interleaved-overlap";
  plan.group = 2;
  for (int kind = 0; kind < 3; ++kind) {
    BlockCost cost;
    cost.name = std::string("kind ") + std::to_string(kind);
    const std::vector<TaskKind> kinds =
        kind == 0 ? std::vector<TaskKind>{TaskKind::embedding}
        : kind == 1
            ? std::vector<TaskKind>{TaskKind::attention, TaskKind::dispatch, TaskKind::mlp, TaskKind::combine}
            : std::vector<TaskKind>{TaskKind::head};
    for (const TaskKind task_kind : kinds) {
      for (const Pass pass : {Pass::forward, Pass::backward, Pass::weight, Pass::recompute}) {
        if (pass == Pass::weight && resource_of(task_kind) == Resource::comm) continue;
        if (pass == Pass::recompute && task_kind != TaskKind::attention) continue;
        if (pass == Pass::backward && task_kind == TaskKind::embedding) continue;
        TaskCost& task = cost.task(pass, task_kind);
        task.exists = true;
        task.duration = Estimate(Seconds(real()), Provenance::table, 0.1) +
                        Estimate(Seconds(real()), Provenance::constant, 0.3);
        task.compute_share = std::min(1.0, real());
        task.communicated = Bytes(real() * 1e9);
      }
    }
    cost.memory = {.dense_parameters = 12345678901,
                   .expert_parameters = 7,
                   .embedding_parameters = 5,
                   .head_parameters = 6,
                   .weights = Bytes(real()),
                   .gradients = Bytes(real()),
                   .optimizer = Bytes(real()),
                   .activation = Bytes(real()),
                   .weight_stash = Bytes(real()),
                   .workspace = Bytes(real())};
    plan.costs.push_back(cost);
  }
  plan.blocks.push_back({BlockKind::embedding, -1, 0});
  for (int l = 0; l < 6; ++l) plan.blocks.push_back({BlockKind::layer, l, 1});
  plan.blocks.push_back({BlockKind::head, -1, 2});
  plan.partition.stages = {{0, 3}, {3, 3}, {3, 6}, {6, 8}};
  plan.actions = make_schedule(Template::interleaved_overlap, {.pp = 2, .vp = 2, .microbatches = 4}).value();
  plan.interference = {.compute_bound_rate = 1 - real(), .memory_bound_rate = 0.95};
  plan.transfer_latency = Seconds(real());
  plan.transfer_time = Seconds(real());
  plan.rank_speed = {1.0, 0.9};
  plan.step.resize(2, {Seconds(real()), Seconds(real()), Seconds(real())});
  plan.memory.resize(
      2, {Bytes(real()), Bytes(real()), Bytes(real()), Bytes(real()), Bytes(real()), Bytes(real())});
  plan.memory_limit = Bytes(80e9);
  plan.flops_per_token = real() * 1e9;
  plan.peak = FlopsPerSecond(989e12);
  for (const auto& rank : plan.actions.ranks) {
    for (const Action& action : rank) {
      if (action.kind != ActionKind::overlap || plan.pair(action.stage, action.backward_stage) != nullptr)
        continue;
      const TaskGraph graph =
          pair_graph(plan.forward_graph(action.stage), plan.backward_graph(action.backward_stage));
      const PairResult best = schedule_pair(graph, {.interference = plan.interference});
      plan.pairs.push_back({.forward = action.stage,
                            .backward = action.backward_stage,
                            .sequence = names_of(graph, best.schedule.order),
                            .makespan = best.schedule.makespan,
                            .nominal = best.schedule.makespan,
                            .bound = best.bound});
      if (plan.pairs.size() % 2 == 1)
        plan.pairs.back().measured = MeasuredPair{.makespan = Seconds(real() + 0.1), .error = 0.01};
    }
  }
  plan.predicted = {.iteration = Seconds(real()),
                    .error = real(),
                    .tokens_per_second_per_gpu = real(),
                    .mfu = real(),
                    .lower_bound = Seconds(real()),
                    .peak_memory = Bytes(real()),
                    .peak_rank = 1};
  return plan;
}

Result<ExecutionPlan> read(const std::string& text) {
  TESSERA_TRY(const Document document, Document::parse(text, "plan.yaml", DocumentFormat::yaml));
  return read_plan(document.root());
}

// Written, read and written again: the same bytes, and the parts that matter equal to the last bit.
TEST(PlanFile, RoundTripsLosslessly) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const ExecutionPlan plan = sample_plan(seed);
    ASSERT_TRUE(check_plan(plan)) << check_plan(plan).error().text();
    const std::string text = write_plan(plan);
    const auto again = read(text);
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(write_plan(*again), text);
    EXPECT_EQ(again->model, plan.model);
    EXPECT_EQ(again->layout, plan.layout);
    EXPECT_EQ(again->blocks, plan.blocks);
    EXPECT_EQ(again->partition, plan.partition);
    EXPECT_EQ(again->actions, plan.actions);
    EXPECT_EQ(again->interference, plan.interference);
    EXPECT_EQ(again->rank_speed, plan.rank_speed);
    ASSERT_EQ(again->costs.size(), plan.costs.size());
    for (std::size_t c = 0; c < plan.costs.size(); ++c)
      for (std::size_t p = 0; p < kPasses; ++p)
        for (std::size_t k = 0; k < kTaskKinds; ++k) {
          const TaskCost& before = plan.costs[c].tasks[p][k];
          const TaskCost& after = again->costs[c].tasks[p][k];
          EXPECT_EQ(before.exists, after.exists);
          EXPECT_EQ(before.duration.time, after.duration.time);
          EXPECT_EQ(before.duration.error, after.duration.error);
          EXPECT_EQ(before.duration.by_source, after.duration.by_source);
          EXPECT_EQ(before.duration.error_by_source, after.duration.error_by_source);
          EXPECT_EQ(before.compute_share, after.compute_share);
        }
    ASSERT_EQ(again->pairs.size(), plan.pairs.size());
    for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
      EXPECT_EQ(again->pairs[i].sequence, plan.pairs[i].sequence);
      EXPECT_EQ(again->pairs[i].makespan, plan.pairs[i].makespan);
      EXPECT_EQ(again->pairs[i].measured, plan.pairs[i].measured);
    }
    EXPECT_EQ(again->predicted.iteration, plan.predicted.iteration);
  }
}

// Any one line taken out leaves a plan that is refused; none crashes the reader.
// DualPipe: both pipelines hold the whole model, cut alike.
TEST(PlanFile, HoldsTwoPipelines) {
  ActionList list = make_schedule(Template::dual_pipe, {.pp = 2, .vp = 2, .microbatches = 4}).value();
  ExecutionPlan plan = testing::plain_plan(list, 1, 2);
  plan.layout.microbatches = 4;
  plan.blocks.resize(2);
  plan.partition.stages = {{0, 1}, {1, 2}, {0, 1}, {1, 2}};
  for (PairPlan& pair : plan.pairs) {
    const TaskGraph graph = pair_graph(plan.forward_graph(pair.forward), plan.backward_graph(pair.backward));
    pair.sequence = names_of(graph, testing::defer_sequence(graph));
  }
  ASSERT_TRUE(check_plan(plan)) << check_plan(plan).error().text();
  const std::string text = write_plan(plan);
  const auto read_back = read(text);
  ASSERT_TRUE(read_back) << read_back.error().text();
  EXPECT_EQ(read_back->actions, plan.actions);
  EXPECT_EQ(write_plan(*read_back), text);
  plan.partition.stages = {{0, 1}, {1, 2}, {0, 2}, {2, 2}};
  EXPECT_THAT(check_plan(plan).error().text(),
              HasSubstr("stage 0 and stage 2 are the same stage of two pipelines"));
}

TEST(PlanFile, RefusesAPlanThatLostALine) {
  const std::string text = write_plan(sample_plan(3));
  std::vector<std::size_t> starts{0};
  for (std::size_t i = 0; i + 1 < text.size(); ++i)
    if (text[i] == '\n') starts.push_back(i + 1);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t end = i + 1 < starts.size() ? starts[i + 1] : text.size();
    const auto plan = read(text.substr(0, starts[i]) + text.substr(end));
    const std::string line = text.substr(starts[i], end - starts[i]);
    EXPECT_FALSE(plan) << "accepted without: " << line;
  }
}

TEST(PlanFile, SaysWhatAForeignFileIsNot) {
  const auto foreign = read("name: something else\n");
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.error().text(), HasSubstr("not a Tessera plan"));
  std::string newer = write_plan(sample_plan(1));
  newer.replace(newer.find("tessera_plan: 1"), 15, "tessera_plan: 2");
  const auto refused = read(newer);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(),
              HasSubstr("plan.yaml:1: tessera_plan: plan version 2 is newer than this program reads (1)"));
}

}  // namespace
}  // namespace tessera::train
