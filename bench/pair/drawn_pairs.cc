#include "drawn_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "../report.h"
#include "train/testing.h"

namespace tessera::bench {
namespace {

using train::testing::Random;

bool several_layer_kinds(const Cell& cell, std::int64_t first, std::int64_t layers) {
  std::set<std::int32_t> kinds;
  for (std::size_t b = 0; b < cell.model.blocks.size(); ++b) {
    const Block& block = cell.model.blocks[b];
    if (block.kind == BlockKind::layer && block.layer >= first && block.layer < first + layers)
      kinds.insert(cell.cost.kind_of_block[b]);
  }
  return kinds.size() > 1;
}

// Every task takes 0.2 to 1.8 ms.
BlockCost random_layer(Random& random, WeightTimes weights, const std::array<double, 4>& classes) {
  using train::testing::set;
  BlockCost cost{.name = "random layer"};
  const auto time = [&] { return 1e-3 * (0.2 + 1.6 * random.unit()); };
  const auto weight = [&] {
    return weights == WeightTimes::four_classes ? classes[static_cast<std::size_t>(random.below(4))] : time();
  };
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    set(cost, pass, TaskKind::attention, time());
    set(cost, pass, TaskKind::dispatch, time());
    set(cost, pass, TaskKind::mlp, time());
    set(cost, pass, TaskKind::combine, time());
  }
  set(cost, Pass::weight, TaskKind::mlp, weight());
  set(cost, Pass::weight, TaskKind::attention, weight());
  return cost;
}

train::TaskGraph random_pair(Random& random, PairSize size, WeightTimes weights) {
  std::array<double, 4> classes{};
  for (double& time : classes) time = 1e-3 * (0.2 + 1.6 * random.unit());
  std::vector<BlockCost> layers;
  for (int i = 0; i < size.forward + size.backward; ++i)
    layers.push_back(random_layer(random, weights, classes));
  std::vector<train::ChunkBlock> forward, backward;
  for (int i = 0; i < size.forward; ++i) forward.push_back({&layers[static_cast<std::size_t>(i)], i});
  for (int i = size.forward; i < size.forward + size.backward; ++i)
    backward.push_back({&layers[static_cast<std::size_t>(i)], i});
  train::TaskGraph graph = train::pair_graph(train::forward_chunk(forward), train::backward_chunk(backward));
  const double scale = graph.load(Resource::comp) / graph.load(Resource::comm) * (0.9 + 0.2 * random.unit());
  for (train::Task& task : graph.tasks)
    if (task.resource == Resource::comm) task.duration *= scale;
  return graph;
}

}  // namespace

std::string name(PairSize size) {
  return fmt::format("{}+{}", size.forward, size.backward);
}

std::vector<DrawnPair> drawn_pairs(const std::vector<Cell>& cells, PairSize size, Draw draw, int count,
                                   std::uint64_t seed) {
  Random random(seed);
  std::vector<DrawnPair> out;
  std::set<std::pair<std::size_t, train::PairKey>> seen;
  constexpr int kAttempts = 1'000'000;
  for (int attempt = 0; attempt < kAttempts && static_cast<int>(out.size()) < count; ++attempt) {
    const auto which = static_cast<std::size_t>(random.below(static_cast<int>(cells.size())));
    const Cell& cell = cells[which];
    const auto layers = static_cast<int>(cell.model.layers());
    const int f = random.between(0, layers - size.forward), b = random.between(0, layers - size.backward);
    if (draw == Draw::mixed && (f == b || !several_layer_kinds(cell, f, size.forward) ||
                                !several_layer_kinds(cell, b, size.backward)))
      continue;
    train::PairKey key{cell.window(f, size.forward), cell.window(b, size.backward)};
    if (!seen.emplace(which, key).second) continue;
    out.push_back({fmt::format("{}, F from layer {}, B from layer {}", name(cell.setting), f, b),
                   train::pair_graph(cell.cost.kinds, key)});
  }
  verify(static_cast<int>(out.size()) == count, "enough different pairs can be drawn");
  return out;
}

std::vector<DrawnPair> random_pairs(PairSize size, WeightTimes weights, int count, std::uint64_t seed) {
  Random random(seed);
  std::vector<DrawnPair> out;
  for (int i = 0; i < count; ++i)
    out.push_back({fmt::format("random {} pair {} of seed {}", name(size), i, seed),
                   random_pair(random, size, weights)});
  return out;
}

}  // namespace tessera::bench
