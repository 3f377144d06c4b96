#include <fmt/format.h>

#include <iterator>

#include "tessera/core/base/text.h"
#include "tessera/core/report/trace.h"
#include "tessera/train/execution_plan/plan_file.h"

namespace tessera::train {

namespace {

std::string quoted(std::string_view text) {
  return fmt::format("\"{}\"", json_escape(text));
}
std::string number(Seconds time) {
  return exact(time.value());
}
std::string number(Bytes size) {
  return exact(size.value());
}

class Writer {
 public:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

void write_layout(Writer& out, const Layout& l) {
  out.line("layout:");
  out.line(
      "  {{tp: {}, pp: {}, vp: {}, ep: {}, etp: {}, cp: {}, dp: {}, microbatches: {}, microbatch_size: {}, "
      "sequence: {},",
      l.tp, l.pp, l.vp, l.ep, l.etp, l.cp, l.dp, l.microbatches, l.microbatch_size, l.sequence);
  std::string units;
  for (const RecomputeUnit& unit : kRecomputeUnits)
    units += fmt::format("{}{}: {}", units.empty() ? "" : ", ", unit.name, l.recompute.*unit.member);
  if (l.layer_memory.empty()) {
    out.line("   dtype: {}, recompute: {{{}}}}}", name(l.dtype), units);
    return;
  }
  out.line("   dtype: {}, recompute: {{{}}},", name(l.dtype), units);
  out.line("   layer_memory: {{");
  for (const LayerMemory& entry : l.layer_memory) {
    std::string own;
    for (const RecomputeUnit& unit : kRecomputeUnits)
      if (entry.recompute.*unit.member) own += fmt::format("{}{}", own.empty() ? "" : ", ", unit.name);
    out.line("     {}: {{recompute: [{}], offload: {}}},", quoted(entry.kind), own, exact(entry.offload));
  }
  out.line("   }}}}");
}

void write_cost(Writer& out, const BlockCost& cost) {
  out.line("  - name: {}", quoted(cost.name));
  bool any = false;
  for (std::size_t p = 0; p < kPasses; ++p) {
    for (std::size_t k = 0; k < kTaskKinds; ++k) {
      const TaskCost& task = cost.tasks[p][k];
      if (!task.exists) continue;
      if (!any) out.line("    tasks:");
      any = true;
      std::string sources;
      for (std::size_t s = 0; s < kProvenances; ++s) {
        const Seconds time = task.duration.by_source[s];
        if (time.value() == 0) continue;
        sources +=
            fmt::format("{}{}: [{}, {}]", sources.empty() ? "" : ", ", name(static_cast<Provenance>(s)),
                        number(time), number(task.duration.error_by_source[s]));
      }
      out.line("      {}: {{seconds: {}, error: {}, compute_share: {}, bytes: {}, sources: {{{}}}}}",
               task_name(static_cast<Pass>(p), static_cast<TaskKind>(k), -1), number(task.duration.time),
               number(task.duration.error), exact(task.compute_share), number(task.communicated), sources);
    }
  }
  if (!any) out.line("    tasks: {{}}");
  const BlockMemory& m = cost.memory;
  out.line(
      "    memory: {{dense_parameters: {}, expert_parameters: {}, embedding_parameters: {}, head_parameters: "
      "{},",
      m.dense_parameters, m.expert_parameters, m.embedding_parameters, m.head_parameters);
  out.line("             weights: {}, gradients: {}, optimizer: {}, activation: {}, weight_stash: {},",
           number(m.weights), number(m.gradients), number(m.optimizer), number(m.activation),
           number(m.weight_stash));
  out.line("             logits: {}, workspace: {}, dispatch_buffers: {}}}", number(m.logits),
           number(m.workspace), number(m.dispatch_buffers));
  if (cost.copy_time > Seconds(0))
    out.line("    offload: {{bytes: {}, seconds: {}}}", number(m.offloaded), number(cost.copy_time));
}

}  // namespace

std::string write_plan(const ExecutionPlan& plan) {
  Writer out;
  out.line("tessera_plan: {}", plan.version);
  out.line("model: {}", quoted(plan.model));
  out.line("device: {}", quoted(plan.device));
  out.line("fingerprints: {{model: {}, cluster: {}, layout: {}, costs: {}}}", quoted(plan.fingerprints[0]),
           quoted(plan.fingerprints[1]), quoted(plan.fingerprints[2]), quoted(plan.fingerprints[3]));
  write_layout(out, plan.layout);
  out.line("schedule: {{template: {}, group: {}}}", quoted(plan.schedule), plan.group);
  out.line("blocks:");
  constexpr std::array<std::string_view, 4> kinds{"embedding", "layer", "mtp", "head"};
  for (const PlanBlock& block : plan.blocks)
    out.line("  - {{kind: {}, layer: {}, cost: {}}}", kinds[static_cast<std::size_t>(block.kind)],
             block.layer, block.cost);
  out.line("costs:");
  for (const BlockCost& cost : plan.costs) write_cost(out, cost);
  out.line("partition:");
  for (const BlockRange& range : plan.partition.stages) out.line("  - [{}, {}]", range.begin, range.end);
  out.line("actions:");
  out.line("  microbatches: {}", plan.actions.microbatches);
  if (plan.actions.pipelines != 1) out.line("  pipelines: {}", plan.actions.pipelines);
  if (!plan.actions.shadow.empty()) {
    std::string shadows;
    for (std::size_t i = 0; i < plan.actions.shadow.size(); ++i)
      if (plan.actions.shadow[i]) shadows += fmt::format("{}{}", shadows.empty() ? "" : ", ", i);
    out.line("  shadows: [{}]", shadows);
  }
  std::string ranks;
  for (const RankId rank : plan.actions.rank_of_stage)
    ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank.value());
  out.line("  rank_of_stage: [{}]", ranks);
  out.line("  ranks:");
  for (const auto& actions : plan.actions.ranks) {
    std::string row;
    for (const Action& action : actions) row += (row.empty() ? "" : " ") + text(action);
    out.line("    - \"{}\"", row);
  }
  out.line("{}", plan.pairs.empty() ? "pairs: []" : "pairs:");
  for (const PairPlan& pair : plan.pairs) {
    const std::string measured = pair.measured
                                     ? fmt::format(" measured: [{}, {}],", number(pair.measured->makespan),
                                                   exact(pair.measured->error))
                                     : "";
    out.line("  - {{forward: {}, backward: {}, makespan: {}, nominal: {}, bound: {},{}", pair.forward.value(),
             pair.backward.value(), number(pair.makespan), number(pair.nominal), number(pair.bound),
             measured);
    std::string sequence;
    for (const auto& task : pair.sequence) sequence += (sequence.empty() ? "" : ", ") + quoted(task);
    out.line("     sequence: [{}]}}", sequence);
  }
  out.line("interference: {{compute_bound_rate: {}, memory_bound_rate: {}}}",
           exact(plan.interference.compute_bound_rate), exact(plan.interference.memory_bound_rate));
  out.line("transfer: {{latency: {}, seconds: {}}}", number(plan.transfer_latency),
           number(plan.transfer_time));
  std::string speed;
  for (const double s : plan.rank_speed) speed += (speed.empty() ? "" : ", ") + exact(s);
  out.line("rank_speed: [{}]", speed);
  out.line("step:");
  for (const RankStep& step : plan.step)
    out.line("  - {{reduce_scatter: {}, all_gather: {}, optimizer: {}}}", number(step.reduce_scatter),
             number(step.all_gather), number(step.optimizer));
  out.line("exposed_reduction: {}", exact(plan.exposed_reduction));
  out.line("memory:");
  out.line("  limit: {}", number(plan.memory_limit));
  out.line("  ranks:");
  for (const RankMemory& m : plan.memory)
    out.line(
        "    - {{weights: {}, gradients: {}, optimizer: {}, workspace: {}, transfer: {}, context: {}, "
        "pair_buffers: {}}}",
        number(m.weights), number(m.gradients), number(m.optimizer), number(m.workspace), number(m.transfer),
        number(m.context), number(m.pair_buffers));
  out.line("flops_per_token: {}", exact(plan.flops_per_token));
  out.line("peak_flops: {}", exact(plan.peak.value()));
  const Prediction& p = plan.predicted;
  out.line(
      "predicted: {{iteration: {}, error: {}, tokens_per_second_per_gpu: {}, mfu: {}, lower_bound: {}, "
      "peak_memory: {}, "
      "peak_rank: {}}}",
      number(p.iteration), exact(p.error), exact(p.tokens_per_second_per_gpu), exact(p.mfu),
      number(p.lower_bound), number(p.peak_memory), p.peak_rank);
  return out.take();
}

}  // namespace tessera::train
