// Every template through the planner: plan, audit, and back from its file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/train/execution_plan/plan_file.h"
#include "tessera/train/planner/plan.h"
#include "tessera/train/simulate/audit.h"

namespace tessera::train {
namespace {

Job job_of(Template schedule) {
  const bool one_chunk = traits(schedule).chunks == 1;
  const std::string text =
      "model: ../data/models/Qwen3-30B-A3B.json\n"
      "cluster: {preset: H100, gpus: 32}\n"
      "layout: {pp: 4, vp: " +
      std::string(one_chunk ? "1" : "2") +
      ", ep: 8, microbatches: 10, sequence: 4096, recompute: none}\n"
      "schedule: {template: " +
      std::string(name(schedule)) + "}\n";
  const auto document = Document::parse(text, "job.yaml", DocumentFormat::yaml);
  auto job = read_job(*document, TESSERA_SOURCE "/examples");
  EXPECT_TRUE(job) << job.error().text();
  return *std::move(job);
}

class PlannedTemplate : public ::testing::TestWithParam<Template> {};

TEST_P(PlannedTemplate, IsSoundAndComesBackFromItsFile) {
  const auto report = make_plan(job_of(GetParam()));
  ASSERT_TRUE(report) << report.error().text();
  const ExecutionPlan& plan = report->plan;
  EXPECT_EQ(plan.schedule, name(GetParam()));
  for (std::size_t s = 0; s < plan.actions.stages(); ++s)
    EXPECT_EQ(plan.actions.rank_of_stage[s],
              rank_of_stage(GetParam(), 4, StageId(static_cast<std::int64_t>(s))));
  EXPECT_GE(report->simulated.iteration, report->simulated.lower_bound);
  EXPECT_EQ(report->baseline.name, "no overlap");

  const std::string text = write_plan(plan);
  const Document document = Document::parse(text, "plan.yaml", DocumentFormat::yaml).value();
  const auto read = read_plan(document.root());
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->actions, plan.actions);
  EXPECT_EQ(write_plan(*read), text);
  if (!report->usable) return;  // all activations at once do not fit
  const auto audit = audit_plan(*read);
  ASSERT_TRUE(audit) << audit.error().text();
  EXPECT_EQ(audit->iteration, report->simulated.iteration);
  EXPECT_THAT(audit->stale, ::testing::IsEmpty());
}

std::vector<Template> all_templates() {
  std::vector<Template> all;
  for (std::size_t t = 0; t < kTemplates; ++t) all.push_back(static_cast<Template>(t));
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, PlannedTemplate, ::testing::ValuesIn(all_templates()), [](const auto& of) {
  std::string name(train::name(of.param));
  std::ranges::replace(name, '-', '_');
  return name;
});

// An uneven partition gets an order made for it, not for equal stages.
TEST(PlannedTemplates, AreMadeForTheStagesTheyGet) {
  Job job = job_of(Template::zb_h1);
  job.stage_durations = {{Seconds(10), Seconds(12), Seconds(8)},
                         {Seconds(10), Seconds(12), Seconds(8)},
                         {Seconds(10), Seconds(12), Seconds(8)},
                         {Seconds(16), Seconds(20), Seconds(14)}};
  job.layout.microbatches = 8;
  job.transfer_time = Seconds(1);
  const auto report = make_plan(job);
  ASSERT_TRUE(report) << report.error().text();
  // What published orders for these durations need (sail-sg/zero-bubble-pipeline-parallelism, zb.py).
  EXPECT_LE(report->simulated.pipeline.value(), 433 + 1e-9);
}

}  // namespace
}  // namespace tessera::train
