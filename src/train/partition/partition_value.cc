// The checker: a partition's value straight from its definition. It shares no code with the solvers.
#include <fmt/format.h>

#include <algorithm>

#include "memory_text.h"
#include "tessera/train/partition/partition_problem.h"

namespace tessera::train {

namespace {

Status check_places(const PartitionProblem& problem, const Partition& partition) {
  const std::size_t stages = partition.stages.size();
  if (static_cast<std::int32_t>(stages) != problem.stages())
    return infeasible(fmt::format("the partition has {} stages, the schedule {}", stages, problem.stages()));
  std::int32_t covered = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    const auto [begin, end] = partition.stages[s];
    if (begin != covered || end < begin)
      return infeasible(
          fmt::format("stage {} holds blocks {} to {}; expected to start at {}", s, begin, end, covered));
    if (s > 0 && !std::ranges::binary_search(problem.places[s - 1], begin))
      return infeasible(fmt::format("boundary {} may not lie at block {}", s, begin));
    if (begin == end && !problem.empty_stages) return infeasible(fmt::format("stage {} is empty", s));
    covered = end;
  }
  if (covered != problem.blocks)
    return infeasible(fmt::format("the partition ends at block {} of {}", covered, problem.blocks));
  return {};
}

Status check_memory(const PartitionProblem& problem, const StageCosts& costs, const Partition& partition) {
  const OverlapGraph& graph = problem.graph;
  for (std::size_t r = 0; r < problem.budget.size(); ++r)
    for (const std::vector<std::int32_t>& live : graph.live[r]) {
      Bytes need;
      std::size_t entry = 0;
      for (std::size_t s = 0; s < partition.stages.size(); ++s) {
        if (graph.rank_of_stage[s].index() != r) continue;
        const StageId stage(static_cast<std::int64_t>(s));
        need += costs.held(stage, partition.stages[s]) +
                costs.activation(stage, partition.stages[s]) * static_cast<double>(live[entry++]);
      }
      if (need > problem.budget[r])
        return infeasible(fmt::format("rank {} needs {}", r, need_text(need, problem.budget[r])));
    }
  return {};
}

}  // namespace

Result<PartitionValue> evaluate(const PartitionProblem& problem, StageCosts& costs,
                                const Partition& partition) {
  TESSERA_CHECK(check_places(problem, partition));
  TESSERA_CHECK(check_memory(problem, costs, partition));

  const OverlapGraph& graph = problem.graph;
  std::vector<PairQuery> queries;
  for (const OverlapEdge& edge : graph.edges)
    queries.push_back({edge.forward, partition.stages[edge.forward.index()], edge.backward,
                       partition.stages[edge.backward.index()]});
  const std::vector<Seconds> times = costs.times(queries);

  PartitionValue value;
  std::vector<Seconds> rank_work(graph.live.size());
  const auto count = [&](StageId stage, Seconds time, std::int64_t multiplicity) {
    value.slowest = std::max(value.slowest, time);
    value.work += time * static_cast<double>(multiplicity);
    rank_work[graph.rank_of_stage[stage.index()].index()] += time * static_cast<double>(multiplicity);
  };
  for (std::size_t e = 0; e < graph.edges.size(); ++e)
    count(graph.edges[e].forward, times[e], graph.edges[e].multiplicity);
  for (const AloneStage& alone : graph.alone)
    count(alone.stage, costs.alone(alone.stage, partition.stages[alone.stage.index()]), alone.multiplicity);
  value.worst_rank = rank_work.empty() ? Seconds() : std::ranges::max(rank_work);
  return value;
}

}  // namespace tessera::train
