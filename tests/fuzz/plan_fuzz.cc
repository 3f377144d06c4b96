// Plan files from any bytes: an error with a place, or a plan that can be written, read again and simulated.
#include <cmath>
#include <cstdlib>

#include "fuzz/yaml_target.h"
#include "tessera/train/execution_plan/plan_file.h"
#include "tessera/train/explain/explain.h"
#include "tessera/train/planner/plan.h"
#include "tessera/train/simulate/audit.h"
#include "tessera/train/simulate/simulate.h"
#include "tessera/train/simulate/simulation_trace.h"

namespace {

using namespace tessera;

fuzzing::Tally tally("plan");

// Everything the program says of a plan. Slow under the sanitizers, so only some mutants bear it.
void say_everything(const train::ExecutionPlan& plan, const train::SimulateResult& result) {
  if (!std::isfinite(train::figures("mutant", plan, result).mfu)) std::abort();
  if (train::simulation_json(plan, result).empty() || train::simulation_text(plan, result).empty())
    std::abort();
  static_cast<void>(train::audit_plan(plan));
  if (train::chrome_trace(plan, result).empty()) std::abort();
}

void use(const train::ExecutionPlan& plan) {
  ++tally.accepted;
  const auto result = train::simulate(plan, {.slices = true});
  if (!result) std::abort();
  if (!(result->iteration >= result->lower_bound * (1 - 1e-9))) std::abort();
  if (tally.accepted % 8 != 0) return;
  const std::string text = train::write_plan(plan);
  const auto document = Document::parse(text, "again.yaml", DocumentFormat::yaml);
  if (!document) std::abort();
  const auto again = train::read_plan(document->root());
  if (!again || train::write_plan(*again) != text) std::abort();
  say_everything(plan, *result);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzzing::run_yaml(
      tally, data, size, [](Cursor root) { return root.is_map() && root.find("tessera_plan"); },
      [](const Document& document) { return train::read_plan(document.root()); }, use);
}
