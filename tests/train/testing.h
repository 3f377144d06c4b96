// What the tests of the training rooms share: hand-made costs and plans, seeded random ones, and round
// counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/train/execution_plan/execution_plan.h"
#include "tessera/train/overlap/pair_schedule.h"
#include "tessera/train/schedule/schedule_template.h"
#include "train/random.h"

namespace tessera::train::testing {

inline void set(BlockCost& cost, Pass pass, TaskKind kind, double seconds, double share = 1.0) {
  TaskCost& task = cost.task(pass, kind);
  task.exists = true;
  task.duration = Estimate(Seconds(seconds), Provenance::given, 0);
  task.compute_share = share;
}

/// A block that computes F, B and W in one task each; W < 0 = B holds it.
inline BlockCost plain_block(double f, double b, double w = -1) {
  BlockCost cost{.name = "plain"};
  set(cost, Pass::forward, TaskKind::attention, f);
  set(cost, Pass::backward, TaskKind::attention, b);
  if (w >= 0) set(cost, Pass::weight, TaskKind::attention, w);
  return cost;
}

/// A random layer: mixer or none; dense, MoE (with dispatch and combine) or no feed-forward; sometimes a
/// shared expert beside the dispatch, and recompute. `scale` 0 gives durations that tie often (small
/// integers).
inline BlockCost random_layer(Random& random, double scale = 1.0) {
  const auto duration = [&] {
    if (scale == 0) return static_cast<double>(random.between(0, 3));
    if (random.chance(0.02)) return 0.0;
    return scale * (0.05 + random.unit()) * (random.chance(0.1) ? 4.0 : 1.0);
  };
  BlockCost cost{.name = "layer"};
  const auto three = [&](TaskKind kind) {
    const double share = random.unit();
    set(cost, Pass::forward, kind, duration(), share);
    set(cost, Pass::backward, kind, duration(), share);
    set(cost, Pass::weight, kind, duration(), share);
  };
  const int shape = random.below(10);
  if (shape != 0) three(TaskKind::attention);
  if (shape != 1) three(TaskKind::mlp);
  if (shape >= 3) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      set(cost, pass, TaskKind::dispatch, duration());
      set(cost, pass, TaskKind::combine, duration());
    }
    if (random.chance(0.3)) three(TaskKind::shared);
  }
  if (random.chance(0.25)) {
    for (const TaskKind kind : {TaskKind::attention, TaskKind::mlp, TaskKind::shared})
      if (cost.task(Pass::backward, kind).exists && random.chance(0.6))
        set(cost, Pass::recompute, kind, duration(), random.unit());
    cost.recomputed_whole = shape < 3 && random.chance(0.5);
  }
  cost.memory.activation = Bytes(random.between(1, 9));
  cost.memory.weight_stash = Bytes(random.between(0, 4));
  cost.memory.gradients = Bytes(random.between(0, 9));
  return cost;
}
inline BlockCost random_embedding(Random& random, double scale = 1.0) {
  BlockCost cost{.name = "embedding"};
  set(cost, Pass::forward, TaskKind::embedding, scale * random.unit());
  set(cost, Pass::weight, TaskKind::embedding, scale * random.unit());
  cost.memory.activation = Bytes(1);
  return cost;
}
inline BlockCost random_head(Random& random, double scale = 1.0) {
  BlockCost cost{.name = "head"};
  set(cost, Pass::forward, TaskKind::head, scale * random.unit());
  set(cost, Pass::backward, TaskKind::head, scale * random.unit());
  set(cost, Pass::weight, TaskKind::head, scale * random.unit());
  cost.memory.activation = Bytes(2);
  return cost;
}
/// A layer with its own embedding and head, as multi-token prediction has.
inline BlockCost random_mtp(Random& random, double scale = 1.0) {
  BlockCost cost = random_layer(random, scale);
  cost.name = "mtp";
  set(cost, Pass::forward, TaskKind::head, scale * random.unit());
  set(cost, Pass::backward, TaskKind::head, scale * random.unit());
  set(cost, Pass::weight, TaskKind::head, scale * random.unit());
  return cost;
}

