#include "range_columns.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tessera::train {

namespace {

// Shares of a budget below this are lost in the solver's tolerance anyway, and HiGHS refuses them.
constexpr double kNegligible = 1e-9;

}  // namespace

RangeColumns::RangeColumns(MipModel& model, std::vector<std::vector<BlockRange>> ranges,
                           std::vector<std::vector<char>> alive, const std::vector<std::vector<double>>& cost)
    : ranges_(std::move(ranges)), alive_(std::move(alive)) {
  for (std::size_t s = 0; s < ranges_.size(); ++s) {
    columns_.emplace_back(ranges_[s].size());
    std::vector<MipTerm> terms;
    for (std::size_t c = 0; c < ranges_[s].size(); ++c) {
      if (alive_[s][c] == 0) continue;
      columns_[s][c] = model.add_binary(cost.empty() ? 0 : cost[s][c]);
      terms.push_back({columns_[s][c], 1});
    }
    model.add_row({.lower = 1, .upper = 1}, terms);
  }
  add_tiling(model);
}

void RangeColumns::add_tiling(MipModel& model) const {
  for (std::size_t s = 1; s < ranges_.size(); ++s) {
    std::map<std::int32_t, std::vector<MipTerm>> at;  // by place of boundary s
    for (std::size_t c = 0; c < ranges_[s - 1].size(); ++c)
      if (alive_[s - 1][c] != 0) at[ranges_[s - 1][c].end].push_back({columns_[s - 1][c], 1});
    for (std::size_t c = 0; c < ranges_[s].size(); ++c)
      if (alive_[s][c] != 0) at[ranges_[s][c].begin].push_back({columns_[s][c], -1});
    for (const auto& [place, terms] : at) model.add_row({.lower = 0, .upper = 0}, terms);
  }
}

void RangeColumns::add_memory(MipModel& model, const PartitionProblem& problem, const StageCosts& costs,
                              std::optional<MipColumn> excess, Bytes unit) const {
  const std::vector<std::vector<StageId>> stages = stages_of_ranks(problem.graph);
  for (std::size_t r = 0; r < problem.budget.size(); ++r)
    for (const std::vector<std::int32_t>& live : problem.graph.live[r]) {
      std::vector<MipTerm> terms;
      Bytes largest = problem.budget[r];
      for (std::size_t i = 0; i < stages[r].size(); ++i) {
        const StageId stage = stages[r][i];
        for (std::size_t c = 0; c < ranges(stage).size(); ++c) {
          if (!alive(stage, c)) continue;
          const Bytes need = costs.held(stage, ranges(stage)[c]) +
                             costs.activation(stage, ranges(stage)[c]) * static_cast<double>(live[i]);
          terms.push_back({at(stage, c), need.value()});
          largest = std::max(largest, need);
        }
      }
      if (largest <= Bytes(0)) continue;
      if (excess) terms.push_back({*excess, -unit.value()});
      for (MipTerm& term : terms) term.coefficient /= largest.value();
      std::erase_if(terms, [](const MipTerm& term) { return std::abs(term.coefficient) < kNegligible; });
      model.add_row({.upper = problem.budget[r] / largest}, terms);
    }
}

Partition RangeColumns::partition_of(std::span<const double> values) const {
  Partition out;
  for (std::size_t s = 0; s < ranges_.size(); ++s) {
    std::size_t best = 0;
    double most = -1;
    for (std::size_t c = 0; c < ranges_[s].size(); ++c)
      if (alive_[s][c] != 0 && values[columns_[s][c].index()] > most) {
        most = values[columns_[s][c].index()];
        best = c;
      }
    out.stages.push_back(ranges_[s][best]);
  }
  return out;
}

std::vector<std::size_t> RangeColumns::chosen(const Partition& partition) const {
  std::vector<std::size_t> out;
  for (std::size_t s = 0; s < ranges_.size(); ++s) {
    const auto range = std::ranges::find(ranges_[s], partition.stages[s]);
    const auto c = static_cast<std::size_t>(range - ranges_[s].begin());
    if (range == ranges_[s].end() || alive_[s][c] == 0) return {};
    out.push_back(c);
  }
  return out;
}

}  // namespace tessera::train
