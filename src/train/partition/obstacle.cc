// Why nothing satisfies a problem, in words: first what can be seen of a boundary or a rank alone, then what
// only all ranks together cannot meet.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "least_excess.h"
#include "memory_text.h"
#include "ranges.h"
#include "solvers.h"

namespace tessera::train {

namespace {

std::string blocks_text(std::int32_t count) {
  return fmt::format("{} block{}", count, count == 1 ? "" : "s");
}

// Boundaries only have to ascend, so the earliest place of the one before decides.
std::optional<std::string> boundary_obstacle(const PartitionProblem& problem) {
  const std::vector<std::vector<std::int32_t>> places = all_places(problem);
  const std::int32_t step = problem.empty_stages ? 0 : 1;
  std::int32_t earliest = 0;
  for (std::size_t b = 1; b < places.size(); ++b) {
    if (places[b].empty()) return fmt::format("boundary {} has no place at all", b);
    const std::int32_t least = earliest + step;
    const auto next = std::ranges::lower_bound(places[b], least);
    if (next == places[b].end()) {
      const std::int32_t latest = places[b].back();
      const std::string short_by = blocks_text(least - latest);
      if (b + 1 == places.size())
        return fmt::format(
            "the last stage has no place: it starts at block {} at the earliest, and the model ends "
            "at block {}, {} too early",
            earliest, latest, short_by);
      return fmt::format(
          "boundary {} has no place: stage {} starts at block {} at the earliest, and the boundary "
          "lies at block {} at the latest, {} too early",
          b, b - 1, earliest, latest, short_by);
    }
    earliest = *next;
  }
  return std::nullopt;
}

// Each rank with the ranges that need least, whether or not they tile.
std::optional<std::string> rank_obstacle(const PartitionProblem& problem, const StageCosts& costs) {
  const std::vector<std::vector<BlockRange>> ranges = stage_ranges(problem);
  const std::vector<std::vector<StageId>> stages = stages_of_ranks(problem.graph);
  std::string words;
  Bytes worst;
  std::int64_t ranks = 0;
  for (std::size_t r = 0; r < problem.budget.size(); ++r) {
    Bytes most;
    for (const std::vector<std::int32_t>& live : problem.graph.live[r]) {
      Bytes need;
      for (std::size_t i = 0; i < stages[r].size(); ++i) {
        Bytes least(std::numeric_limits<double>::infinity());
        for (const BlockRange range : ranges[stages[r][i].index()])
          least = std::min(least, costs.held(stages[r][i], range) +
                                      costs.activation(stages[r][i], range) * static_cast<double>(live[i]));
        need += least;
      }
      most = std::max(most, need);
    }
    if (most <= problem.budget[r]) continue;
    ++ranks;
    if (most - problem.budget[r] <= worst) continue;
    worst = most - problem.budget[r];
    words = fmt::format("rank {} needs at least {}", r,
                        need_text(most, problem.budget[r], " even with the lightest stages"));
  }
  if (ranks == 0) return std::nullopt;
  if (ranks > 1)
    words += fmt::format("; {} more rank{} too much too", ranks - 1, ranks == 2 ? " needs" : "s need");
  return words;
}

}  // namespace

std::optional<std::string> single_obstacle(const PartitionProblem& problem, const StageCosts& costs) {
  if (std::optional<std::string> words = boundary_obstacle(problem)) return words;
  return rank_obstacle(problem, costs);
}

std::optional<std::string> explain_infeasible(const PartitionProblem& problem, const StageCosts& costs) {
  if (std::optional<std::string> words = single_obstacle(problem, costs)) return words;
  const std::optional<Excess> least = least_excess(problem, costs);
  if (least && least->excess <= Bytes(0)) return std::nullopt;
  if (!least) return "no partition within the places fits the memory of all ranks at once";
  return fmt::format("every rank can fit alone, but not all at once: {} rank {} needs {}",
                     least->proved ? "at best" : "in the best partition tried", least->rank.value(),
                     need_text(least->need, problem.budget[least->rank.index()]));
}

}  // namespace tessera::train
