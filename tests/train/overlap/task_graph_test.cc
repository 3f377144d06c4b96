#include "tessera/train/overlap/task_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/train/overlap/pair_schedule.h"
#include "train/testing.h"

namespace tessera::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::set;

// "F_MLP:L3 < F_DISP:L3": a task and what it waits for.
std::vector<std::string> edges(const TaskGraph& graph) {
  std::vector<std::string> out;
  for (const Task& task : graph.tasks) {
    std::string line = task_name(task.name.pass, task.name.kind, task.name.layer) + " <";
    for (const TaskId before : task.after) {
      const TaskName& name = graph.tasks[before.index()].name;
      line += " " + task_name(name.pass, name.kind, name.layer);
    }
    out.push_back(line);
  }
  return out;
}

BlockCost moe_layer(bool shared = false, bool mixer = true) {
  BlockCost cost;
  for (const Pass pass : {Pass::forward, Pass::backward, Pass::weight}) {
    if (mixer) set(cost, pass, TaskKind::attention, 1);
    set(cost, pass, TaskKind::mlp, 2);
    if (shared) set(cost, pass, TaskKind::shared, 0.5);
    if (pass == Pass::weight) continue;
    set(cost, pass, TaskKind::dispatch, 3);
    set(cost, pass, TaskKind::combine, 4);
  }
  return cost;
}
BlockCost dense_layer() {
  BlockCost cost;
  for (const Pass pass : {Pass::forward, Pass::backward, Pass::weight}) {
    set(cost, pass, TaskKind::attention, 1);
    set(cost, pass, TaskKind::mlp, 2);
  }
  return cost;
}

TEST(TaskGraph, ChainsAMoeLayerAfterADenseOne) {
  const BlockCost dense = dense_layer(), moe = moe_layer();
  const std::vector<ChunkBlock> blocks{{&dense, 3}, {&moe, 4}};
  EXPECT_THAT(edges(forward_chunk(blocks)),
              ElementsAre("F_ATTN:L3 <", "F_MLP:L3 < F_ATTN:L3", "F_ATTN:L4 < F_MLP:L3",
                          "F_DISP:L4 < F_ATTN:L4", "F_MLP:L4 < F_DISP:L4", "F_COMB:L4 < F_MLP:L4"));
  const TaskGraph backward = backward_chunk(blocks);
  EXPECT_THAT(
      edges(backward),
      ElementsAre("B_COMB:L4 <", "B_MLP:L4 < B_COMB:L4", "W_MLP:L4 < B_MLP:L4", "B_DISP:L4 < B_MLP:L4",
                  "B_ATTN:L4 < B_DISP:L4", "W_ATTN:L4 < B_ATTN:L4", "B_MLP:L3 < B_ATTN:L4",
                  "W_MLP:L3 < B_MLP:L3", "B_ATTN:L3 < B_MLP:L3", "W_ATTN:L3 < B_ATTN:L3"));
  for (const Task& task : backward.tasks) {
    EXPECT_EQ(task.movable, task.name.pass == Pass::weight);
    EXPECT_EQ(task.resource, resource_of(task.name.kind));
  }
  EXPECT_EQ(backward.load(Resource::comp).value(), 12);
  EXPECT_EQ(backward.load(Resource::comm).value(), 7);
}

TEST(TaskGraph, RunsASharedExpertBesideTheDispatch) {
  const BlockCost moe = moe_layer(true);
  const std::vector<ChunkBlock> blocks{{&moe, 0}};
  EXPECT_THAT(edges(forward_chunk(blocks)),
              ElementsAre("F_ATTN:L0 <", "F_DISP:L0 < F_ATTN:L0", "F_SHARED:L0 < F_ATTN:L0",
                          "F_MLP:L0 < F_DISP:L0", "F_COMB:L0 < F_MLP:L0 F_SHARED:L0"));
  EXPECT_THAT(edges(backward_chunk(blocks)),
              ElementsAre("B_COMB:L0 <", "B_SHARED:L0 <", "W_SHARED:L0 < B_SHARED:L0", "B_MLP:L0 < B_COMB:L0",
                          "W_MLP:L0 < B_MLP:L0", "B_DISP:L0 < B_MLP:L0", "B_ATTN:L0 < B_DISP:L0 B_SHARED:L0",
                          "W_ATTN:L0 < B_ATTN:L0"));
}

TEST(TaskGraph, JoinsASharedExpertOfAMixerlessBlockBeforeTheNextBlock) {
  const BlockCost moe = moe_layer(true, false), dense = dense_layer();
  const std::vector<ChunkBlock> blocks{{&dense, 0}, {&moe, 1}};
  EXPECT_THAT(edges(backward_chunk(blocks, Backward::input_gradient)),
              ElementsAre("B_COMB:L1 <", "B_SHARED:L1 <", "B_MLP:L1 < B_COMB:L1", "B_DISP:L1 < B_MLP:L1",
                          "B_MLP:L0 < B_DISP:L1 B_SHARED:L1", "B_ATTN:L0 < B_MLP:L0"));
}

