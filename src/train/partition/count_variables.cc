// How large the mixed-integer programme of a problem is, and how much an incumbent prunes from it.
#include <algorithm>

#include "pair_tables.h"
#include "ranges.h"
#include "tessera/train/partition/solve_partition.h"

namespace tessera::train {

std::int64_t count_variables(const PartitionProblem& problem) {
  const std::vector<std::vector<BlockRange>> ranges = stage_ranges(problem);
  std::int64_t count = 0;
  for (const std::vector<BlockRange>& of_stage : ranges) count += std::ssize(of_stage);
  for (const MergedPair& pair : merged_pairs(problem.graph)) {
    if (pair.self()) continue;
    for (const BlockRange a : ranges[pair.first.index()])
      for (const BlockRange b : ranges[pair.second.index()]) count += may_stand_together(pair, a, b) ? 1 : 0;
  }
  return count;
}

std::int64_t count_variables(const PartitionProblem& problem, StageCosts& costs, Seconds most) {
  const PairTables tables(problem, costs, most);
  std::int64_t count = 0;
  for (const std::vector<char>& alive : tables.alive()) count += std::ranges::count(alive, 1);
  for (const PairTables::Table& table : tables.tables())
    if (!table.pair.self()) count += std::ssize(table.cells);
  return count;
}

}  // namespace tessera::train
