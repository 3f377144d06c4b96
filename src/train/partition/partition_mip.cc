#include "partition_mip.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tessera::train {

namespace {

// Shares of a budget below this are lost in the solver's tolerance anyway, and HiGHS refuses them.
constexpr double kNegligible = 1e-9;

}  // namespace

PartitionMip::PartitionMip(const PartitionProblem& problem, const StageCosts& costs, const PairTables& tables,
                           Objective objective, Seconds unit)
    : unit_(unit), ranges_(tables.ranges()), alive_(tables.alive()) {
  add_ranges(tables, objective);
  add_tiling();
  add_memory(problem, costs);
  for (const PairTables::Table& table : tables.tables())
    if (!table.pair.self()) add_pair(table, objective);
  variables_ = std::ssize(model_.view().cost);
  if (objective == Objective::work) return;

  slowest_ = model_.add_column({.cost = 1});
  for (const Block& block : blocks_) {
    std::vector<MipTerm> terms;
    for (std::size_t k = 0; k < block.cells.size(); ++k)
      terms.push_back({MipColumn(block.start.value() + std::ssize(terms)), block.cells[k].slowest / unit_});
    add_slowest_row(std::move(terms));
  }
  for (const PairTables::Table& table : tables.tables()) {
    if (!table.pair.self()) continue;
    std::vector<MipTerm> terms;
    for (const PairTables::Cell& cell : table.cells)
      terms.push_back({y(table.pair.first, static_cast<std::size_t>(cell.first)), cell.slowest / unit_});
    add_slowest_row(std::move(terms));
  }
  for (const PairTables::Alone& alone : tables.alone()) {
    std::vector<MipTerm> terms;
    const StageId stage = alone.stage.stage;
    for (std::size_t c = 0; c < alone.times.size(); ++c)
      if (alive_[stage.index()][c] != 0) terms.push_back({y(stage, c), alone.times[c] / unit_});
    add_slowest_row(std::move(terms));
  }
}

void PartitionMip::add_slowest_row(std::vector<MipTerm> terms) {
  std::erase_if(terms, [](const MipTerm& term) { return term.coefficient < kNegligible; });
  terms.push_back({slowest_, -1});
  model_.add_row({.upper = 0}, terms);
}

void PartitionMip::add_ranges(const PairTables& tables, Objective objective) {
  std::vector<std::vector<double>> work;
  for (const std::vector<BlockRange>& of_stage : ranges_) work.emplace_back(of_stage.size(), 0);
  for (const PairTables::Table& table : tables.tables())
    if (table.pair.self())
      for (const PairTables::Cell& cell : table.cells)
        work[table.pair.first.index()][static_cast<std::size_t>(cell.first)] += cell.work / unit_;
  for (const PairTables::Alone& alone : tables.alone())
    for (std::size_t c = 0; c < alone.times.size(); ++c)
      work[alone.stage.stage.index()][c] +=
          alone.times[c] / unit_ * static_cast<double>(alone.stage.multiplicity);

  for (std::size_t s = 0; s < ranges_.size(); ++s) {
    y_.emplace_back(ranges_[s].size());
    std::vector<MipTerm> terms;
    for (std::size_t c = 0; c < ranges_[s].size(); ++c) {
      if (alive_[s][c] == 0) continue;
      y_[s][c] = model_.add_binary(objective == Objective::work ? work[s][c] : 0);
      terms.push_back({y_[s][c], 1});
    }
    model_.add_row({.lower = 1, .upper = 1}, terms);
  }
}

void PartitionMip::add_tiling() {
  for (std::size_t s = 1; s < ranges_.size(); ++s) {
    std::map<std::int32_t, std::vector<MipTerm>> at;  // by place of boundary s
    for (std::size_t c = 0; c < ranges_[s - 1].size(); ++c)
      if (alive_[s - 1][c] != 0) at[ranges_[s - 1][c].end].push_back({y_[s - 1][c], 1});
    for (std::size_t c = 0; c < ranges_[s].size(); ++c)
      if (alive_[s][c] != 0) at[ranges_[s][c].begin].push_back({y_[s][c], -1});
    for (const auto& [place, terms] : at) model_.add_row({.lower = 0, .upper = 0}, terms);
  }
}

