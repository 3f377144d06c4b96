#include "tessera/train/simulate/audit.h"

#include <fmt/format.h>

#include <cmath>

#include "tessera/train/simulate/simulate.h"

namespace tessera::train {

namespace {

bool differs(double said, double found) {
  return std::abs(said - found) > 1e-9 * std::max(std::abs(said), std::abs(found));
}

void compare_pairs(const ExecutionPlan& plan, PlanAudit& audit) {
  for (const PairPlan& pair : plan.pairs) {
    const TaskGraph graph = pair_graph(plan.forward_graph(pair.forward), plan.backward_graph(pair.backward));
    const auto order = order_by_names(graph, pair.sequence);
    if (!order) continue;  // an overlap without its W, whose sequence names tasks of a full backward
    const Seconds found = run_order(graph, *order, plan.interference).makespan;
    if (differs(pair.makespan.value(), found.value()))
      audit.stale.push_back(fmt::format("The pair of forward {} and backward {} takes {:.3f} ms, not {:.3f}.",
                                        pair.forward.value(), pair.backward.value(), milliseconds(found),
                                        milliseconds(pair.makespan)));
  }
}

}  // namespace

Result<PlanAudit> audit_plan(const ExecutionPlan& plan) {
  PlanAudit audit;
  TESSERA_CHECK(check_plan(plan));
  TESSERA_TRY(audit.schedule, check_schedule(plan.actions));
  TESSERA_TRY(const SimulateResult result, simulate(plan));
  audit.iteration = result.iteration;
  for (std::size_t r = 0; r < result.ranks.size(); ++r) {
    if (result.ranks[r].peak_memory <= audit.peak_memory) continue;
    audit.peak_memory = result.ranks[r].peak_memory;
    audit.peak_rank = static_cast<std::int32_t>(r);
  }
  if (plan.memory_limit > Bytes(0) && audit.peak_memory > plan.memory_limit * kUsableMemory)
    return infeasible(
        fmt::format("rank {} needs {:.1f} GiB, and above {:.1f} of {:.1f} GiB the allocator retries",
                    audit.peak_rank, gibibytes(audit.peak_memory),
                    gibibytes(plan.memory_limit) * kUsableMemory, gibibytes(plan.memory_limit)),
        "Use more pipeline or expert ranks, smaller microbatches, or layout.recompute.");
  if (differs(plan.predicted.iteration.value(), result.iteration.value()))
    audit.stale.push_back(fmt::format("The step takes {:.6f} s, not the predicted {:.6f}.",
                                      result.iteration.value(), plan.predicted.iteration.value()));
  compare_pairs(plan, audit);
  return audit;
}

}  // namespace tessera::train
