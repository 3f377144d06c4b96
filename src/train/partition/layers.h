// The walk as layers of cells: a cell fixes the places that the steps still to come depend on.
//
// Before a step a cell holds, per track, the boundary the track stands at, and per open track of the rank
// where it entered. A step moves one track over its stage.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "propagation.h"
#include "walk.h"

namespace tessera::train {

inline constexpr std::size_t kMostMemoryRows = 6;
inline constexpr std::size_t kMostMet = 16;  ///< stages of a rank that one overlaps with

class Layers {
 public:
  /// Only alive values and pairs within `limit` are steps.
  Layers(const Labelling& labelling, const Walk& walk, const Alive& alive, double limit);

  /// Would it be small enough for dense tables, and have at most so many cells? Counts and builds nothing.
  [[nodiscard]] static bool within(const Labelling& labelling, const Walk& walk, const Alive& alive,
                                   std::size_t most_cells);

  /// A variable of a cell: a place of this boundary.
  struct Variable {
    std::size_t boundary = 0;
    std::size_t size = 1;  ///< open places
    std::size_t stride = 1;
  };
  struct Met {
    std::size_t entry = 0, exit = 0;  ///< variables of the track met
    std::vector<std::int32_t> value;  ///< [entry][exit] → value of its stage, −1
    std::vector<double> work;         ///< [own value][its value]; kForever when it may not be
    std::size_t columns = 0;
  };
  struct Layer {
    const WalkStep* step = nullptr;   ///< null for the end
    std::vector<Variable> variables;  ///< tracks first, then open tracks
    std::size_t cells = 1;
    std::size_t exits = 1;            ///< open places of the step's exit
    std::vector<std::int32_t> value;  ///< [entry][exit] → value of the step's stage, −1
    std::vector<double> work;         ///< per value
    std::vector<Met> met;
    /// Strides of each variable in the next layer's cell (0 = dropped), and of the new exit place; the entry
    /// place has a second one when the track stays open.
    std::vector<std::size_t> next_stride;
    std::size_t exit_stride = 0, entry_stride = 0;
    /// Memory rows of the rank: what each value needs.
    std::size_t rows = 0;
    std::vector<std::array<double, kMostMemoryRows>> need;  ///< per value
    std::array<double, kMostMemoryRows> budget{};
  };

  [[nodiscard]] std::span<const Layer> layers() const noexcept { return layers_; }
  [[nodiscard]] const Walk& walk() const noexcept { return walk_; }
  [[nodiscard]] const Labelling& labelling() const noexcept { return labelling_; }
  [[nodiscard]] std::size_t cells() const noexcept { return total_; }
  [[nodiscard]] bool fits() const noexcept { return fits_; }  ///< small enough for dense tables

  /// The steps out of one cell. `places` are the cell's.
  class Steps {
   public:
    Steps(const Layer& layer, std::span<const std::size_t> places) noexcept;
    /// False when no exit is possible.
    [[nodiscard]] bool any() const noexcept { return any_; }
    /// −1 when the stage may not exit there.
    [[nodiscard]] std::int32_t value(std::size_t exit) const noexcept { return value_[exit]; }
    /// kForever when it may not be.
    [[nodiscard]] double work(std::size_t exit) const noexcept {
      if (value_[exit] < 0) return kForever;
      const auto value = static_cast<std::size_t>(value_[exit]);
      double work = layer_.work[value];
      for (std::size_t m = 0; m < layer_.met.size(); ++m) work += rows_[m][value * layer_.met[m].columns];
      return work;
    }
    /// Cell of the next layer.
    [[nodiscard]] std::size_t cell(std::size_t exit) const noexcept {
      return cell_ + exit * layer_.exit_stride;
    }

   private:
    const Layer& layer_;
    const std::int32_t* value_;
    std::array<const double*, kMostMet> rows_;  // per pair met, of the value met
    std::size_t cell_;
    bool any_ = true;
  };
  static void decode(const Layer& layer, std::size_t cell, std::span<std::size_t> places) noexcept;

  /// Places of a boundary that are open, as place numbers.
  [[nodiscard]] std::span<const std::size_t> open(std::size_t boundary) const noexcept {
    return open_[boundary];
  }

 private:
  void add_layer(const WalkStep* step, const std::vector<std::size_t>& standing,
                 const std::vector<std::size_t>& entered, const std::vector<std::size_t>& open_tracks);
  void link(const Alive& alive, double limit, std::size_t at);

  const Labelling& labelling_;
  const Walk& walk_;
  std::vector<std::vector<std::size_t>> open_;
  std::vector<Layer> layers_;
  std::vector<std::vector<std::size_t>> open_tracks_;  // per layer
  std::size_t total_ = 0;
  bool fits_ = true;
};

}  // namespace tessera::train
