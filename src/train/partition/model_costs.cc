#include "tessera/train/partition/model_costs.h"

#include <algorithm>
#include <utility>

#include "tessera/train/overlap/pair_bounds.h"

namespace tessera::train {
namespace {

std::vector<BlockCost> at_speed(std::vector<BlockCost> kinds, double speed) {
  if (speed == 1.0) return kinds;
  for (BlockCost& kind : kinds)
    for (auto& pass : kind.tasks)
      for (std::size_t t = 0; t < pass.size(); ++t)
        if (resource_of(static_cast<TaskKind>(t)) == Resource::comp) pass[t].duration *= 1 / speed;
  return kinds;
}

// The chain of one block: its tasks without leaves.
Seconds chain(const TaskGraph& graph) {
  Seconds sum;
  for (const Task& task : graph.tasks)
    if (!task.leaf) sum += task.duration;
  return sum;
}

// From sums over the blocks before each.
template <class Quantity>
Quantity of(const std::vector<Quantity>& sum, BlockRange blocks) noexcept {
  return sum[static_cast<std::size_t>(blocks.end)] - sum[static_cast<std::size_t>(blocks.begin)];
}

}  // namespace

ModelStageCosts::ModelStageCosts(const CostInput& input, const ModelCost& cost, ModelCostOptions options)
    : input_(input), cost_(cost), options_(std::move(options)) {
  speeds_ = options_.stage_speed;
  if (speeds_.empty()) speeds_ = {1.0};
  std::ranges::sort(speeds_);
  const auto [first, last] = std::ranges::unique(speeds_);
  speeds_.erase(first, last);

  const std::size_t blocks = cost.kind_of_block.size();
  for (const double speed : speeds_) {
    Sums& sums = sums_.emplace_back(Sums{.kinds = at_speed(cost.kinds, speed)});
    std::vector<TaskGraph> forward, backward;
    for (const BlockCost& kind : sums.kinds) {
      const ChunkBlock block{&kind, 0};
      forward.push_back(forward_chunk({&block, 1}));
      backward.push_back(backward_chunk({&block, 1}));
    }
    for (auto* sum : {&sums.forward_comp, &sums.forward_comm, &sums.backward_comp, &sums.backward_comm,
                      &sums.forward_chain, &sums.backward_chain, &sums.forward, &sums.backward})
      sum->resize(blocks + 1);
    for (std::size_t b = 0; b < blocks; ++b) {
      const auto kind = static_cast<std::size_t>(cost.kind_of_block[b]);
      const TaskGraph &f = forward[kind], &g = backward[kind];
      sums.forward_comp[b + 1] = sums.forward_comp[b] + f.load(Resource::comp);
      sums.forward_comm[b + 1] = sums.forward_comm[b] + f.load(Resource::comm);
      sums.backward_comp[b + 1] = sums.backward_comp[b] + g.load(Resource::comp);
      sums.backward_comm[b + 1] = sums.backward_comm[b] + g.load(Resource::comm);
      sums.forward_chain[b + 1] = sums.forward_chain[b] + chain(f);
      sums.backward_chain[b + 1] = sums.backward_chain[b] + chain(g);
      sums.forward[b + 1] = sums.forward[b] + f.load(Resource::comp) + f.load(Resource::comm);
      sums.backward[b + 1] = sums.backward[b] + g.load(Resource::comp) + g.load(Resource::comm);
    }
  }
  // The tables keep the addresses of the kinds.
  for (std::size_t s = 0; s < sums_.size(); ++s) {
    if (speeds_[s] == 1.0 && options_.nominal != nullptr) {
      tables_.push_back(options_.nominal);
      continue;
    }
    tables_.push_back(&own_.emplace_back(sums_[s].kinds, PairOptions{.interference = options_.interference}));
  }
  activation_.resize(blocks + 1);
  copy_.resize(blocks + 1);
  for (std::size_t b = 0; b < blocks; ++b) {
    const BlockCost& block = cost.of(BlockId(static_cast<std::int64_t>(b)));
    activation_[b + 1] = activation_[b] + block.memory.activation;
    copy_[b + 1] = copy_[b] + block.copy_time;
  }
}

std::size_t ModelStageCosts::speed_of(StageId stage) const noexcept {
  if (options_.stage_speed.empty()) return 0;
  return static_cast<std::size_t>(std::ranges::lower_bound(speeds_, options_.stage_speed[stage.index()]) -
                                  speeds_.begin());
}

PairKey ModelStageCosts::key(const PairQuery& query) const {
  const auto kinds = [&](BlockRange blocks) {
    return std::vector<std::int32_t>(cost_.kind_of_block.begin() + blocks.begin,
                                     cost_.kind_of_block.begin() + blocks.end);
  };
  return {kinds(query.forward_blocks), kinds(query.backward_blocks)};
}

Seconds ModelStageCosts::copies(const PairQuery& query) const noexcept {
  return std::max(of(copy_, query.forward_blocks), of(copy_, query.backward_blocks));
}

Seconds ModelStageCosts::bound(const PairQuery& query) const {
  const Sums& sums = sums_[speed_of(query.forward)];
  const BlockRange f = query.forward_blocks, b = query.backward_blocks;
  const Seconds bound = std::max({of(sums.forward_comp, f) + of(sums.backward_comp, b),
                                  of(sums.forward_comm, f) + of(sums.backward_comm, b),
                                  of(sums.forward_chain, f), of(sums.backward_chain, b), copies(query)});
  // Differences of sums may be off in the last bits; a bound must not be.
  return bound * (1 - 1e-12);
}

std::vector<Seconds> ModelStageCosts::times(std::span<const PairQuery> queries) {
  std::vector<std::vector<PairKey>> keys(tables_.size());
  for (const PairQuery& query : queries) keys[speed_of(query.forward)].push_back(key(query));
  for (std::size_t s = 0; s < tables_.size(); ++s) tables_[s]->solve(keys[s], options_.threads);
  std::vector<Seconds> out;
  std::vector<std::size_t> next(tables_.size(), 0);
  out.reserve(queries.size());
  for (const PairQuery& query : queries) {
    const std::size_t speed = speed_of(query.forward);
    out.push_back(std::max(tables_[speed]->at(keys[speed][next[speed]++]).slowed, copies(query)));
  }
  return out;
}

Seconds ModelStageCosts::alone(StageId stage, BlockRange blocks) const {
  const Sums& sums = sums_[speed_of(stage)];
  return std::max(of(sums.forward, blocks), of(copy_, blocks)) +
         std::max(of(sums.backward, blocks), of(copy_, blocks));
}

Bytes ModelStageCosts::held(StageId, BlockRange blocks) const {
  std::vector<const BlockMemory*> memory;
  for (std::int32_t b = blocks.begin; b < blocks.end; ++b) memory.push_back(&cost_.of(BlockId(b)).memory);
  const StaticMemory held = price_static_memory(input_, memory, false);
  return held.weights + held.gradients + held.optimizer;
}

Bytes ModelStageCosts::activation(StageId, BlockRange blocks) const {
  return of(activation_, blocks);
}

Bytes ModelStageCosts::workspace(BlockRange blocks, bool pairs) const {
  std::vector<const BlockMemory*> memory;
  for (std::int32_t b = blocks.begin; b < blocks.end; ++b) memory.push_back(&cost_.of(BlockId(b)).memory);
  return price_static_memory(input_, memory, pairs).workspace;
}

std::size_t ModelStageCosts::signatures() const noexcept {
  std::size_t sum = 0;
  for (const PairTable* table : tables_) sum += table->size();
  return sum;
}

}  // namespace tessera::train