// Two mixerless MoE layers in a row: the gradient of the first one's output needs both of the second's.
TEST(TaskGraph, StartsFromTheWholeGradientOfABlocksOutput) {
  const BlockCost moe = moe_layer(true, false);
  const std::vector<ChunkBlock> blocks{{&moe, 0}, {&moe, 1}};
  EXPECT_THAT(edges(backward_chunk(blocks, Backward::input_gradient)),
              ElementsAre("B_COMB:L1 <", "B_SHARED:L1 <", "B_MLP:L1 < B_COMB:L1", "B_DISP:L1 < B_MLP:L1",
                          "B_COMB:L0 < B_DISP:L1 B_SHARED:L1", "B_SHARED:L0 < B_DISP:L1 B_SHARED:L1",
                          "B_MLP:L0 < B_COMB:L0", "B_DISP:L0 < B_MLP:L0"));
}

// ----------------------------------------------------------------------------------- recompute

void again(BlockCost& cost, std::initializer_list<TaskKind> kinds) {
  for (const TaskKind kind : kinds) set(cost, Pass::recompute, kind, 0.25);
}

TEST(TaskGraph, ReleasesRecomputeByTheComputeTaskBeforeItsB) {
  BlockCost moe = moe_layer(), dense = dense_layer();
  again(moe, {TaskKind::attention, TaskKind::mlp});
  again(dense, {TaskKind::attention});
  const std::vector<ChunkBlock> blocks{{&dense, 0}, {&moe, 1}, {&moe, 2}};
  const TaskGraph graph = backward_chunk(blocks, Backward::input_gradient);
  EXPECT_THAT(edges(graph),
              ElementsAre("B_COMB:L2 <", "R_MLP:L2 <", "B_MLP:L2 < B_COMB:L2 R_MLP:L2",
                          "B_DISP:L2 < B_MLP:L2", "R_ATTN:L2 < B_MLP:L2", "B_ATTN:L2 < B_DISP:L2 R_ATTN:L2",
                          "B_COMB:L1 < B_ATTN:L2", "R_MLP:L1 < B_ATTN:L2", "B_MLP:L1 < B_COMB:L1 R_MLP:L1",
                          "B_DISP:L1 < B_MLP:L1", "R_ATTN:L1 < B_MLP:L1", "B_ATTN:L1 < B_DISP:L1 R_ATTN:L1",
                          "B_MLP:L0 < B_ATTN:L1", "R_ATTN:L0 < B_MLP:L0", "B_ATTN:L0 < B_MLP:L0 R_ATTN:L0"));
  for (const Task& task : graph.tasks) {
    EXPECT_EQ(task.leaf, task.name.pass == Pass::recompute);
    EXPECT_FALSE(task.movable);
  }
  EXPECT_EQ(graph.load(Resource::comp).value(), 3 * 3 + 5 * 0.25);
}

// A mixer-only layer before a MoE that is a layer of its own: the dispatch's gradient hides the recompute.
TEST(TaskGraph, LetsRecomputeRunBesideTheCommunicationBeforeItsB) {
  BlockCost mixer;
  for (const Pass pass : {Pass::forward, Pass::backward, Pass::weight, Pass::recompute})
    set(mixer, pass, TaskKind::attention, 1);
  BlockCost moe = moe_layer(true, false);
  const std::vector<ChunkBlock> blocks{{&mixer, 0}, {&moe, 1}};
  EXPECT_THAT(edges(backward_chunk(blocks, Backward::input_gradient)),
              ElementsAre("B_COMB:L1 <", "B_SHARED:L1 <", "B_MLP:L1 < B_COMB:L1", "B_DISP:L1 < B_MLP:L1",
                          "R_ATTN:L0 < B_MLP:L1 B_SHARED:L1", "B_ATTN:L0 < B_DISP:L1 B_SHARED:L1 R_ATTN:L0"));
}

TEST(TaskGraph, ComputesASharedExpertAgainBesideTheCombine) {
  BlockCost moe = moe_layer(true), mixerless = moe_layer(true, false);
  again(moe, {TaskKind::shared});
  again(mixerless, {TaskKind::shared});
  const std::vector<ChunkBlock> blocks{{&moe, 0}};
  EXPECT_THAT(edges(backward_chunk(blocks)),
              ElementsAre("B_COMB:L0 <", "R_SHARED:L0 <", "B_SHARED:L0 < R_SHARED:L0",
                          "W_SHARED:L0 < B_SHARED:L0 R_SHARED:L0", "B_MLP:L0 < B_COMB:L0",
                          "W_MLP:L0 < B_MLP:L0", "B_DISP:L0 < B_MLP:L0",
                          "B_ATTN:L0 < B_DISP:L0 B_SHARED:L0 R_SHARED:L0", "W_ATTN:L0 < B_ATTN:L0"));
  const std::vector<ChunkBlock> alone{{&mixerless, 0}};
  EXPECT_THAT(edges(backward_chunk(alone, Backward::input_gradient)),
              ElementsAre("B_COMB:L0 <", "R_SHARED:L0 <", "B_SHARED:L0 < R_SHARED:L0",
                          "B_MLP:L0 < B_COMB:L0 R_SHARED:L0", "B_DISP:L0 < B_MLP:L0"))
      << "the router's weight gradient, in W_MLP, reads the same normed input";
}

