#include "least_excess.h"

#include <algorithm>
#include <limits>

#include "range_columns.h"
#include "tessera/core/solver/mip.h"

namespace tessera::train {

namespace {

// The message is worth about a second; a larger tree leaves the best found, said not to be proved.
constexpr std::int64_t kNodes = 2'000;
constexpr double kTolerance = 1e-9;

}  // namespace

Excess excess_of(const PartitionProblem& problem, const StageCosts& costs, const Partition& partition) {
  Excess out{partition, RankId(0), Bytes(0), Bytes(-std::numeric_limits<double>::infinity())};
  const std::vector<std::vector<StageId>> stages = stages_of_ranks(problem.graph);
  for (std::size_t r = 0; r < problem.budget.size(); ++r)
    for (const std::vector<std::int32_t>& live : problem.graph.live[r]) {
      Bytes need;
      for (std::size_t i = 0; i < stages[r].size(); ++i) {
        const BlockRange range = partition.stages[stages[r][i].index()];
        need += costs.held(stages[r][i], range) +
                costs.activation(stages[r][i], range) * static_cast<double>(live[i]);
      }
      if (need - problem.budget[r] > out.excess) {
        out.rank = RankId(static_cast<std::int64_t>(r));
        out.need = need;
        out.excess = need - problem.budget[r];
      }
    }
  return out;
}

std::optional<Excess> least_excess(const PartitionProblem& problem, const StageCosts& costs) {
  MipModel model;
  std::vector<std::vector<BlockRange>> ranges = stage_ranges(problem);
  std::vector<std::vector<char>> alive;
  for (const std::vector<BlockRange>& of_stage : ranges) alive.emplace_back(of_stage.size(), 1);
  const RangeColumns columns(model, std::move(ranges), std::move(alive));
  Bytes unit(1);
  for (const Bytes budget : problem.budget) unit = std::max(unit, budget);
  const MipColumn excess = model.add_column({.cost = 1});
  columns.add_memory(model, problem, costs, excess, unit);
  const MipResult result = solve(model, {.node_limit = kNodes, .tolerance = kTolerance});
  if (!result.solved()) return std::nullopt;
  Excess out = excess_of(problem, costs, columns.partition_of(result.values));
  out.proved = result.reason == MipReason::optimal;
  return out;
}

}  // namespace tessera::train