/// Blocks with their costs, as chunks see them.
struct Chunk {
  std::vector<BlockCost> costs;
  std::vector<std::int32_t> layers;
  [[nodiscard]] std::vector<ChunkBlock> blocks() const {
    std::vector<ChunkBlock> out;
    for (std::size_t i = 0; i < costs.size(); ++i) out.push_back({&costs[i], layers[i]});
    return out;
  }
};
inline Chunk random_chunk(Random& random, int layers, int first_layer, double scale = 1.0) {
  Chunk chunk;
  const auto add = [&](BlockCost cost, std::int32_t layer) {
    chunk.costs.push_back(std::move(cost));
    chunk.layers.push_back(layer);
  };
  if (random.chance(0.1)) add(random_embedding(random, scale), -1);
  for (int i = 0; i < layers; ++i) add(random_layer(random, scale), first_layer + i);
  if (random.chance(0.1)) add(random_mtp(random, scale), first_layer + layers);
  if (random.chance(0.1)) add(random_head(random, scale), -1);
  return chunk;
}
inline TaskGraph random_pair(Random& random, int forward_layers, int backward_layers, double scale = 1.0) {
  const Chunk f = random_chunk(random, forward_layers, 0, scale),
              b = random_chunk(random, backward_layers, 100, scale);
  return pair_graph(forward_chunk(f.blocks()), backward_chunk(b.blocks()));
}

/// A plan of `stage_blocks[s]` per stage and these actions. Every overlapped pair gets the order that
/// `sequence(graph)` gives. Layers are numbered through; block kinds are all `layer`.
template <class Sequence>
ExecutionPlan make_plan(ActionList actions, const std::vector<std::vector<BlockCost>>& stage_blocks,
                        Sequence&& sequence) {
  ExecutionPlan plan;
  plan.model = "hand-made";
  plan.layout.pp = static_cast<std::int64_t>(actions.ranks.size());
  plan.layout.vp = static_cast<std::int64_t>(actions.stages()) / plan.layout.pp;
  plan.layout.microbatches = actions.microbatches;
  plan.schedule = "hand-made";
  for (const auto& blocks : stage_blocks) {
    const auto begin = static_cast<std::int32_t>(plan.blocks.size());
    for (const BlockCost& cost : blocks) {
      const auto index = static_cast<std::int32_t>(plan.costs.size());
      plan.blocks.push_back({.kind = BlockKind::layer, .layer = index, .cost = index});
      plan.costs.push_back(cost);
    }
    plan.partition.stages.push_back({begin, static_cast<std::int32_t>(plan.blocks.size())});
  }
  plan.actions = std::move(actions);
  plan.step.resize(plan.actions.ranks.size());
  plan.memory.resize(plan.actions.ranks.size());
  for (const auto& rank : plan.actions.ranks)
    for (const Action& action : rank) {
      if (action.kind != ActionKind::overlap || plan.pair(action.stage, action.backward_stage) != nullptr)
        continue;
      const TaskGraph graph =
          pair_graph(plan.forward_graph(action.stage), plan.backward_graph(action.backward_stage));
      const std::vector<TaskId> order = sequence(graph);
      plan.pairs.push_back(
          {.forward = action.stage, .backward = action.backward_stage, .sequence = names_of(graph, order)});
    }
  return plan;
}
inline std::vector<TaskId> defer_sequence(const TaskGraph& graph) {
  return schedule_pair(graph, {.method = PairMethod::defer}).schedule.order;
}
inline ExecutionPlan make_plan(ActionList actions, const std::vector<std::vector<BlockCost>>& stage_blocks) {
  return make_plan(std::move(actions), stage_blocks, defer_sequence);
}
/// Every stage one plain block with these times.
inline ExecutionPlan plain_plan(ActionList actions, double f, double b) {
  const std::vector<std::vector<BlockCost>> blocks(actions.stages(), {plain_block(f, b)});
  return make_plan(std::move(actions), blocks);
}

}  // namespace tessera::train::testing
