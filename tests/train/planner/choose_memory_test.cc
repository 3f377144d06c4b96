// Recompute and offload from the job file to the plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/core/model/import.h"
#include "tessera/train/execution_plan/plan_file.h"
#include "tessera/train/planner/plan.h"
#include "tessera/train/schedule/megatron_layout.h"

namespace tessera::train {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Result<Job> job_of(const std::string& text) {
  auto document = Document::parse(text, "job.yaml", DocumentFormat::yaml);
  if (!document) return std::unexpected(document.error());
  return read_job(*document, TESSERA_SOURCE "/data/models");
}

PlanReport planned(const Job& job) {
  auto report = make_plan(job, {.slices = false, .baselines = false});
  EXPECT_TRUE(report) << report.error().text();
  return *std::move(report);
}

// The run of a published report (Megatron-LM pull request 6429): 14 layers of DeepSeek-V3's shape and one MTP
// block on 64 GPUs of 80 GB, sequence 2048. It names neither the GPU nor the dense layers; H100 and one dense
// layer are assumed.
Job reported(const std::string& schedule, const std::string& recompute) {
  Job job = job_of(
                "model: DeepSeek-V3.json\ncluster: {preset: H100, gpus: 64}\n"
                "layout: {pp: 4, vp: 2, ep: 16, microbatches: 16, sequence: 2048, recompute: " +
                recompute + "}\nschedule: {template: " + schedule + "}\n")
                .value();
  ModelSpec& model = job.model;
  const auto is_layer = [&](bool dense) {
    return [&model, dense](const Block& b) {
      return b.kind == BlockKind::layer && model.layer_of(b).dense.has_value() == dense;
    };
  };
  const auto keep = [&](bool dense, std::int64_t most) {
    std::int64_t seen = 0;
    std::erase_if(model.blocks, [&](const Block& b) { return is_layer(dense)(b) && ++seen > most; });
  };
  keep(true, 1);
  keep(false, 13);
  std::int32_t layer = 0;
  for (Block& block : model.blocks)
    if (block.kind == BlockKind::layer || block.kind == BlockKind::mtp) block.layer = layer++;
  job.partition = read_megatron_layout("Ett|(tt|)*6mL", model, {.pp = 4, .layers = 14, .mtp = 1}).value();
  job.partition_rule = PartitionRule::given;
  return job;
}

TEST(ChooseMemory, RanksAReportedRunAsItWasMeasured) {
  // Measured: overlap alone 79,677 MB, where time explodes; with full recompute 60,378 MB and 2,839 ms;
  // recompute alone 60,154 MB and 3,044 ms.
  const PlanReport overlap = planned(reported("interleaved-overlap", "none"));
  EXPECT_FALSE(overlap.usable);
  const PlanReport both = planned(reported("interleaved-overlap", "full"));
  const PlanReport recompute = planned(reported("interleaved", "full"));
  EXPECT_TRUE(both.usable);
  EXPECT_TRUE(recompute.usable);
  const double ratio = recompute.figures.iteration / both.figures.iteration;
  EXPECT_GT(ratio, 1.03);
  EXPECT_LT(ratio, 1.12);
  // Measured 1.004. Ours is 1.011: the forward of a pair has dispatch buffers of its own while the logits of
  // the other are still there.
  EXPECT_NEAR(both.figures.peak_memory / recompute.figures.peak_memory, 1.0, 0.012);
}

TEST(ChooseMemory, MakesAnOverlapFitAtTheLeastPrice) {
  const PlanReport report = planned(reported("interleaved-overlap", "auto"));
  EXPECT_TRUE(report.usable);
  ASSERT_TRUE(report.memory);
  EXPECT_FALSE(report.memory->taken.empty());
  EXPECT_GT(report.memory->without, report.figures.peak_memory);
  for (const MemoryMeans& means : report.memory->taken) {
    EXPECT_GT(means.saved, Bytes(0));
    for (const MemoryMeans& left : report.memory->left) {
      if (left.kind == means.kind) {
        EXPECT_LE(means.price(), left.price() * (1 + 1e-9)) << means.unit;
      }
    }
  }
  EXPECT_FALSE(report.plan.layout.layer_memory.empty());
  // Cheaper than all of every layer, and it says so in the plan file.
  EXPECT_LT(report.figures.iteration, planned(reported("interleaved-overlap", "full")).figures.iteration);
  const std::string text = write_plan(report.plan);
  EXPECT_THAT(text, HasSubstr("layer_memory"));
  const auto again = parse_plan(Document::parse(text, "plan.yaml", DocumentFormat::yaml).value().root());
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->layout, report.plan.layout);
  EXPECT_EQ(write_plan(*again), text);
}

