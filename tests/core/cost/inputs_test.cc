// Task names, software profiles, constants and durations by hand.

#include <gmock/gmock.h>

#include "pricing_fixture.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

Document yaml(std::string_view text) {
  auto document = Document::parse(text, "job.yaml", DocumentFormat::yaml);
  EXPECT_TRUE(document) << document.error().text();
  return *std::move(document);
}

TEST(TaskName, ReadsWhatItWrites) {
  for (const Pass pass : {Pass::forward, Pass::backward, Pass::weight, Pass::recompute})
    for (std::size_t kind = 0; kind < kTaskKinds; ++kind)
      for (const std::int32_t layer : {-1, 0, 7, 4095}) {
        const TaskName name{pass, static_cast<TaskKind>(kind), layer};
        EXPECT_EQ(parse_task_name(task_name(name.pass, name.kind, name.layer)), name);
      }
  EXPECT_EQ(task_name(Pass::forward, TaskKind::attention, 3), "F_ATTN:L3");
  EXPECT_EQ(task_name(Pass::weight, TaskKind::head, -1), "W_HEAD");
  EXPECT_EQ(task_name(Pass::recompute, TaskKind::attention, 3), "R_ATTN:L3");
  EXPECT_EQ(task_name(Pass::recompute, TaskKind::shared, 0), "R_SHARED:L0");
}

TEST(TaskName, RefusesAnythingElse) {
  for (const char* text : {"", "F", "F_", "F_ATT", "X_ATTN", "F_ATTN:", "F_ATTN:3", "F_ATTN:L", "F_ATTN:L-1",
                           "F_ATTN:L03", "F_ATTN:L3 ", "F_ATTN:L99999999999", "f_attn:L3", "F_ATTN:L+3"})
    EXPECT_FALSE(parse_task_name(text)) << text;
}

TEST(Software, DefaultsFollowTheGeneration) {
  EXPECT_EQ(default_software(*cluster_preset("H100")).cuda_graphs, CudaGraphs::none);
  EXPECT_EQ(default_software(*cluster_preset("B200")).cuda_graphs, CudaGraphs::none);
  EXPECT_EQ(default_software(*cluster_preset("GB200")).cuda_graphs, CudaGraphs::layer);
  EXPECT_EQ(default_software(*cluster_preset("MI300X")).dispatcher, Dispatcher::all_to_all);
}

TEST(Software, ReadsOverTheDefaults) {
  const auto cluster = cluster_preset("GB200");
  const Document document = yaml("{cuda_graphs: iteration, dispatcher: low_latency, fp8_dispatch: true}");
  const auto software = read_software(document.root(), *cluster);
  ASSERT_TRUE(software) << software.error().text();
  EXPECT_EQ(software->cuda_graphs, CudaGraphs::iteration);
  EXPECT_EQ(software->dispatcher, Dispatcher::low_latency);
  EXPECT_TRUE(software->fp8_dispatch && software->distributed_optimizer);
  EXPECT_EQ(
      read_software(yaml("{cuda_graphs: full}").root(), *cluster).error().text(),
      "job.yaml:1: cuda_graphs: full is not one of the choices\n  Choices are none, layer and iteration.");
  EXPECT_THAT(read_software(yaml("{cuda_graph: layer}").root(), *cluster).error().text(),
              HasSubstr("Did you mean cuda_graphs?"));
}

TEST(Constants, ReadOverTheDocumentedOnes) {
  const auto constants =
      read_constants(yaml("{memory_traffic: 2.5, host_per_sublayer_ms: 1.5, context_gib: 3}").root());
  ASSERT_TRUE(constants) << constants.error().text();
  EXPECT_DOUBLE_EQ(constants->memory_traffic, 2.5);
  EXPECT_DOUBLE_EQ(milliseconds(constants->host_per_sublayer), 1.5);
  EXPECT_DOUBLE_EQ(gibibytes(constants->context), 3);
  EXPECT_DOUBLE_EQ(constants->attention_backward, 3.2);
  EXPECT_THAT(read_constants(yaml("{graphed_host: 1.5}").root()).error().text(),
              HasSubstr("1.5 is outside 0 … 1"));
}

