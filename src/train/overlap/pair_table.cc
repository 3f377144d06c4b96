#include "tessera/train/overlap/pair_table.h"

#include <algorithm>
#include <utility>

#include "tessera/core/base/parallel.h"

namespace tessera::train {
namespace {

std::vector<ChunkBlock> blocks_of(std::span<const BlockCost> kinds, std::span<const std::int32_t> chunk) {
  std::vector<ChunkBlock> blocks;
  blocks.reserve(chunk.size());
  for (std::size_t i = 0; i < chunk.size(); ++i)
    blocks.push_back({&kinds[static_cast<std::size_t>(chunk[i])], static_cast<std::int32_t>(i)});
  return blocks;
}

bool is_head(const Task& task, Pass pass) noexcept {
  return task.name.kind == TaskKind::head && task.name.pass == pass;
}

// Logits are the largest thing a stage keeps, and the gradient of the old ones is held until its W has run.
// Of equally long orders, one in which every W_HEAD runs before the first F_HEAD makes room for the new ones.
void free_logits_first(const TaskGraph& graph, const Interference& interference, PairResult& result) {
  const auto task = [&](TaskId id) -> const Task& { return graph.tasks[id.index()]; };
  std::vector<TaskId> order = result.schedule.order;
  const auto forward =
      std::ranges::find_if(order, [&](TaskId id) { return is_head(task(id), Pass::forward); });
  const auto moved =
      std::stable_partition(forward, order.end(), [&](TaskId id) { return is_head(task(id), Pass::weight); });
  if (moved == forward) return;
  const bool ready = std::all_of(forward, moved, [&](TaskId id) {
    return std::ranges::all_of(
        task(id).after, [&](TaskId needed) { return std::find(moved, order.end(), needed) == order.end(); });
  });
  if (!ready) return;
  PairSchedule nominal = run_order(graph, order);
  const Seconds slowed = run_order(graph, order, interference).makespan;
  if (nominal.makespan > result.schedule.makespan || slowed > result.slowed) return;
  nominal.left = result.schedule.left;
  result.schedule = std::move(nominal);
  result.slowed = slowed;
}

}  // namespace

TaskGraph pair_graph(std::span<const BlockCost> kinds, const PairKey& key) {
  return pair_graph(forward_chunk(blocks_of(kinds, key.forward)),
                    backward_chunk(blocks_of(kinds, key.backward)));
}

PairTable::PairTable(std::span<const BlockCost> kinds, PairOptions options)
    : kinds_(kinds), options_(options) {}

void PairTable::solve(std::span<const PairKey> keys, unsigned threads) {
  std::vector<std::map<PairKey, PairResult>::iterator> open;
  for (const PairKey& key : keys)
    if (const auto [place, added] = results_.try_emplace(key); added) open.push_back(place);
  parallel_for(open.size(), threads, [&](std::size_t i) {
    const TaskGraph graph = pair_graph(kinds_, open[i]->first);
    open[i]->second = schedule_pair(graph, options_);
    free_logits_first(graph, options_.interference, open[i]->second);
  });
}

const PairResult& PairTable::at(const PairKey& key) const {
  return results_.at(key);
}

}  // namespace tessera::train
