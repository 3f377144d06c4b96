// One 0-1 column per stage and range it may hold, one range a stage, and the ranges tile: the part that every
// integer programme of this room begins with.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ranges.h"
#include "tessera/core/solver/mip.h"

namespace tessera::train {

class RangeColumns {
 public:
  /// Adds the columns and rows. `alive` leaves ranges out; `cost` is per stage and range, or empty.
  RangeColumns(MipModel& model, std::vector<std::vector<BlockRange>> ranges,
               std::vector<std::vector<char>> alive, const std::vector<std::vector<double>>& cost = {});

  [[nodiscard]] bool alive(StageId stage, std::size_t range) const {
    return alive_[stage.index()][range] != 0;
  }
  /// Only of one that is alive.
  [[nodiscard]] MipColumn at(StageId stage, std::size_t range) const {
    return columns_[stage.index()][range];
  }
  [[nodiscard]] const std::vector<BlockRange>& ranges(StageId stage) const { return ranges_[stage.index()]; }

  /// Σ (held + n·activation) ≤ budget per rank and live vector, in shares of the budget. `excess`, in bytes
  /// of `unit`, widens every budget.
  void add_memory(MipModel& model, const PartitionProblem& problem, const StageCosts& costs,
                  std::optional<MipColumn> excess = std::nullopt, Bytes unit = Bytes(1)) const;

  [[nodiscard]] Partition partition_of(std::span<const double> values) const;
  /// The range of each stage; empty when one is not alive.
  [[nodiscard]] std::vector<std::size_t> chosen(const Partition& partition) const;

 private:
  void add_tiling(MipModel& model) const;

  std::vector<std::vector<BlockRange>> ranges_;
  std::vector<std::vector<char>> alive_;
  std::vector<std::vector<MipColumn>> columns_;  // without meaning where not alive
};

}  // namespace tessera::train