TEST(Constants, AreExactWhereNothingIsGiven) {
  const auto constants = read_constants(yaml("{memory_traffic: 1.25}").root());
  ASSERT_TRUE(constants) << constants.error().text();
  EXPECT_EQ(*constants, CostConstants{});
}

PricedRun qwen() {
  return {"Qwen3-30B-A3B.json", "H100", {.ep = 8, .dp = 8}};
}

TEST(Given, ReplacesPricedDurations) {
  ModelCost cost = qwen().price();
  const Document document = yaml("AE: {F_ATTN: 1.25, B_COMB: 0}\nhead: {F_HEAD: 3}\n");
  ASSERT_TRUE(apply_given(document.root(), cost));
  const TaskCost& task = cost.kinds[1].task(Pass::forward, TaskKind::attention);
  EXPECT_DOUBLE_EQ(milliseconds(task.duration.time), 1.25);
  EXPECT_EQ(task.duration.by_source[static_cast<std::size_t>(Provenance::given)], task.duration.time);
  EXPECT_EQ(task.duration.error.value(), 0);
  EXPECT_EQ(task.host_share(), 0);
  EXPECT_EQ(cost.kinds[1].task(Pass::backward, TaskKind::combine).duration.time.value(), 0);
  EXPECT_TRUE(cost.kinds[1].task(Pass::backward, TaskKind::combine).exists);
}

TEST(Given, ReplacesRecomputeWhereThereIsSome) {
  PricedRun run = qwen();
  ModelCost kept = run.price();
  EXPECT_EQ(
      apply_given(yaml("AE: {R_MLP: 1}").root(), kept).error().text(),
      "job.yaml:1: AE.R_MLP: AE has no task of this name\n"
      "  Its tasks are F_ATTN, F_DISP, F_MLP, F_COMB, B_ATTN, B_DISP, B_MLP, B_COMB, W_ATTN and W_MLP.");
  run.layout.recompute = {.moe_activation = true};
  ModelCost again = run.price();
  const Seconds backward = again.kinds[1].task(Pass::backward, TaskKind::mlp).duration.time;
  ASSERT_TRUE(apply_given(yaml("AE: {R_MLP: 0.5}").root(), again));
  EXPECT_DOUBLE_EQ(milliseconds(again.kinds[1].task(Pass::recompute, TaskKind::mlp).duration.time), 0.5);
  EXPECT_EQ(again.kinds[1].task(Pass::backward, TaskKind::mlp).duration.time, backward);
}

TEST(Given, RefusesWhatTheModelDoesNotHave) {
  ModelCost cost = qwen().price();
  EXPECT_EQ(apply_given(yaml("GE: {F_ATTN: 1}").root(), cost).error().text(),
            "job.yaml:1: GE: the model has no block of this kind\n  Its kinds are embedding, AE and head.");
  EXPECT_EQ(
      apply_given(yaml("head: {F_ATTN: 1}").root(), cost).error().text(),
      "job.yaml:1: head.F_ATTN: head has no task of this name\n  Its tasks are F_HEAD, B_HEAD and W_HEAD.");
  EXPECT_THAT(apply_given(yaml("AE: {F_ATTN: -1}").root(), cost).error().text(), HasSubstr("-1 is outside"));
  EXPECT_THAT(apply_given(yaml("AE: 5").root(), cost).error().text(), HasSubstr("expected a map"));
  EXPECT_THAT(apply_given(yaml("AE: {'F_ATTN:L3': 1}").root(), cost).error().text(),
              HasSubstr("no task of this name"));
}

}  // namespace
}  // namespace tessera
