#include "partition_mip.h"

#include <algorithm>
#include <utility>

namespace tessera::train {

namespace {

// Below the solver's tolerance, and HiGHS refuses it.
constexpr double kNegligible = 1e-9;

// Σ multiplicity · T of what concerns one range alone, in units.
std::vector<std::vector<double>> own_work(const PairTables& tables, Seconds unit) {
  std::vector<std::vector<double>> out;
  for (const std::vector<BlockRange>& ranges : tables.ranges()) out.emplace_back(ranges.size(), 0);
  for (const PairTables::Table& table : tables.tables())
    if (table.pair.self())
      for (const PairTables::Cell& cell : table.cells)
        out[table.pair.first.index()][static_cast<std::size_t>(cell.first)] += cell.work / unit;
  for (const PairTables::Alone& alone : tables.alone())
    for (std::size_t c = 0; c < alone.times.size(); ++c)
      out[alone.stage.stage.index()][c] +=
          alone.times[c] / unit * static_cast<double>(alone.stage.multiplicity);
  return out;
}

}  // namespace

PartitionMip::PartitionMip(const PartitionProblem& problem, const StageCosts& costs, const PairTables& tables,
                           Objective objective, Seconds unit)
    : unit_(unit),
      columns_(model_, tables.ranges(), tables.alive(),
               objective == Objective::work ? own_work(tables, unit) : std::vector<std::vector<double>>()) {
  columns_.add_memory(model_, problem, costs);
  for (const PairTables::Table& table : tables.tables())
    if (!table.pair.self()) add_pair(table, objective);
  variables_ = static_cast<std::int64_t>(model_.columns());
  if (objective == Objective::slowest) add_slowest(tables);
}

void PartitionMip::add_pair(const PairTables::Table& table, Objective objective) {
  const MergedPair& pair = table.pair;
  Block block{pair.first, pair.second, table.cells, {}};
  std::vector<std::vector<MipTerm>> by_first(columns_.ranges(pair.first).size());
  std::vector<std::vector<MipTerm>> by_second(columns_.ranges(pair.second).size());
  for (std::size_t k = 0; k < table.cells.size(); ++k) {
    const PairTables::Cell& cell = table.cells[k];
    const MipColumn z =
        model_.add_column({.upper = 1, .cost = objective == Objective::work ? cell.work / unit_ : 0});
    if (k == 0) block.start = z;
    by_first[static_cast<std::size_t>(cell.first)].push_back({z, 1});
    by_second[static_cast<std::size_t>(cell.second)].push_back({z, 1});
  }
  const auto link = [&](StageId stage, std::vector<std::vector<MipTerm>>& rows) {
    for (std::size_t c = 0; c < rows.size(); ++c) {
      if (!columns_.alive(stage, c)) continue;
      rows[c].push_back({columns_.at(stage, c), -1});
      model_.add_row({.lower = 0, .upper = 0}, rows[c]);
    }
  };
  link(pair.first, by_first);
  link(pair.second, by_second);
  blocks_.push_back(std::move(block));
}

void PartitionMip::add_slowest(const PairTables& tables) {
  slowest_ = model_.add_column({.cost = 1});
  for (const Block& block : blocks_) {
    std::vector<MipTerm> terms;
    for (const PairTables::Cell& cell : block.cells)
      terms.push_back({MipColumn(block.start.value() + std::ssize(terms)), cell.slowest / unit_});
    add_slowest_row(std::move(terms));
  }
  for (const PairTables::Table& table : tables.tables()) {
    if (!table.pair.self()) continue;
    std::vector<MipTerm> terms;
    for (const PairTables::Cell& cell : table.cells)
      terms.push_back(
          {columns_.at(table.pair.first, static_cast<std::size_t>(cell.first)), cell.slowest / unit_});
    add_slowest_row(std::move(terms));
  }
  for (const PairTables::Alone& alone : tables.alone()) {
    std::vector<MipTerm> terms;
    const StageId stage = alone.stage.stage;
    for (std::size_t c = 0; c < alone.times.size(); ++c)
      if (columns_.alive(stage, c)) terms.push_back({columns_.at(stage, c), alone.times[c] / unit_});
    add_slowest_row(std::move(terms));
  }
}

void PartitionMip::add_slowest_row(std::vector<MipTerm> terms) {
  std::erase_if(terms, [](const MipTerm& term) { return term.coefficient < kNegligible; });
  terms.push_back({*slowest_, -1});
  model_.add_row({.upper = 0}, terms);
}

std::vector<double> PartitionMip::values_of(const Partition& partition) const {
  const std::vector<std::size_t> chosen = columns_.chosen(partition);
  if (chosen.empty()) return {};
  std::vector<double> values(model_.columns(), 0);
  for (std::size_t s = 0; s < chosen.size(); ++s)
    values[columns_.at(StageId(static_cast<std::int64_t>(s)), chosen[s]).index()] = 1;
  for (const Block& block : blocks_)
    for (std::size_t k = 0; k < block.cells.size(); ++k) {
      const PairTables::Cell& cell = block.cells[k];
      if (static_cast<std::size_t>(cell.first) != chosen[block.first.index()] ||
          static_cast<std::size_t>(cell.second) != chosen[block.second.index()])
        continue;
      values[block.start.index() + k] = 1;
      if (slowest_) values[slowest_->index()] = std::max(values[slowest_->index()], cell.slowest / unit_);
    }
  // What self-loops and stages alone ask of T_dom, the solver completes.
  return values;
}

void PartitionMip::exclude(const Partition& partition, std::span<const StageId> stages) {
  const std::vector<std::size_t> chosen = columns_.chosen(partition);
  std::vector<MipTerm> terms;
  for (const StageId stage : stages) terms.push_back({columns_.at(stage, chosen[stage.index()]), 1});
  model_.add_row({.upper = static_cast<double>(terms.size()) - 1}, terms);
}

}  // namespace tessera::train
