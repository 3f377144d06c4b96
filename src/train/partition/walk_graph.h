// The cells of a walk that matter, and the steps between them: everything else is left out once, before the
// many passes over them begin.
//
// A node lies on some walk from a start to an end that the joins allow, and with each memory row taken by
// itself its rank fits. Where there are too many starts the stitches are left open.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "layers.h"

namespace tessera::train {

class WalkGraph {
 public:
  explicit WalkGraph(const Layers& layers);

  using Need = std::array<double, kMostMemoryRows>;
  struct Step {
    std::int32_t to = 0;     ///< node of the next layer
    std::int32_t value = 0;  ///< of the layer's stage
    double work = 0;
  };
  struct Back {
    std::int32_t from = 0;  ///< node of the layer before
    std::int32_t value = 0;
    double work = 0;
  };

  [[nodiscard]] const Layers& layers() const noexcept { return layers_; }
  /// Small enough to be walked over and over; nothing else may be asked of one that is not.
  [[nodiscard]] bool fits() const noexcept { return fits_; }
  [[nodiscard]] std::size_t depth() const noexcept { return nodes_.size(); }
  [[nodiscard]] std::size_t nodes(std::size_t layer) const noexcept { return nodes_[layer].cell.size(); }
  /// By ascending cell.
  [[nodiscard]] std::size_t cell(std::size_t layer, std::size_t node) const noexcept {
    return nodes_[layer].cell[node];
  }
  [[nodiscard]] std::span<const Step> steps(std::size_t layer, std::size_t node) const noexcept {
    const Nodes& of = nodes_[layer];
    return std::span(of.steps).subspan(of.first[node], of.first[node + 1] - of.first[node]);
  }
  [[nodiscard]] std::span<const Back> back(std::size_t layer, std::size_t node) const noexcept {
    const Nodes& of = nodes_[layer];
    return std::span(of.back).subspan(of.first_back[node], of.first_back[node + 1] - of.first_back[node]);
  }
  /// The least that the rank's steps still to come need, of each memory row by itself.
  [[nodiscard]] const Need& to_need(std::size_t layer, std::size_t node) const noexcept {
    return nodes_[layer].to_need[node];
  }
  /// Does the walk from this start close at this end?
  [[nodiscard]] bool closes(std::size_t start, std::size_t end) const noexcept;
  /// May a walk from this start that passes this node close? True where that is not known.
  [[nodiscard]] bool may_close(std::size_t start, std::size_t layer, std::size_t node) const noexcept {
    if (words_ == 0) return true;
    const std::size_t bit = bit_of_start_[start];
    return (nodes_[layer].closing[node * words_ + bit / 64] >> (bit % 64) & 1) != 0;
  }
  /// Per stitch, the place of each start and of each end.
  struct Stitch {
    std::size_t boundary = 0;
    std::vector<std::size_t> start, end;
  };
  [[nodiscard]] std::span<const Stitch> stitches() const noexcept { return stitches_; }
  [[nodiscard]] std::int64_t states() const noexcept { return states_; }

 private:
  struct Nodes {
    std::vector<std::uint32_t> cell;
    std::vector<std::size_t> first, first_back;
    std::vector<Step> steps;
    std::vector<Back> back;
    std::vector<Need> to_need;           // empty where no row counts
    std::vector<std::uint64_t> closing;  // per node: starts whose walk may close from here
  };
  [[nodiscard]] std::vector<std::vector<std::uint8_t>> reaches_end();
  void grow(const std::vector<std::vector<std::uint8_t>>& ends);
  void need_ahead();
  void drop_by_memory();
  bool drop_beyond_memory();
  void find_stitches();
  void mark_closing();
  void drop_unclosed();
  void keep(const std::vector<std::vector<std::uint8_t>>& kept);
  void turn_back();

  const Layers& layers_;
  std::vector<Nodes> nodes_;
  std::vector<Stitch> stitches_;
  std::size_t words_ = 0;  // of 64 starts; 0: too many starts
  std::vector<std::size_t> bit_of_start_;
  bool fits_ = true;
  std::int64_t states_ = 0;
};

}  // namespace tessera::train
