#include "inner_memory.h"

#include <algorithm>
#include <tuple>

#include "action_parts.h"

namespace tessera::train {
namespace {

// W_HEAD reads the gradient of the logits, which stands where the logits were: 2 of the 6 bytes a logit.
constexpr double kForWeight = 1.0 / 3;

// A head and an MTP block of one stage have heads of their own; the layer in the task's name tells them
// apart.
Bytes logits_of(const ExecutionPlan& plan, StageId stage, std::int32_t layer) {
  const BlockRange range = plan.partition.stages[stage.index()];
  for (std::int32_t b = range.begin; b < range.end; ++b) {
    const PlanBlock& block = plan.blocks[static_cast<std::size_t>(b)];
    const Bytes logits = plan.costs[static_cast<std::size_t>(block.cost)].memory.logits;
    if (block.layer == layer && logits > Bytes()) return logits;
  }
  return {};
}

// A forward's communications come one after another, so the buffers are needed from the first to the last:
// one half holds what is received, the other, from the end of the first dispatch, what the experts make of
// it.
void add_pair_buffers(const ExecutionPlan& plan, const Action& action, std::span<const TaskTiming> tasks,
                      std::vector<MemoryChange>& out) {
  const std::size_t rank = plan.actions.rank_of_stage[action.stage.index()].index();
  if (rank >= plan.memory.size()) return;
  const Bytes half = plan.memory[rank].pair_buffers / 2;
  const TaskTiming *first = nullptr, *last = nullptr;
  for (const TaskTiming& task : tasks) {
    if (!task.forward || task.stream != Resource::comm) continue;
    if (first == nullptr || task.start < first->start) first = &task;
    if (last == nullptr || task.end > last->end) last = &task;
  }
  if (first == nullptr || half == Bytes()) return;
  out.push_back({first->start, half});
  out.push_back({first->end, half});
  out.push_back({last->end, half * -2.0});
}

}  // namespace

std::vector<MemoryChange> inner_changes(const ExecutionPlan& plan, const Action& action,
                                        std::span<const TaskTiming> tasks) {
  const bool whole = backward_part(action) == ActionKind::full_backward;
  std::vector<MemoryChange> out;
  for (const TaskTiming& task : tasks) {
    if (task.name.kind != TaskKind::head) continue;
    const Bytes logits =
        logits_of(plan, task.forward ? action.stage : backward_stage(action), task.name.layer);
    // The stash of a W that is an action of its own is accounted for as such.
    const Bytes for_weight = whole ? logits * kForWeight : Bytes();
    if (task.name.pass == Pass::forward) out.push_back({task.start, logits});
    if (task.name.pass == Pass::backward) out.push_back({task.end, for_weight - logits});
    if (task.name.pass == Pass::weight && whole) out.push_back({task.end, Bytes() - for_weight});
  }
  if (action.kind == ActionKind::overlap) add_pair_buffers(plan, action, tasks, out);
  std::ranges::stable_sort(out, {}, [](const MemoryChange& c) { return std::tuple(c.time, c.by > Bytes()); });
  return out;
}

}  // namespace tessera::train
