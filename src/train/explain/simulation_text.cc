#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "table.h"
#include "tessera/core/base/text.h"
#include "tessera/train/explain/explain.h"

namespace tessera::train {

namespace {

std::string ms(Seconds time) {
  return fmt::format("{:.2f}", milliseconds(time));
}

std::string rank_table(const SimulateResult& result) {
  Table table;
  table.row({"rank", "compute ms", "EP ms", "exposed EP ms", "warm-up idle ms", "cool-down idle ms",
             "imbalance idle ms", "step end ms", "live chunks", "peak GiB"});
  for (std::size_t r = 0; r < result.ranks.size(); ++r) {
    const RankResult& rank = result.ranks[r];
    table.row({fmt::format("{}", r), ms(rank.comp_busy), ms(rank.comm_busy), ms(rank.exposed_comm),
               ms(rank.warmup_idle), ms(rank.cooldown_idle), ms(rank.imbalance_idle), ms(rank.step_end),
               fmt::format("{}", rank.peak_live), fmt::format("{:.1f}", gibibytes(rank.peak_memory))});
  }
  return table.text("  ");
}

std::string slowest_sentence(const SimulateResult& result) {
  if (result.ranks.empty()) return {};
  const auto busiest = std::ranges::max_element(
      result.ranks, {}, [](const RankResult& r) { return r.comp_busy + r.exposed_comm; });
  const double step = result.iteration.value();
  return fmt::format(
      "Rank {} works longest: {:.1f} % of the step computing, {:.1f} % waiting for expert communication.\n",
      busiest - result.ranks.begin(), step > 0 ? 100 * busiest->comp_busy.value() / step : 0.0,
      step > 0 ? 100 * busiest->exposed_comm.value() / step : 0.0);
}

}  // namespace

std::string audit_text(const std::string& file, const ExecutionPlan& plan, const PlanAudit& audit) {
  std::string peaks;
  for (const std::int32_t peak : audit.schedule.peak_live)
    peaks += fmt::format("{}{}", peaks.empty() ? "" : ", ", peak);
  std::string out = fmt::format("{}: sound\n", file);
  out += fmt::format(
      "  {} actions on {} ranks: every stage and microbatch forward and backward once, no deadlock under "
      "eager sends\n",
      with_thousands(audit.schedule.actions), plan.actions.ranks.size());
  out += fmt::format("  {} overlapped pairs, each a legal order of its tasks\n", plan.pairs.size());
  out +=
      fmt::format("  live chunk activations at most {} (per rank); rank {} peaks at {:.1f} of {:.1f} GiB\n",
                  peaks, audit.peak_rank, gibibytes(audit.peak_memory), gibibytes(plan.memory_limit));
  for (const std::string& sentence : audit.stale) out += "  stale: " + sentence + "\n";
  return out;
}

namespace {

std::string microbatches_text(const ExecutionPlan& plan) {
  const std::int64_t shadows = std::ranges::count(plan.actions.shadow, true);
  return fmt::format("{} microbatches{}", plan.layout.microbatches,
                     shadows == 0 ? "" : fmt::format(" and {} shadows", shadows));
}

}  // namespace

std::string simulation_text(const ExecutionPlan& plan, const SimulateResult& result, const TextStyle&) {
  const PlanFigures f = figures("plan", plan, result);
  std::string out = fmt::format("{} on {}   PP {} × VP {}   {}   {}\n", plan.model, plan.device,
                                plan.layout.pp, plan.layout.vp, microbatches_text(plan), plan.schedule);
  out += fmt::format("  iteration {:.6f} s   lower bound {:.6f} s ({:.1f} % below)   pipeline {:.6f} s\n",
                     result.iteration.value(), result.lower_bound.value(),
                     result.iteration.value() > 0 ? 100 * (1 - result.lower_bound / result.iteration) : 0.0,
                     result.pipeline.value());
  if (plan.memory_limit > Bytes(0) && f.peak_memory > plan.memory_limit * kUsableMemory)
    out += fmt::format("  NOT USABLE: rank {} needs {:.1f} GiB of {:.1f}\n", f.peak_rank,
                       gibibytes(f.peak_memory), gibibytes(plan.memory_limit));
  out += fmt::format("  tokens/s/GPU {}   MFU {:.1f} %\n",
                     with_thousands(std::llround(f.tokens_per_second_per_gpu)), 100 * f.mfu);
  out += fmt::format(
      "  bubble {:.1f} % (warm-up and cool-down {:.1f}, imbalance {:.1f})   exposed EP {:.1f} % (worst rank "
      "{:.1f})   "
      "hidden EP {:.1f} %\n\n",
      100 * (f.warmup_bubble + f.imbalance_bubble), 100 * f.warmup_bubble, 100 * f.imbalance_bubble,
      100 * f.exposed_ep, 100 * f.exposed_ep_worst, 100 * f.hidden_ep);
  return out + rank_table(result) + "\n" + slowest_sentence(result);
}

}  // namespace tessera::train
