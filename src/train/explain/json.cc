#include <nlohmann/json.hpp>

#include "tessera/core/model/count.h"
#include "tessera/train/explain/explain.h"

namespace tessera::train {

namespace {

using Json = nlohmann::ordered_json;

// Names may come from files in any encoding; JSON is UTF-8.
std::string to_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json figures_json(const PlanFigures& f) {
  return {{"iteration_seconds", f.iteration.value()},
          {"lower_bound_seconds", f.lower_bound.value()},
          {"tokens_per_second_per_gpu", f.tokens_per_second_per_gpu},
          {"mfu", f.mfu},
          {"bubble_warmup_cooldown", f.warmup_bubble},
          {"bubble_imbalance", f.imbalance_bubble},
          {"exposed_ep", f.exposed_ep},
          {"exposed_ep_worst", f.exposed_ep_worst},
          {"hidden_ep", f.hidden_ep},
          {"hidden_ep_worst", f.hidden_ep_worst},
          {"peak_memory_bytes", f.peak_memory.value()},
          {"peak_rank", f.peak_rank}};
}

Json ranks_json(const ExecutionPlan& plan, const SimulateResult& result) {
  Json out = Json::array();
  for (std::size_t r = 0; r < result.ranks.size(); ++r) {
    const RankResult& rank = result.ranks[r];
    const RankMemory& m = plan.memory[r];
    out.push_back({{"comp_busy_seconds", rank.comp_busy.value()},
                   {"comm_busy_seconds", rank.comm_busy.value()},
                   {"exposed_comm_seconds", rank.exposed_comm.value()},
                   {"warmup_idle_seconds", rank.warmup_idle.value()},
                   {"cooldown_idle_seconds", rank.cooldown_idle.value()},
                   {"imbalance_idle_seconds", rank.imbalance_idle.value()},
                   {"step_end_seconds", rank.step_end.value()},
                   {"peak_live_chunks", rank.peak_live},
                   {"memory_bytes",
                    {{"weights", m.weights.value()},
                     {"gradients", m.gradients.value()},
                     {"optimizer", m.optimizer.value()},
                     {"activations", rank.peak_activation.value()},
                     {"workspace", m.workspace.value()},
                     {"p2p", m.transfer.value()},
                     {"context", m.context.value()},
                     {"peak", rank.peak_memory.value()}}}});
  }
  return out;
}

Json partition_json(const ExecutionPlan& plan) {
  Json out = Json::array();
  for (std::size_t s = 0; s < plan.partition.stages.size(); ++s) {
    const BlockRange range = plan.partition.stages[s];
    Json layers = Json::array();
    for (std::int32_t b = range.begin; b < range.end; ++b) {
      const PlanBlock& block = plan.blocks[static_cast<std::size_t>(b)];
      if (block.layer >= 0) layers.push_back(block.layer);
    }
    out.push_back({{"stage", s}, {"rank", plan.actions.rank_of_stage[s].value()}, {"layers", layers}});
  }
  return out;
}

Json search_json(const PartitionSearch& search) {
  Json moved = Json::array();
  for (const BoundaryMove& move : search.moved)
    moved.push_back({{"stage", move.stage.value()},
                     {"from_block", move.from},
                     {"to_block", move.to},
                     {"slowest_pair", {move.forward.value(), move.backward.value()}},
                     {"before_seconds", move.before.value()},
                     {"after_seconds", move.after.value()}});
  const PartitionResult& solved = search.solved;
  const bool found = !solved.best.empty();
  return {{"reason", name(solved.reason)},
          {"obstacle", solved.obstacle},
          {"slowest_pair_bound_seconds", found ? Json(solved.bound.value()) : Json()},
          {"slowest_pair_best_seconds", found ? Json(solved.best.front().value.slowest.value()) : Json()},
          {"slowest_pair_gap", solved.gap},
          {"slowest_pair_seconds", found ? Json(search.chosen_slowest.value()) : Json()},
          {"serial_slowest_pair_seconds", found ? Json(search.serial_slowest.value()) : Json()},
          {"serial_legal", search.serial_legal},
          {"serial_iteration_seconds", search.serial.iteration.value()},
          {"best_slowest_pair_iteration_seconds", search.proxy.iteration.value()},
          {"simulated", search.simulated},
          {"descents", search.descents},
          {"signatures", search.signatures},
          {"moved", moved}};
}

Json fillings_json(const PlanReport& report) {
  Json out = Json::array();
  for (const FillingCandidate& each : report.fillings)
    out.push_back({{"group", each.filling.group},
                   {"microbatches", each.filling.microbatches},
                   {"shadows", each.filling.shadows},
                   {"placement", each.placement},
                   {"iteration_seconds", each.iteration.value()},
                   {"peak_memory_bytes", each.peak_memory.value()},
                   {"usable", each.usable}});
  return out;
}

Json memory_json(const MemoryDecision& memory) {
  const auto list = [](const std::vector<MemoryMeans>& means) {
    Json out = Json::array();
    for (const MemoryMeans& each : means)
      out.push_back({{"layers", each.kind},
                     {"means", each.unit},
                     {"share", each.share},
                     {"saved_bytes", each.saved.value()},
                     {"seconds", each.time.value()}});
    return out;
  };
  return {{"peak_without_bytes", memory.without.value()},
          {"iteration_without_seconds",
           memory.iteration_without ? Json(memory.iteration_without->value()) : Json()},
          {"taken", list(memory.taken)},
          {"left", list(memory.left)}};
}

}  // namespace

std::string plan_json(const PlanReport& report, const Job& job) {
  const ModelParameters parameters = count_parameters(report.model);
  Json shares = Json::object();
  for (std::size_t s = 0; s < kProvenances; ++s)
    shares[std::string(name(static_cast<Provenance>(s)))] = {{"share", report.sources.share[s]},
                                                             {"values", report.sources.values[s]}};
  const Json out{{"model",
                  {{"name", report.model.name},
                   {"layers", report.model.layers()},
                   {"parameters", parameters.model.total()},
                   {"routed_parameters", parameters.model.routed},
                   {"active_parameters", parameters.model.active()}}},
                 {"device", job.cluster.gpu.name},
                 {"gpus", job.cluster.gpus},
                 {"schedule", report.plan.schedule},
                 {"usable", report.usable},
                 {"error", report.plan.predicted.error},
                 {"worst_error", report.sources.worst_error},
                 {"plan", figures_json(report.figures)},
                 {"baseline", figures_json(report.baseline)},
                 {"serial_balanced", report.serial ? figures_json(*report.serial) : Json()},
                 {"even", figures_json(report.even)},
                 {"partition_search", report.search ? search_json(*report.search) : Json()},
                 {"fillings", fillings_json(report)},
                 {"memory_decision", report.memory ? memory_json(*report.memory) : Json()},
                 {"partition", partition_json(report.plan)},
                 {"ranks", ranks_json(report.plan, report.simulated)},
                 {"cost_sources", shares},
                 {"notes", report.notes}};
  return to_text(out);
}

std::string audit_json(const ExecutionPlan& plan, const PlanAudit& audit) {
  const Json out{{"ok", true},
                 {"actions", audit.schedule.actions},
                 {"stages", plan.actions.stages()},
                 {"ranks", plan.actions.ranks.size()},
                 {"pairs", plan.pairs.size()},
                 {"peak_live_chunks", audit.schedule.peak_live},
                 {"iteration_seconds", audit.iteration.value()},
                 {"peak_memory_bytes", audit.peak_memory.value()},
                 {"peak_rank", audit.peak_rank},
                 {"stale", audit.stale}};
  return to_text(out);
}

std::string simulation_json(const ExecutionPlan& plan, const SimulateResult& result) {
  const Json out{{"model", plan.model},
                 {"device", plan.device},
                 {"schedule", plan.schedule},
                 {"plan", figures_json(figures("plan", plan, result))},
                 {"ranks", ranks_json(plan, result)}};
  return to_text(out);
}

}  // namespace tessera::train
