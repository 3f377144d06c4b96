#include "pair_tables.h"

#include <algorithm>

namespace tessera::train {

PairTables::PairTables(const PartitionProblem& problem, StageCosts& costs, Seconds most)
    : ranges_(stage_ranges(problem)) {
  for (const std::vector<BlockRange>& of_stage : ranges_) alive_.emplace_back(of_stage.size(), 1);
  add_alone(problem, costs, most);
  std::vector<MergedPair> pairs = merged_pairs(problem.graph);
  // Self-loops first: what they drop need not be timed beside others.
  std::ranges::stable_partition(pairs, &MergedPair::self);
  for (const MergedPair& pair : pairs) add_pair(pair, costs, most);
  while (drop_without_partner()) {
  }
}

void PairTables::add_alone(const PartitionProblem& problem, const StageCosts& costs, Seconds most) {
  for (const AloneStage& alone : problem.graph.alone) {
    const std::size_t s = alone.stage.index();
    for (std::size_t c = 0; c < ranges_[s].size(); ++c)
      if (costs.alone(alone.stage, ranges_[s][c]) > most) alive_[s][c] = 0;
  }
}

void PairTables::add_pair(const MergedPair& pair, StageCosts& costs, Seconds most) {
  const std::size_t a = pair.first.index(), b = pair.second.index();
  std::vector<Cell> cells;
  std::vector<PairQuery> queries;
  for (std::size_t c = 0; c < ranges_[a].size(); ++c) {
    if (alive_[a][c] == 0) continue;
    for (std::size_t d = pair.self() ? c : 0; d < (pair.self() ? c + 1 : ranges_[b].size()); ++d) {
      if (alive_[b][d] == 0 || !may_stand_together(pair, ranges_[a][c], ranges_[b][d])) continue;
      const PairQuery one{pair.first, ranges_[a][c], pair.second, ranges_[b][d]};
      const PairQuery other{pair.second, ranges_[b][d], pair.first, ranges_[a][c]};
      if (pair.first_forward > 0 && costs.bound(one) > most) continue;
      if (pair.second_forward > 0 && costs.bound(other) > most) continue;
      if (pair.first_forward > 0) queries.push_back(one);
      if (pair.second_forward > 0) queries.push_back(other);
      cells.push_back({static_cast<std::int32_t>(c), static_cast<std::int32_t>(d), {}, {}});
    }
  }
  const std::vector<Seconds> times = costs.times(queries);
  timed_ += std::ssize(times);
  std::size_t next = 0;
  for (Cell& cell : cells)
    for (const std::int64_t multiplicity : {pair.first_forward, pair.second_forward}) {
      if (multiplicity == 0) continue;
      const Seconds time = times[next++];
      cell.slowest = std::max(cell.slowest, time);
      cell.work += time * static_cast<double>(multiplicity);
    }
  std::erase_if(cells, [&](const Cell& cell) { return cell.slowest > most; });
  tables_.push_back({pair, std::move(cells)});
}

bool PairTables::drop_without_partner() {
  bool dropped = false;
  for (Table& table : tables_) {
    std::vector<char>& first = alive_[table.pair.first.index()];
    std::vector<char>& second = alive_[table.pair.second.index()];
    std::erase_if(table.cells, [&](const Cell& cell) {
      return first[static_cast<std::size_t>(cell.first)] == 0 ||
             second[static_cast<std::size_t>(cell.second)] == 0;
    });
    std::vector<char> first_kept(first.size(), 0), second_kept(second.size(), 0);
    for (const Cell& cell : table.cells) {
      first_kept[static_cast<std::size_t>(cell.first)] = 1;
      second_kept[static_cast<std::size_t>(cell.second)] = 1;
    }
    for (std::size_t c = 0; c < first.size(); ++c) dropped |= first[c] != first_kept[c];
    for (std::size_t d = 0; d < second.size(); ++d) dropped |= second[d] != second_kept[d];
    first = first_kept;
    second = second_kept;
  }
  return dropped;
}

}  // namespace tessera::train
