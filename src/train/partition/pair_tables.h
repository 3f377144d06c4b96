// T over the ranges of the stages, merged by pair of stages and pruned by an incumbent.
#pragma once

#include <cstdint>
#include <vector>

#include "ranges.h"
#include "tessera/train/partition/partition_problem.h"

namespace tessera::train {

class PairTables {
 public:
  struct Cell {
    std::int32_t first = 0;   ///< index into the ranges of pair.first
    std::int32_t second = 0;  ///< of pair.second; the same range for a self-loop
    Seconds slowest;          ///< the longer of the directions that occur
    Seconds work;             ///< Σ multiplicity · T
  };
  struct Table {
    MergedPair pair;
    std::vector<Cell> cells;  ///< by (first, second); only those alive
  };
  struct Alone {
    AloneStage stage;
    std::vector<Seconds> times;  ///< per range
  };

  /// Keeps a cell when its T and both its ranges stay within `most`, equality included, and a range when it
  /// keeps a partner in every pair and neighbours that tile: nothing that is no slower than `most` is lost.
  PairTables(const PartitionProblem& problem, StageCosts& costs, Seconds most);
  /// Prunes further.
  void keep_within(Seconds most);

  [[nodiscard]] const std::vector<std::vector<BlockRange>>& ranges() const noexcept { return ranges_; }
  /// Per stage and range: 1 or 0.
  [[nodiscard]] const std::vector<std::vector<char>>& alive() const noexcept { return alive_; }
  [[nodiscard]] const std::vector<Table>& tables() const noexcept { return tables_; }
  [[nodiscard]] const std::vector<Alone>& alone() const noexcept { return alone_; }
  /// The longest time of anything alive.
  [[nodiscard]] Seconds longest() const noexcept;
  [[nodiscard]] std::int64_t timed() const noexcept { return timed_; }

 private:
  void drop_slow_alone(Seconds most);
  void add_pair(const MergedPair& pair, StageCosts& costs, Seconds most);
  bool drop_without_partner();
  bool drop_without_partner(Table& table);
  bool drop_untiled();

  std::vector<std::vector<BlockRange>> ranges_;
  std::vector<std::vector<char>> alive_;
  std::vector<Table> tables_;
  std::vector<Alone> alone_;
  std::int64_t timed_ = 0;
};

}  // namespace tessera::train
