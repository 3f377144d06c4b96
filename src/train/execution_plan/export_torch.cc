#include <fmt/format.h>

#include <algorithm>

#include "tessera/train/execution_plan/export.h"
#include "tessera/train/schedule/titan_modules.h"

namespace tessera::train {
namespace {

// The name whose placement is the plan's; the order itself comes from the CSV.
Result<std::string_view> titan_schedule(const ExecutionPlan& plan) {
  const auto& homes = plan.actions.rank_of_stage;
  const auto pp = static_cast<std::int32_t>(plan.actions.ranks.size());
  const auto everywhere = [&](auto&& home) {
    for (std::size_t s = 0; s < homes.size(); ++s)
      if (homes[s].value() != home(static_cast<std::int32_t>(s))) return false;
    return true;
  };
  if (plan.actions.pipelines == 1 && everywhere([&](std::int32_t s) { return s % pp; }))
    return homes.size() == static_cast<std::size_t>(pp) ? "1F1B" : "Interleaved1F1B";
  if (plan.actions.pipelines == 1 && homes.size() == 2 * static_cast<std::size_t>(pp) &&
      everywhere([&](std::int32_t s) { return std::min(s, 2 * pp - 1 - s); })) {
    const bool pairs = std::ranges::any_of(plan.actions.ranks, [](const auto& row) {
      return std::ranges::any_of(row, [](const Action& a) { return a.kind == ActionKind::overlap; });
    });
    return pairs ? "DualPipeV" : "ZBVZeroBubble";
  }
  return bad_input("torchtitan places stages in a loop over the ranks or in a V, and this plan in neither",
                   "--to chrome shows any plan.");
}

}  // namespace

Result<std::string> torch_csv(const ExecutionPlan& plan, CsvForm form) {
  TESSERA_CHECK(check_no_shadows(plan, "PyTorch\'s CSV"));
  if (form == CsvForm::compute_only) return write_torch_csv(plan.actions);
  TESSERA_TRY(const LoweredList lowered, lower(plan.actions, {.shard = true}));
  return write_torch_csv(lowered);
}

Result<std::string> torchtitan_settings(const ExecutionPlan& plan, const std::string& csv_path) {
  TESSERA_CHECK(check_no_shadows(plan, "torchtitan"));
  TESSERA_TRY(const std::string_view schedule, titan_schedule(plan));
  ModelSpec model;
  for (const PlanBlock& block : plan.blocks)
    model.blocks.push_back({.kind = block.kind, .layer = block.layer});
  TESSERA_TRY(const std::string modules, write_titan_modules(model, plan.partition));
  const Layout& layout = plan.layout;
  return fmt::format(
      "[training]\n"
      "local_batch_size = {}\n"
      "seq_len = {}\n"
      "\n"
      "[parallelism]\n"
      "data_parallel_shard_degree = {}\n"
      "tensor_parallel_degree = {}\n"
      "context_parallel_degree = {}\n"
      "expert_parallel_degree = {}\n"
      "expert_tensor_parallel_degree = {}\n"
      "pipeline_parallel_degree = {}\n"
      "pipeline_parallel_microbatch_size = {}\n"
      "pipeline_parallel_schedule = \"{}\"\n"
      "pipeline_parallel_schedule_csv = \"{}\"\n"
      "module_fqns_per_model_part = {}\n",
      layout.microbatches * layout.microbatch_size, layout.sequence, layout.dp, layout.tp, layout.cp,
      layout.ep, layout.etp, layout.pp, layout.microbatch_size, schedule, csv_path, modules);
}

}  // namespace tessera::train
