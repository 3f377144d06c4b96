#include "pair_tables.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tessera::train {

PairTables::PairTables(const PartitionProblem& problem, StageCosts& costs, Seconds most)
    : ranges_(stage_ranges(problem)) {
  for (const std::vector<BlockRange>& of_stage : ranges_) alive_.emplace_back(of_stage.size(), 1);
  for (const AloneStage& stage : problem.graph.alone) {
    Alone& alone = alone_.emplace_back(Alone{stage, {}});
    for (const BlockRange range : ranges_[stage.stage.index()])
      alone.times.push_back(costs.alone(stage.stage, range));
  }
  drop_slow_alone(most);
  std::vector<MergedPair> pairs = merged_pairs(problem.graph);
  // Self-loops first: what they drop need not be timed beside others.
  std::ranges::stable_partition(pairs, &MergedPair::self);
  for (const MergedPair& pair : pairs) {
    add_pair(pair, costs, most);
    drop_without_partner(tables_.back());
    drop_untiled();
  }
  while (drop_without_partner()) {
  }
}

void PairTables::keep_within(Seconds most) {
  drop_slow_alone(most);
  for (Table& table : tables_)
    std::erase_if(table.cells, [&](const Cell& cell) { return cell.slowest > most; });
  while (drop_without_partner()) {
  }
}

Seconds PairTables::longest() const noexcept {
  Seconds out;
  for (const Alone& alone : alone_) {
    const std::vector<char>& alive = alive_[alone.stage.stage.index()];
    for (std::size_t c = 0; c < alive.size(); ++c)
      if (alive[c] != 0) out = std::max(out, alone.times[c]);
  }
  for (const Table& table : tables_)
    for (const Cell& cell : table.cells) out = std::max(out, cell.slowest);
  return out;
}

void PairTables::drop_slow_alone(Seconds most) {
  for (const Alone& alone : alone_) {
    std::vector<char>& alive = alive_[alone.stage.stage.index()];
    for (std::size_t c = 0; c < alive.size(); ++c)
      if (alone.times[c] > most) alive[c] = 0;
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
  bool dropped = drop_untiled();
  for (Table& table : tables_) dropped |= drop_without_partner(table);
  return dropped;
}

// A range stays while some range before it ends where it begins, and some range after it begins where it
// ends.
bool PairTables::drop_untiled() {
  bool dropped = false;
  for (std::size_t s = 0; s + 1 < ranges_.size(); ++s) {
    std::set<std::int32_t> ends, begins;
    for (std::size_t c = 0; c < ranges_[s].size(); ++c)
      if (alive_[s][c] != 0) ends.insert(ranges_[s][c].end);
    for (std::size_t d = 0; d < ranges_[s + 1].size(); ++d)
      if (alive_[s + 1][d] != 0) begins.insert(ranges_[s + 1][d].begin);
    const auto drop = [&](char& alive, bool kept) {
      if (alive == 0 || kept) return;
      alive = 0;
      dropped = true;
    };
    for (std::size_t c = 0; c < ranges_[s].size(); ++c)
      drop(alive_[s][c], begins.contains(ranges_[s][c].end));
    for (std::size_t d = 0; d < ranges_[s + 1].size(); ++d)
      drop(alive_[s + 1][d], ends.contains(ranges_[s + 1][d].begin));
  }
  return dropped;
}

bool PairTables::drop_without_partner(Table& table) {
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
  const bool dropped = first != first_kept || second != second_kept;
  first = std::move(first_kept);
  second = std::move(second_kept);
  return dropped;
}

}  // namespace tessera::train
