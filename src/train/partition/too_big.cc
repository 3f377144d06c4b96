#include "too_big.h"

#include <fmt/format.h>

#include "labelling.h"
#include "ranges.h"

namespace tessera::train {

std::optional<std::string> too_big(const PartitionProblem& problem) {
  for (std::size_t b = 0; b < problem.places.size(); ++b)
    if (problem.places[b].size() > kMostPlaces)
      return fmt::format("boundary {} has {} places; the sweep takes at most {}", b + 1,
                         problem.places[b].size(), kMostPlaces);
  const std::vector<std::vector<BlockRange>> ranges = stage_ranges(problem);
  std::size_t cells = 0;
  for (const MergedPair& pair : merged_pairs(problem.graph))
    if (!pair.self()) cells += ranges[pair.first.index()].size() * ranges[pair.second.index()].size();
  if (cells > kMostPairCells)
    return fmt::format("the ranges of overlapped stages make {} pairs; the sweep takes at most {}", cells,
                       kMostPairCells);
  return std::nullopt;
}

}  // namespace tessera::train
