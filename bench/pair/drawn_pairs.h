// Pairs drawn by a fixed seed: windows of the grid's models, and layers with random durations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grid.h"
#include "tessera/train/overlap/task_graph.h"

namespace tessera::bench {

/// Layers of the two chunks.
struct PairSize {
  int forward = 0;
  int backward = 0;
};
[[nodiscard]] std::string name(PairSize size);

struct DrawnPair {
  std::string name;
  train::TaskGraph graph;
};

enum class Draw : std::uint8_t {
  any,
  mixed,  ///< each window has layers of at least two kinds, and the two begin at different layers
};

/// `count` different pairs of windows, each of a setting drawn from `cells`.
[[nodiscard]] std::vector<DrawnPair> drawn_pairs(const std::vector<Cell>& cells, PairSize size, Draw draw,
                                                 int count, std::uint64_t seed);

/// How a random layer's two weight gradients come by their durations.
enum class WeightTimes : std::uint8_t {
  four_classes,  ///< one of four, drawn once a pair
  all_different,
};

/// MoE layers attention – dispatch – mlp – combine, every duration drawn at random; communication is scaled
/// to within 10 % of compute, where the order matters most.
[[nodiscard]] std::vector<DrawnPair> random_pairs(PairSize size, WeightTimes weights, int count,
                                                  std::uint64_t seed);

}  // namespace tessera::bench
