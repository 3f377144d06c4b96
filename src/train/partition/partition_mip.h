// The Tessera paper's mixed-integer programme of the partition.
//
//   y[s,c] = 1      stage s holds range c; one range per stage
//   z[e,c,d]        the stages of pair e hold c and d: Σ_d z = y[s,c], Σ_c z = y[t,d]. Whole when the y are.
//   tiling          for every place b of a boundary: Σ y[s, ends at b] = Σ y[s+1, begins at b]
//   memory          per rank and live vector n: Σ (held + n·activation) · y ≤ budget
//   min T_dom       T_dom ≥ Σ T·z per pair, Σ T·y per self-loop and stage alone
//   or min Σ multiplicity · T, where the tables hold no slower cell than the least T_dom
//
// Both directions between two stages share one z: their cells are the same, and T_dom takes the slower one.
#pragma once

#include <span>
#include <vector>

#include "pair_tables.h"
#include "range_columns.h"
#include "tessera/core/solver/mip.h"

namespace tessera::train {

class PartitionMip {
 public:
  enum class Objective { slowest, work };

  /// Times are divided by `unit`, so that the objective is near 1.
  PartitionMip(const PartitionProblem& problem, const StageCosts& costs, const PairTables& tables,
               Objective objective, Seconds unit);

  [[nodiscard]] const MipModel& model() const noexcept { return model_; }
  /// Columns of y and z.
  [[nodiscard]] std::int64_t variables() const noexcept { return variables_; }
  /// A start for the solver; empty when a range of the partition was pruned.
  [[nodiscard]] std::vector<double> values_of(const Partition& partition) const;
  [[nodiscard]] Partition partition_of(std::span<const double> values) const {
    return columns_.partition_of(values);
  }
  /// Excludes what these stages hold in the partition, all together.
  void exclude(const Partition& partition, std::span<const StageId> stages);

 private:
  void add_pair(const PairTables::Table& table, Objective objective);
  void add_slowest(const PairTables& tables);
  /// T_dom ≥ Σ of the terms.
  void add_slowest_row(std::vector<MipTerm> terms);

  struct Block {
    StageId first, second;
    std::vector<PairTables::Cell> cells;
    MipColumn start;  ///< column of the first cell; the others follow
  };

  MipModel model_;
  Seconds unit_;
  RangeColumns columns_;
  std::vector<Block> blocks_;
  std::int64_t variables_ = 0;
  std::optional<MipColumn> slowest_;
};

}  // namespace tessera::train
