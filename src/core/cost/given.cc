// Durations by hand: {GE: {F_ATTN: 1.2, B_ATTN: 2.4}, head: {F_HEAD: 3}}, in milliseconds.

#include <fmt/format.h>

#include <algorithm>

#include "tessera/core/base/text.h"
#include "tessera/core/cost/block_cost.h"

namespace tessera {
namespace {

std::vector<std::string> tasks_of(const BlockCost& block) {
  std::vector<std::string> out;
  for (std::size_t pass = 0; pass < kPasses; ++pass)
    for (std::size_t kind = 0; kind < kTaskKinds; ++kind)
      if (block.tasks[pass][kind].exists)
        out.push_back(task_name(static_cast<Pass>(pass), static_cast<TaskKind>(kind), -1));
  return out;
}

Status apply_task(Cursor value, std::string_view key, BlockCost& block) {
  const auto name = parse_task_name(key);
  if (!name || name->layer >= 0 || !block.task(name->pass, name->kind).exists)
    return value.error(fmt::format("{} has no task of this name", block.name),
                       fmt::format("Its tasks are {}.", join_words(tasks_of(block))));
  constexpr double kLongest = 1e7;
  TESSERA_TRY(const double duration, value.number(0, kLongest));
  TaskCost& task = block.task(name->pass, name->kind);
  // The time by hand is the GPU's: the priced host time is gone, and the shares of the rest stay.
  if (const double gpu = 1 - task.host_share(); gpu > 0)
    task.compute_share = std::min(1.0, task.compute_share / gpu);
  task.duration = Estimate(Seconds(duration * 1e-3), Provenance::given, 0);
  return {};
}

}  // namespace

Status apply_given(Cursor section, ModelCost& cost) {
  if (!section.is_map())
    return section.error(
        fmt::format("expected a map from block kinds to durations, found {}", describe(section.kind())));
  for (std::size_t i = 0; i < section.size(); ++i) {
    const Cursor entry = section.item(i);
    const auto block = std::ranges::find(cost.kinds, section.key(i), &BlockCost::name);
    if (block == cost.kinds.end()) {
      std::vector<std::string> names;
      for (const BlockCost& kind : cost.kinds) names.push_back(kind.name);
      return entry.error("the model has no block of this kind",
                         fmt::format("Its kinds are {}.", join_words(names)));
    }
    if (!entry.is_map())
      return entry.error(
          fmt::format("expected a map from task names to milliseconds, found {}", describe(entry.kind())),
          fmt::format("Tasks of {} are {}.", block->name, join_words(tasks_of(*block))));
    for (std::size_t j = 0; j < entry.size(); ++j)
      TESSERA_CHECK(apply_task(entry.item(j), entry.key(j), *block));
  }
  return {};
}

}  // namespace tessera
