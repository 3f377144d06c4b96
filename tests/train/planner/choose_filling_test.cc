// Microbatches that a template cannot take as they are: larger groups, shadows, and what the planner says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/train/execution_plan/plan_file.h"
#include "tessera/train/planner/plan.h"
#include "tessera/train/simulate/audit.h"

namespace tessera::train {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

Result<Job> job_with(int microbatches, const std::string& schedule, int pp = 4) {
  const std::string text =
      "model: ../data/models/Qwen3-30B-A3B.json\n"
      "cluster: {preset: H100, gpus: 32}\n"
      "layout: {pp: " +
      std::to_string(pp) + ", vp: 2, ep: 8, microbatches: " + std::to_string(microbatches) +
      ", sequence: 4096, recompute: none}\n"
      "schedule: {partition: serial-balanced, " +
      schedule + "}\n";
  const auto document = Document::parse(text, "job.yaml", DocumentFormat::yaml);
  return read_job(*document, TESSERA_SOURCE "/examples");
}
PlanReport plan_of(const Job& job) {
  auto report = make_plan(job);
  EXPECT_TRUE(report) << report.error().text();
  return *std::move(report);
}
std::string fault(int microbatches, const std::string& schedule) {
  const auto job = job_with(microbatches, schedule);
  if (!job) return job.error().text();
  const auto report = make_plan(*job, {.slices = false, .baselines = false});
  return report ? std::string("no error") : report.error().text();
}

TEST(ChooseFilling, TakesALargerGroupWhereItFits) {
  const PlanReport report = plan_of(*job_with(10, "template: interleaved-overlap"));
  // The three legal groups, and shadows last, first, spread and at both ends of groups of 4; the search may
  // have found one of these.
  ASSERT_GE(report.fillings.size(), 7U);
  EXPECT_EQ(report.plan.group, 5);
  EXPECT_THAT(report.plan.actions.shadow, IsEmpty());
  // What was compared is what the plan is: both are on the serial balance.
  EXPECT_EQ(report.fillings.front().iteration, report.figures.iteration);
  EXPECT_EQ(report.fillings.front().peak_memory, report.figures.peak_memory);
  for (std::size_t i = 1; i < report.fillings.size(); ++i)
    EXPECT_GE(report.fillings[i].iteration, report.fillings[i - 1].iteration);
  EXPECT_THAT(report.notes,
              Contains(StartsWith("10 microbatches in groups of PP = 4 leave a last group that is "
                                  "too small; groups of 5 are used (")));
}

// Between the memory of four in a group and of five: the fastest placement of the shadows is taken.
TEST(ChooseFilling, TakesShadowsWhereLargerGroupsDoNotFit) {
  Job job = *job_with(10, "template: interleaved-overlap");
  const PlanReport roomy = plan_of(job);
  const auto padded = std::ranges::find_if(
      roomy.fillings, [](const FillingCandidate& c) { return !c.filling.shadows.empty(); });
  ASSERT_NE(padded, roomy.fillings.end());
  ASSERT_LT(padded->peak_memory, roomy.figures.peak_memory);
  job.cluster.gpu.memory = (padded->peak_memory + roomy.figures.peak_memory) / (2 * kUsableMemory);
  const PlanReport tight = plan_of(job);
  EXPECT_TRUE(tight.usable);
  EXPECT_EQ(tight.plan.group, 4);
  EXPECT_EQ(tight.plan.actions.microbatches, 12);
  EXPECT_EQ(tight.plan.actions.real_microbatches(), 10);
  EXPECT_EQ(tight.fillings.front().filling, padded->filling);
  EXPECT_EQ(tight.figures.iteration, padded->iteration);
  // Tokens and FLOPs are those of ten.
  EXPECT_NEAR(tight.figures.tokens_per_second_per_gpu,
              roomy.figures.tokens_per_second_per_gpu * (roomy.figures.iteration / tight.figures.iteration),
              1e-6);
  EXPECT_THAT(tight.notes, Contains(HasSubstr("shadow microbatches (numbers ")));
  EXPECT_THAT(tight.notes, Contains(HasSubstr("does not fit; both before the partition was chosen).")));
  // The searched places are the best of all 66, on this partition.
  for (std::int32_t a = 0; a < 12; a += 3)
    for (std::int32_t b = a + 1; b < 12; b += 2) {
      job.filling = Filling{.group = 4, .microbatches = 12, .shadows = {a, b}};
      EXPECT_GE(make_plan(job, {.slices = false, .baselines = false})->figures.iteration.value(),
                tight.figures.iteration.value() * (1 - 1e-3));
    }
  const std::string text = write_plan(tight.plan);
  const auto read = read_plan(Document::parse(text, "plan.yaml", DocumentFormat::yaml)->root());
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->actions, tight.plan.actions);
  const auto audit = audit_plan(*read);
  ASSERT_TRUE(audit) << audit.error().text();
  EXPECT_THAT(audit->stale, IsEmpty());
}