void PartitionMip::add_memory(const PartitionProblem& problem, const StageCosts& costs) {
  const std::vector<std::vector<StageId>> stages = stages_of_ranks(problem.graph);
  for (std::size_t r = 0; r < problem.budget.size(); ++r)
    for (const std::vector<std::int32_t>& live : problem.graph.live[r]) {
      std::vector<MipTerm> terms;
      double largest = problem.budget[r].value();
      for (std::size_t i = 0; i < stages[r].size(); ++i) {
        const std::size_t s = stages[r][i].index();
        for (std::size_t c = 0; c < ranges_[s].size(); ++c) {
          if (alive_[s][c] == 0) continue;
          const Bytes need = costs.held(stages[r][i], ranges_[s][c]) +
                             costs.activation(stages[r][i], ranges_[s][c]) * static_cast<double>(live[i]);
          terms.push_back({y_[s][c], need.value()});
          largest = std::max(largest, need.value());
        }
      }
      if (largest <= 0) continue;
      for (MipTerm& term : terms) term.coefficient /= largest;
      std::erase_if(terms, [](const MipTerm& term) { return term.coefficient < kNegligible; });
      model_.add_row({.upper = problem.budget[r].value() / largest}, terms);
    }
}

void PartitionMip::add_pair(const PairTables::Table& table, Objective objective) {
  const MergedPair& pair = table.pair;
  Block block{pair.first, pair.second, table.cells, {}};
  std::vector<std::vector<MipTerm>> by_first(ranges_[pair.first.index()].size());
  std::vector<std::vector<MipTerm>> by_second(ranges_[pair.second.index()].size());
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
      if (alive_[stage.index()][c] == 0) continue;
      rows[c].push_back({y(stage, c), -1});
      model_.add_row({.lower = 0, .upper = 0}, rows[c]);
    }
  };
  link(pair.first, by_first);
  link(pair.second, by_second);
  blocks_.push_back(std::move(block));
}

std::vector<double> PartitionMip::values_of(const Partition& partition) const {
  std::vector<double> values(model_.columns(), 0);
  std::vector<std::int32_t> chosen;
  for (std::size_t s = 0; s < ranges_.size(); ++s) {
    const auto range = std::ranges::find(ranges_[s], partition.stages[s]);
    const auto c = static_cast<std::size_t>(range - ranges_[s].begin());
    if (range == ranges_[s].end() || alive_[s][c] == 0) return {};
    chosen.push_back(static_cast<std::int32_t>(c));
    values[y_[s][c].index()] = 1;
  }
  for (const Block& block : blocks_)
    for (std::size_t k = 0; k < block.cells.size(); ++k)
      if (block.cells[k].first == chosen[block.first.index()] &&
          block.cells[k].second == chosen[block.second.index()])
        values[block.start.index() + k] = 1;
  if (variables_ < std::ssize(values)) values[slowest_.index()] = 1;  // the incumbent's own, in its unit
  return values;
}

Partition PartitionMip::partition_of(std::span<const double> values) const {
  Partition out;
  for (std::size_t s = 0; s < ranges_.size(); ++s) {
    std::size_t best = 0;
    double most = -1;
    for (std::size_t c = 0; c < ranges_[s].size(); ++c)
      if (alive_[s][c] != 0 && values[y_[s][c].index()] > most) {
        most = values[y_[s][c].index()];
        best = c;
      }
    out.stages.push_back(ranges_[s][best]);
  }
  return out;
}

void PartitionMip::exclude(const Partition& partition, std::span<const StageId> stages) {
  std::vector<MipTerm> terms;
  for (const StageId stage : stages) {
    const std::size_t s = stage.index();
    const auto range = std::ranges::find(ranges_[s], partition.stages[s]);
    terms.push_back({y(stage, static_cast<std::size_t>(range - ranges_[s].begin())), 1});
  }
  model_.add_row({.upper = static_cast<double>(terms.size()) - 1}, terms);
}

}  // namespace tessera::train
