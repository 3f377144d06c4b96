// Job files from any bytes: an error with a place, or a job whose plan holds.
#include <cstdlib>

#include "fuzz/yaml_target.h"
#include "tessera/train/planner/plan.h"
#include "tessera/train/schedule/check_schedule.h"

namespace {

using namespace tessera;

fuzzing::Tally tally("job");

// Models are named relative to a folder beside data/, as in examples/.
constexpr const char* kFolder = TESSERA_SOURCE "/examples";

bool reaches_the_checks(Cursor root) {
  return root.is_map() && root.find("model") && root.find("cluster") && root.find("layout");
}

// What every accepted job must bear; large ones are legal, and too slow for a mutant.
void use(const train::Job& job) {
  if (job.layout.stages() * job.layout.microbatches > 4096) return;
  const auto report = train::make_plan(job, {.slices = true, .baselines = false});
  if (!report) {
    if (report.error().message.empty()) std::abort();
    return;
  }
  ++tally.accepted;
  if (!train::check_plan(report->plan) || !train::check_schedule(report->plan.actions)) std::abort();
  if (!(report->simulated.iteration >= report->simulated.lower_bound * (1 - 1e-9))) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzzing::run_yaml(
      tally, data, size, reaches_the_checks,
      [](const Document& document) { return train::read_job(document, kFolder); }, use);
}
