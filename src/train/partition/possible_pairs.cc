#include "ranges.h"
#include "tessera/train/partition/measure.h"

namespace tessera::train {

std::vector<PairQuery> possible_pairs(const PartitionProblem& problem) {
  const std::vector<std::vector<BlockRange>> ranges = stage_ranges(problem);
  std::vector<PairQuery> out;
  for (const OverlapEdge& edge : problem.graph.edges) {
    const std::int32_t ahead = edge.forward.value() - edge.backward.value();
    for (const BlockRange f : ranges[edge.forward.index()]) {
      for (const BlockRange b : ranges[edge.backward.index()]) {
        if (ahead == 0 && !(f == b)) continue;
        if (ahead == -1 && f.end != b.begin) continue;
        if (ahead == 1 && b.end != f.begin) continue;
        out.push_back({edge.forward, f, edge.backward, b});
      }
    }
  }
  return out;
}

}  // namespace tessera::train
