// Work still to come from every node of the walk, its stitches left open and priced by multipliers.
#pragma once

#include <cstdint>
#include <vector>

#include "walk_graph.h"

namespace tessera::train {

class RelaxedWalk {
 public:
  explicit RelaxedWalk(const WalkGraph& graph);

  /// One backward sweep with the present multipliers.
  void sweep();
  /// Moves the multipliers along the mismatch of the best relaxed walk; `upper` is the work of a known
  /// partition. False when there is no mismatch: the relaxed walk is a partition, but for memory.
  bool adjust(double upper, double step);

  /// Least over all starts: no partition has less work.
  [[nodiscard]] double bound() const noexcept { return bound_; }
  /// Of a node, the terminal prices of its stitches included.
  [[nodiscard]] double to_go(std::size_t layer, std::size_t node) const noexcept {
    return to_go_[layer][node];
  }
  /// What the stitches of a start are priced at: subtract it from to_go.
  [[nodiscard]] double start_price(std::size_t start) const noexcept;
  [[nodiscard]] std::int64_t states() const noexcept { return states_; }

  void keep_best();  ///< remembers multipliers and sweep when the bound is the best so far
  void restore_best();

 private:
  const WalkGraph& graph_;
  std::vector<std::vector<double>> price_, best_price_;  // per stitch and place
  std::vector<std::vector<double>> to_go_;
  double bound_ = 0, best_bound_ = -kForever;
  std::size_t best_start_ = 0;
  std::int64_t states_ = 0;
};

}  // namespace tessera::train
