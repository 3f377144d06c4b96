#include "ranges.h"

#include <map>
#include <utility>

namespace tessera::train {

std::vector<std::vector<std::int32_t>> all_places(const PartitionProblem& problem) {
  std::vector<std::vector<std::int32_t>> out{{0}};
  out.insert(out.end(), problem.places.begin(), problem.places.end());
  out.push_back({problem.blocks});
  return out;
}

std::vector<std::vector<BlockRange>> stage_ranges(const PartitionProblem& problem) {
  const std::vector<std::vector<std::int32_t>> places = all_places(problem);
  std::vector<std::vector<BlockRange>> out(static_cast<std::size_t>(problem.stages()));
  for (std::size_t s = 0; s < out.size(); ++s)
    for (const std::int32_t begin : places[s])
      for (const std::int32_t end : places[s + 1])
        if (end > begin || (end == begin && problem.empty_stages)) out[s].push_back({begin, end});
  return out;
}

std::vector<MergedPair> merged_pairs(const OverlapGraph& graph) {
  std::map<std::pair<StageId, StageId>, MergedPair> merged;
  for (const OverlapEdge& edge : graph.edges) {
    const auto [first, second] = std::minmax(edge.forward, edge.backward);
    MergedPair& pair = merged[{first, second}];
    pair.first = first;
    pair.second = second;
    (edge.forward == first ? pair.first_forward : pair.second_forward) += edge.multiplicity;
  }
  std::vector<MergedPair> out;
  for (const auto& [stages, pair] : merged) out.push_back(pair);
  return out;
}

std::vector<std::int32_t> boundaries(const Partition& partition) {
  std::vector<std::int32_t> out;
  for (std::size_t s = 1; s < partition.stages.size(); ++s) out.push_back(partition.stages[s].begin);
  return out;
}

Partition partition_of(std::span<const std::int32_t> boundaries, std::int32_t blocks) {
  Partition out;
  std::int32_t begin = 0;
  for (const std::int32_t end : boundaries) {
    out.stages.push_back({begin, end});
    begin = end;
  }
  out.stages.push_back({begin, blocks});
  return out;
}

std::vector<std::vector<StageId>> stages_of_ranks(const OverlapGraph& graph) {
  std::vector<std::vector<StageId>> out(graph.live.size());
  for (std::size_t s = 0; s < graph.rank_of_stage.size(); ++s)
    out[graph.rank_of_stage[s].index()].push_back(StageId(static_cast<std::int64_t>(s)));
  return out;
}

}  // namespace tessera::train
