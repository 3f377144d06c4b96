#include "tessera/train/execution_plan/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "tessera/train/schedule/schedule_template.h"

namespace tessera::train {
namespace {

// What the user can do instead: the nearest group that needs no shadows, or the next number of microbatches.
std::string without_shadows(const ExecutionPlan& plan) {
  const auto schedule = template_by_name(plan.schedule);
  if (schedule && traits(*schedule).groups) {
    const std::vector<std::int32_t> legal = legal_groups(static_cast<std::int32_t>(plan.layout.pp),
                                                         static_cast<std::int32_t>(plan.layout.microbatches));
    if (!legal.empty()) {
      const std::int32_t nearest =
          *std::ranges::min_element(legal, {}, [&](std::int32_t n) { return std::abs(n - plan.group); });
      return fmt::format("The nearest legal group size is {0}: plan with schedule.group: {0}.", nearest);
    }
  }
  return fmt::format("Plan with {} real microbatches, or another template.",
                     plan.actions.microbatches * plan.actions.pipelines);
}

Status check_loop_placement(const ExecutionPlan& plan) {
  for (std::size_t s = 0; s < plan.actions.stages(); ++s) {
    const std::int64_t rank = plan.actions.rank_of_stage[s].value();
    const std::int64_t loop = static_cast<std::int64_t>(s) % plan.layout.pp;
    if (plan.actions.pipelines > 1 || rank != loop)
      return bad_input(
          fmt::format("Megatron's layout string puts stage k on rank k mod pp, and the plan has {}",
                      plan.actions.pipelines > 1 ? "every stage on two ranks"
                                                 : fmt::format("stage {} on rank {}", s, rank)),
          "Plan with interleaved or interleaved-overlap for Megatron; --chrome shows any plan.");
  }
  return {};
}

}  // namespace

Status check_no_shadows(const ExecutionPlan& plan, std::string_view target) {
  const std::int32_t all = plan.actions.microbatches * plan.actions.pipelines;
  const std::int32_t real = plan.actions.real_microbatches();
  if (real == all) return {};
  return bad_input(
      fmt::format("{} cannot hold this plan: {} of its {} microbatches are shadows, and a launcher that is "
                  "given {} would train on all of them",
                  target, all - real, all, all),
      without_shadows(plan) + " Shadows need a runtime that skips their compute and their collectives.");
}

Result<std::string> megatron_layout(const ExecutionPlan& plan, const MegatronTarget& target) {
  TESSERA_CHECK(check_no_shadows(plan, "Megatron's layout string"));
  TESSERA_CHECK(check_loop_placement(plan));
  // The string tells kinds of blocks apart, not kinds of layers.
  ModelSpec model;
  for (const PlanBlock& block : plan.blocks)
    model.blocks.push_back({.kind = block.kind, .layer = block.layer});
  return write_megatron_layout(model, plan.partition, plan.layout.pp, target);
}

}  // namespace tessera::train
