#include "tessera/train/overlap/task_graph.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace tessera::train {
namespace {

// Appends a chunk's tasks. The backbone is a chain, so only its end has to be remembered, and the leaves that
// are due before one of its next tasks.
class ChunkBuilder {
 public:
  ChunkBuilder(std::size_t blocks, bool input_gradient, bool weight_gradient)
      : input_gradient_(input_gradient), weight_gradient_(weight_gradient) {
    graph_.tasks.reserve(blocks * 7);
  }

  void forward_block(const ChunkBlock& block) {
    chain(block, Pass::forward, TaskKind::embedding);
    chain(block, Pass::forward, TaskKind::attention);
    const std::int32_t release = chain_end_;
    chain(block, Pass::forward, TaskKind::dispatch);
    shared(block, Pass::forward, release);
    chain(block, Pass::forward, TaskKind::mlp);
    chain(block, Pass::forward, TaskKind::combine, Join::shared_expert);
    end_of_block();
    chain(block, Pass::forward, TaskKind::head);
  }

  // A weight gradient stands right after its input gradient, and recompute right before it, where a framework
  // that does not split them has them.
  void backward_block(const ChunkBlock& block) {
    chain(block, Pass::backward, TaskKind::head);
    weight(block, TaskKind::head, chain_end_);
    const std::int32_t release = chain_end_;
    chain(block, Pass::backward, TaskKind::combine);
    recompute(block, TaskKind::shared);
    shared(block, Pass::backward, release);
    weight(block, TaskKind::shared, beside_ >= 0 ? beside_ : chain_end_);
    if (block.cost->recomputed_whole) recompute(block, TaskKind::attention);
    recompute(block, TaskKind::mlp);
    chain(block, Pass::backward, TaskKind::mlp);
    weight(block, TaskKind::mlp, chain_end_);
    chain(block, Pass::backward, TaskKind::dispatch);
    if (!block.cost->recomputed_whole) recompute(block, TaskKind::attention);
    chain(block, Pass::backward, TaskKind::attention, Join::shared_expert);
    weight(block, TaskKind::attention, chain_end_);
    end_of_block();
    chain(block, Pass::backward, TaskKind::embedding);
    weight(block, TaskKind::embedding, chain_end_);
  }

  TaskGraph take() { return std::move(graph_); }

 private:
  enum class Join { none, shared_expert };

  void chain(const ChunkBlock& block, Pass pass, TaskKind kind, Join join = Join::none) {
    if (!input_gradient_ || !block.cost->task(pass, kind).exists) return;
    Task& task = add(block, pass, kind, chain_end_);
    if (!overdue_in_chain_) needs(task, overdue_);
    overdue_in_chain_ = true;
    needs(task, std::exchange(again_, -1));
    if (join == Join::shared_expert) needs(task, std::exchange(beside_, -1));
    chain_end_ = last();
    if (task.resource != Resource::comp) return;
    last_compute_ = chain_end_;
    overdue_ = -1;
  }
  void shared(const ChunkBlock& block, Pass pass, std::int32_t release) {
    if (!input_gradient_ || !block.cost->task(pass, TaskKind::shared).exists) return;
    Task& task = add(block, pass, TaskKind::shared, release);
    task.leaf = true;
    needs(task, overdue_);
    needs(task, again_);
    // A block that is nothing but a MoE has its router's weight gradient in W_MLP, and the normed input that
    // it reads may be R_SHARED's: there B_MLP waits for it too.
    if (block.cost->task(Pass::backward, TaskKind::attention).exists) again_ = -1;
    beside_ = last();
  }
  // What is added next needs it: its B, or more recompute of a layer that is computed again as a whole.
  void recompute(const ChunkBlock& block, TaskKind kind) {
    if (!input_gradient_ || !block.cost->task(Pass::recompute, kind).exists) return;
    Task& task = add(block, Pass::recompute, kind, last_compute_);
    task.leaf = true;
    needs(task, overdue_);
    needs(task, again_);
    again_ = last();
  }
  void weight(const ChunkBlock& block, TaskKind kind, std::int32_t release) {
    if (!weight_gradient_ || !block.cost->task(Pass::weight, kind).exists) return;
    Task& task = add(block, Pass::weight, kind, release);
    task.movable = task.leaf = true;
  }
  // A shared expert whose block has no task to join it is due before anything of the next one but weight
  // gradients.
  void end_of_block() {
    if (beside_ < 0) return;
    overdue_ = std::exchange(beside_, -1);
    overdue_in_chain_ = false;
  }

  Task& add(const ChunkBlock& block, Pass pass, TaskKind kind, std::int32_t release) {
    const TaskCost& cost = block.cost->task(pass, kind);
    Task& task = graph_.tasks.emplace_back(Task{.name = {pass, kind, block.layer},
                                                .resource = resource_of(kind),
                                                .duration = cost.duration.time,
                                                .compute_share = cost.compute_share,
                                                .host_share = cost.host_share()});
    needs(task, release);
    return task;
  }
  // With a leaf, the leaves that it needs itself.
  void needs(Task& task, std::int32_t before) {
    if (before < 0) return;
    task.after.emplace_back(before);
    const Task& needed = graph_.tasks[static_cast<std::size_t>(before)];
    if (!needed.leaf) return;
    for (const TaskId further : needed.after)
      if (graph_.tasks[further.index()].leaf && std::ranges::find(task.after, further) == task.after.end())
        task.after.push_back(further);
  }
  [[nodiscard]] std::int32_t last() const noexcept {
    return static_cast<std::int32_t>(graph_.tasks.size()) - 1;
  }

  bool input_gradient_;  // also: the forward tasks
  bool weight_gradient_;
  TaskGraph graph_;
  std::int32_t chain_end_ = -1;
  std::int32_t last_compute_ = -1;  // of the chain
  std::int32_t beside_ = -1;        // the block's shared expert, until something joins it
  std::int32_t again_ = -1;         // recompute, until its B waits for it
  std::int32_t overdue_ = -1;       // the shared expert of a block before, until the chain computes again
  bool overdue_in_chain_ = false;   // the chain waits for it already
};

}  // namespace

Seconds TaskGraph::load(Resource resource) const noexcept {
  Seconds sum;
  for (const Task& task : tasks)
    if (task.resource == resource) sum += task.duration;
  return sum;
}

TaskGraph forward_chunk(std::span<const ChunkBlock> blocks) {
  ChunkBuilder builder(blocks.size(), true, false);
  for (const ChunkBlock& block : blocks) builder.forward_block(block);
  TaskGraph graph = builder.take();
  graph.forward_tasks = static_cast<std::int32_t>(graph.tasks.size());
  return graph;
}

TaskGraph backward_chunk(std::span<const ChunkBlock> blocks, Backward part) {
  ChunkBuilder builder(blocks.size(), part != Backward::weight_gradient, part != Backward::input_gradient);
  for (const ChunkBlock& block : blocks | std::views::reverse) builder.backward_block(block);
  return builder.take();
}

TaskGraph pair_graph(const TaskGraph& forward, const TaskGraph& backward) {
  TaskGraph pair;
  pair.tasks.reserve(forward.tasks.size() + backward.tasks.size());
  pair.tasks = forward.tasks;
  pair.forward_tasks = static_cast<std::int32_t>(forward.tasks.size());
  for (const Task& task : backward.tasks) {
    Task& copy = pair.tasks.emplace_back(task);
    for (TaskId& before : copy.after) before = TaskId(before.value() + pair.forward_tasks);
  }
  return pair;
}

}  // namespace tessera::train