TEST(ChooseFilling, FollowsTheRule) {
  const auto shadows = [](const std::string& schedule, int microbatches = 10) {
    const PlanReport report = plan_of(*job_with(microbatches, schedule));
    std::vector<std::int32_t> out;
    for (std::size_t m = 0; m < report.plan.actions.shadow.size(); ++m)
      if (report.plan.actions.shadow[m]) out.push_back(static_cast<std::int32_t>(m));
    return out;
  };
  EXPECT_THAT(shadows("template: interleaved, shadows: first"), ElementsAre(0, 1));
  EXPECT_THAT(shadows("template: interleaved, shadows: last"), ElementsAre(10, 11));
  EXPECT_THAT(shadows("template: interleaved-zb, shadows: spread"), ElementsAre(4, 8));
  EXPECT_THAT(shadows("template: interleaved, shadows: last", 12), IsEmpty());
  EXPECT_THAT(shadows("template: interleaved, shadows: last, group: 7"), ElementsAre(10));  // 7 and 4
  EXPECT_THAT(shadows("template: interleaved, shadows: last", 3), ElementsAre(3));
  const PlanReport none = plan_of(*job_with(10, "template: interleaved, shadows: none"));
  EXPECT_EQ(none.plan.group, 5);
  EXPECT_THAT(none.fillings, IsEmpty());
  EXPECT_THAT(none.notes,
              Contains("10 microbatches in groups of PP = 4 leave a last group that is too small; "
                       "groups of 5 are used."));
}

TEST(ChooseFilling, LeavesErrorsThatShadowsWouldHide) {
  EXPECT_THAT(fault(3, "template: interleaved"),
              HasSubstr("job.yaml:4: schedule: 3 microbatches cannot fill an interleaved pipeline of 4"));
  EXPECT_THAT(fault(10, "template: interleaved, group: 4"), HasSubstr("The nearest legal group size is 5"));
  EXPECT_THAT(fault(10, "template: interleaved, group: 3, shadows: last"),
              HasSubstr("a group of 3 microbatches is smaller than the pipeline of 4 ranks"));
  EXPECT_THAT(fault(9, "template: dualpipe, shadows: none"), HasSubstr("9 cannot be halved"));
  EXPECT_THAT(fault(7, "template: dualpipe"),
              HasSubstr("7 microbatches are too few for dualpipe on 4 ranks"));
  EXPECT_THAT(fault(10, "shadows: many"),
              HasSubstr("schedule.shadows: unknown rule for shadow microbatches"));
  EXPECT_THAT(fault(10, "shadows: many"), HasSubstr("Known are auto, none, first, last and spread."));
}

// An odd number for DualPipe: one direction runs one less.
TEST(ChooseFilling, GivesDualPipeAnEvenNumber) {
  const PlanReport report = plan_of(*job_with(9, "template: dualpipe"));
  EXPECT_EQ(report.plan.actions.microbatches, 5);
  EXPECT_EQ(report.plan.actions.real_microbatches(), 9);
  EXPECT_EQ(
      report.plan.actions.real_microbatches(StageId(0)) + report.plan.actions.real_microbatches(StageId(4)),
      9);
  EXPECT_THAT(report.notes, Contains(StartsWith("dualpipe does not take 9 microbatches on 4 ranks; 1 shadow "
                                                "microbatch (number ")));
  const PlanReport few = plan_of(*job_with(3, "template: dualpipe-v, shadows: spread"));
  EXPECT_EQ(few.plan.actions.microbatches, 8);
  EXPECT_EQ(few.plan.actions.real_microbatches(), 3);
}

// Durations by hand: the comparison uses them too.
TEST(ChooseFilling, KnowsDurationsByHand) {
  Job job = *job_with(10, "template: interleaved");
  job.stage_durations.assign(8, {Seconds(1), Seconds(2), Seconds(0)});
  job.transfer_time = Seconds(0);
  const PlanReport group = plan_of(job);
  EXPECT_EQ(group.plan.group, 5);
  EXPECT_NEAR(group.simulated.pipeline.value(), 69, 1e-9);
  job.cluster.gpu.memory = (group.fillings.front().peak_memory - Bytes(1)) / kUsableMemory;
  const PlanReport padded = plan_of(job);
  EXPECT_EQ(padded.plan.group, 4);
  EXPECT_NEAR(padded.simulated.pipeline.value(), 70, 1e-9);  // the best of all places: see shadow_test.cc
  EXPECT_EQ(padded.fillings.front().placement, "searched");
}

}  // namespace
}  // namespace tessera::train
