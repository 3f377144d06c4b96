// Hand-made bad jobs and plans: one clear error each, word for word.
#include <gtest/gtest.h>

#include "golden.h"
#include "tessera/train/execution_plan/plan_file.h"
#include "tessera/train/planner/plan.h"

namespace tessera::train {
namespace {

TEST(BadInput, JobsAreRefusedWithTheirLine) {
  const std::filesystem::path folder = TESSERA_TEST_DATA "/bad/job";
  const auto files = files_in(folder, ".yaml");
  ASSERT_GE(files.size(), 38U);
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename());
    const auto job = read_job_file(file.string());
    Result<PlanReport> report =
        job ? make_plan(*job, {.slices = false, .baselines = false}) : std::unexpected(job.error());
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().kind, ErrorKind::bad_input);
    EXPECT_FALSE(report.error().file.empty());
    const std::string text = without_folder(report.error().text(), folder.string() + "/");
    auto golden = file;
    expect_golden(without_folder(text, std::string(TESSERA_SOURCE) + "/") + "\n",
                  golden.replace_extension(".txt"));
  }
}

TEST(BadInput, PlansAreRefusedWithTheirLine) {
  const std::filesystem::path folder = TESSERA_TEST_DATA "/bad/plan";
  const auto files = files_in(folder, ".yaml");
  ASSERT_GE(files.size(), 15U);
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename());
    const auto plan = read_plan_file(file.string());
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().kind, ErrorKind::bad_input);
    auto golden = file;
    expect_golden(without_folder(plan.error().text(), folder.string() + "/") + "\n",
                  golden.replace_extension(".txt"));
  }
}

}  // namespace
}  // namespace tessera::train