TEST(TaskGraph, ComputesAWholeLayerAgainInTheForwardsOrder) {
  BlockCost dense = dense_layer();
  again(dense, {TaskKind::attention, TaskKind::mlp});
  dense.recomputed_whole = true;
  const std::vector<ChunkBlock> blocks{{&dense, 0}, {&dense, 1}};
  EXPECT_THAT(edges(backward_chunk(blocks, Backward::input_gradient)),
              ElementsAre("R_ATTN:L1 <", "R_MLP:L1 < R_ATTN:L1", "B_MLP:L1 < R_MLP:L1 R_ATTN:L1",
                          "B_ATTN:L1 < B_MLP:L1", "R_ATTN:L0 < B_ATTN:L1", "R_MLP:L0 < B_ATTN:L1 R_ATTN:L0",
                          "B_MLP:L0 < B_ATTN:L1 R_MLP:L0 R_ATTN:L0", "B_ATTN:L0 < B_MLP:L0"));
}

TEST(TaskGraph, ComputesNothingAgainForWeightGradientsAlone) {
  BlockCost moe = moe_layer(true);
  again(moe, {TaskKind::attention, TaskKind::mlp, TaskKind::shared});
  const std::vector<ChunkBlock> blocks{{&moe, 0}};
  EXPECT_THAT(edges(backward_chunk(blocks, Backward::weight_gradient)),
              ElementsAre("W_SHARED:L0 <", "W_MLP:L0 <", "W_ATTN:L0 <"));
  for (const Task& task : forward_chunk(blocks).tasks) EXPECT_EQ(task.name.pass, Pass::forward);
}

// -------------------------------------------------------------------------------------- the ends

TEST(TaskGraph, PutsEmbeddingAndHeadAtTheEnds) {
  BlockCost embedding, head;
  set(embedding, Pass::forward, TaskKind::embedding, 1);
  set(embedding, Pass::weight, TaskKind::embedding, 1);
  for (const Pass pass : {Pass::forward, Pass::backward, Pass::weight}) set(head, pass, TaskKind::head, 1);
  const BlockCost dense = dense_layer();
  const std::vector<ChunkBlock> blocks{{&embedding, -1}, {&dense, 0}, {&head, -1}};
  EXPECT_THAT(edges(forward_chunk(blocks)),
              ElementsAre("F_EMBED <", "F_ATTN:L0 < F_EMBED", "F_MLP:L0 < F_ATTN:L0", "F_HEAD < F_MLP:L0"));
  EXPECT_THAT(edges(backward_chunk(blocks)),
              ElementsAre("B_HEAD <", "W_HEAD < B_HEAD", "B_MLP:L0 < B_HEAD", "W_MLP:L0 < B_MLP:L0",
                          "B_ATTN:L0 < B_MLP:L0", "W_ATTN:L0 < B_ATTN:L0", "W_EMBED < B_ATTN:L0"));
  EXPECT_THAT(edges(backward_chunk(blocks, Backward::weight_gradient)),
              ElementsAre("W_HEAD <", "W_MLP:L0 <", "W_ATTN:L0 <", "W_EMBED <"));
}

TEST(TaskGraph, OfAnEmptyChunkIsEmpty) {
  EXPECT_THAT(forward_chunk({}).tasks, IsEmpty());
  EXPECT_THAT(backward_chunk({}).tasks, IsEmpty());
  EXPECT_EQ(schedule_pair(pair_graph({}, {}), {}).schedule.makespan, Seconds());
}

TEST(TaskGraph, PairHasNoEdgeBetweenItsChunks) {
  const BlockCost moe = moe_layer(true);
  const std::vector<ChunkBlock> f{{&moe, 0}, {&moe, 1}}, b{{&moe, 7}};
  const TaskGraph pair = pair_graph(forward_chunk(f), backward_chunk(b));
  EXPECT_EQ(pair.forward_tasks, 10);
  EXPECT_EQ(pair.tasks.size(), 18U);
  for (std::size_t i = 0; i < pair.tasks.size(); ++i)
    for (const TaskId before : pair.tasks[i].after) {
      EXPECT_LT(before.index(), i);
      EXPECT_EQ(before.value() < pair.forward_tasks, static_cast<std::int32_t>(i) < pair.forward_tasks);
    }
}

}  // namespace
}  // namespace tessera::train