std::string next(const std::string& memory, const std::string& layout = "") {
  return "model: Qwen3-Next-80B-A3B.json\ncluster: {preset: H100, gpus: 128, memory_gb: " + memory +
         "}\nlayout: {pp: 8, vp: 2, ep: 16, microbatches: 64" + layout + "}\n";
}

TEST(ChooseMemory, TakesNothingWhileThePlanFits) {
  const PlanReport report = planned(job_of(next("80")).value());
  EXPECT_TRUE(report.usable);
  EXPECT_FALSE(report.memory);
  EXPECT_TRUE(report.plan.layout.layer_memory.empty());
}

TEST(ChooseMemory, TakesNothingThatTheJobRulesOut) {
  const PlanReport report = planned(job_of(next("48", ", recompute: none")).value());
  EXPECT_FALSE(report.usable);
  EXPECT_FALSE(report.memory);
}

TEST(ChooseMemory, FitsWhereThereIsLessAndLessRoom) {
  const PlanReport roomy = planned(job_of(next("80")).value());
  std::size_t taken = 0;
  for (const char* memory : {"64", "56", "48", "40"}) {
    const PlanReport report = planned(job_of(next(memory)).value());
    EXPECT_TRUE(report.usable) << memory;
    EXPECT_GE(report.figures.iteration, roomy.figures.iteration) << memory;
    if (report.memory) taken = report.memory->taken.size();
  }
  EXPECT_GT(taken, 0U);
}

// A partition skewed for the memory's sake is slower than one with a little recompute or offload.
TEST(ChooseMemory, BuysAFasterPartitionWithIt) {
  const PlanReport skewed = planned(job_of(next("60", ", recompute: none")).value());
  ASSERT_TRUE(skewed.usable);
  ASSERT_TRUE(skewed.search->cramped);
  const PlanReport report = planned(job_of(next("60")).value());
  ASSERT_TRUE(report.memory);
  EXPECT_EQ(report.memory->iteration_without, skewed.figures.iteration);
  EXPECT_LT(report.figures.iteration, skewed.figures.iteration);
}

TEST(ChooseMemory, SaysWhatIsLeastWhereNothingFits) {
  const PlanReport report = planned(job_of(next("16")).value());
  EXPECT_FALSE(report.usable);
  ASSERT_TRUE(report.memory);
  EXPECT_LT(report.figures.peak_memory, report.memory->without);
}

TEST(ChooseMemory, OffersNoOffloadWithoutAHostLink) {
  Job job = job_of(next("48")).value();
  job.cluster.gpu.host_link = BytesPerSecond(0);
  const PlanReport report = planned(job);
  ASSERT_TRUE(report.memory);
  EXPECT_THAT(report.memory->taken, Each(Field(&MemoryMeans::unit, ::testing::Ne("offload"))));
  EXPECT_THAT(report.memory->left, Each(Field(&MemoryMeans::unit, ::testing::Ne("offload"))));
}

TEST(ChooseMemory, AnActionLastsAsLongAsItsCopies) {
  // A link so slow that copies are all there is: each of a rank's 2 · 64 chunk passes takes as long as
  // copying three layers one way.
  Job job = job_of(next("80", ", offload: [GE, AE]")).value();
  job.partition_rule = PartitionRule::even;
  const PlanReport fast = planned(job);
  job.cluster.gpu.host_link = BytesPerSecond(1e8);
  const PlanReport slow = planned(job);
  const Seconds copy = slow.plan.copy_time(StageId(5));
  EXPECT_GT(copy, Seconds(1));
  EXPECT_GE(slow.figures.iteration, copy * 64.0 * 2.0);
  EXPECT_GT(slow.figures.iteration, fast.figures.iteration * 10.0);
  EXPECT_EQ(slow.figures.peak_memory, fast.figures.peak_memory);
  EXPECT_GE(slow.figures.iteration, slow.figures.lower_bound);
}

TEST(ChooseMemory, RefusesKindsThatTheModelDoesNotHave) {
  const auto fault = [](const std::string& layout) {
    const auto job = job_of(next("80", layout));
    return job ? std::string("no error") : job.error().text();
  };
  EXPECT_THAT(fault(", recompute: {XY: [norm]}"),
              AllOf(HasSubstr("job.yaml:3: layout.recompute"), HasSubstr("no layers of kind XY"),
                    HasSubstr("GE and AE")));
  EXPECT_THAT(fault(", offload: [head]"), HasSubstr("no layers of kind head"));
  EXPECT_THAT(fault(", offload: {GE: 1.5}"), HasSubstr("layout.offload.GE"));
  EXPECT_THAT(fault(", offload: GE"), HasSubstr("expected a list of kinds"));
  EXPECT_THAT(fault(", offload: [GE], recompute: auto"), HasSubstr("decides what is offloaded too"));
  EXPECT_THAT(fault(", recompute: {GE: [nothing]}"), HasSubstr("nothing that can be recomputed"));
}

}  // namespace
}  // namespace tessera::train
