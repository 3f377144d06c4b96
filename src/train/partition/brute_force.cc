// Every partition of the places, in the words of the definition: what the other solvers are held against.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "ranges.h"
#include "solvers.h"

namespace tessera::train {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kManyPartitions = std::int64_t{1} << 62;

using Boundaries = std::vector<std::int32_t>;

std::int64_t count_partitions(const PartitionProblem& problem) {
  const std::vector<std::vector<std::int32_t>> places = all_places(problem);
  std::vector<std::int64_t> ways{1};
  for (std::size_t s = 1; s < places.size(); ++s) {
    std::vector<std::int64_t> next(places[s].size(), 0);
    for (std::size_t e = 0; e < next.size(); ++e)
      for (std::size_t b = 0; b < ways.size(); ++b)
        if (places[s][e] > places[s - 1][b] || (places[s][e] == places[s - 1][b] && problem.empty_stages))
          next[e] = std::min(kManyPartitions, next[e] + ways[b]);
    ways = std::move(next);
  }
  return ways.front();
}

// T, held and activation of every range of every stage, so that a partition is valued by looking up.
class Costs {
 public:
  Costs(const PartitionProblem& problem, StageCosts& costs)
      : problem_(problem),
        places_(all_places(problem)),
        ranges_(stage_ranges(problem)),
        stages_of_ranks_(stages_of_ranks(problem.graph)) {
    for (const OverlapEdge& edge : problem.graph.edges) {
      std::vector<PairQuery> queries;
      for (const BlockRange f : ranges_[edge.forward.index()])
        for (const BlockRange b : ranges_[edge.backward.index()])
          queries.push_back({edge.forward, f, edge.backward, b});
      pairs_.push_back(costs.times(queries));
      timed_ += std::ssize(queries);
    }
    for (const AloneStage& alone : problem.graph.alone) {
      std::vector<Seconds>& times = alone_.emplace_back();
      for (const BlockRange range : ranges_[alone.stage.index()])
        times.push_back(costs.alone(alone.stage, range));
    }
    for (std::size_t s = 0; s < ranges_.size(); ++s) {
      const StageId stage(static_cast<std::int64_t>(s));
      held_.emplace_back();
      activation_.emplace_back();
      for (const BlockRange range : ranges_[s]) {
        held_[s].push_back(costs.held(stage, range));
        activation_[s].push_back(costs.activation(stage, range));
      }
      // From the two boundaries to the range; those that run backwards belong to no partition.
      std::vector<std::size_t>& index = index_.emplace_back(places_[s].size() * places_[s + 1].size(), 0);
      std::size_t next = 0;
      for (std::size_t b = 0; b < places_[s].size(); ++b)
        for (std::size_t e = 0; e < places_[s + 1].size(); ++e)
          if (next < ranges_[s].size() && ranges_[s][next] == BlockRange{places_[s][b], places_[s + 1][e]})
            index[b * places_[s + 1].size() + e] = next++;
    }
  }

  [[nodiscard]] const std::vector<std::vector<std::int32_t>>& places() const noexcept { return places_; }
  [[nodiscard]] std::int64_t timed() const noexcept { return timed_; }

  /// `at[s]` is the index of boundary s among its places.
  [[nodiscard]] bool fits(const std::vector<std::size_t>& at) const {
    for (std::size_t r = 0; r < problem_.budget.size(); ++r)
      for (const std::vector<std::int32_t>& live : problem_.graph.live[r]) {
        Bytes need;
        for (std::size_t i = 0; i < stages_of_ranks_[r].size(); ++i) {
          const StageId stage = stages_of_ranks_[r][i];
          const std::size_t range = range_of(stage, at);
          need +=
              held_[stage.index()][range] + activation_[stage.index()][range] * static_cast<double>(live[i]);
        }
        if (need > problem_.budget[r]) return false;
      }
    return true;
  }
  /// (slowest, work).
  [[nodiscard]] std::pair<Seconds, Seconds> value(const std::vector<std::size_t>& at) const {
    Seconds slowest, work;
    const auto count = [&](Seconds time, std::int64_t multiplicity) {
      slowest = std::max(slowest, time);
      work += time * static_cast<double>(multiplicity);
    };
    const OverlapGraph& graph = problem_.graph;
    for (std::size_t e = 0; e < graph.edges.size(); ++e) {
      const OverlapEdge& edge = graph.edges[e];
      const std::size_t columns = ranges_[edge.backward.index()].size();
      count(pairs_[e][range_of(edge.forward, at) * columns + range_of(edge.backward, at)], edge.multiplicity);
    }
    for (std::size_t a = 0; a < graph.alone.size(); ++a)
      count(alone_[a][range_of(graph.alone[a].stage, at)], graph.alone[a].multiplicity);
    return {slowest, work};
  }

 private:
  [[nodiscard]] std::size_t range_of(StageId stage, const std::vector<std::size_t>& at) const {
    const std::size_t s = stage.index();
    return index_[s][at[s] * places_[s + 1].size() + at[s + 1]];
  }

  const PartitionProblem& problem_;
  std::vector<std::vector<std::int32_t>> places_;
  std::vector<std::vector<BlockRange>> ranges_;
  std::vector<std::vector<StageId>> stages_of_ranks_;
  std::vector<std::vector<std::size_t>> index_;
  std::vector<std::vector<Seconds>> pairs_, alone_;
  std::vector<std::vector<Bytes>> held_, activation_;
  std::int64_t timed_ = 0;
};

struct Candidate {
  Seconds slowest, work;
  Boundaries at;
};
struct ByWork {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return std::tie(a.work, a.at) < std::tie(b.work, b.at);
  }
};

}  // namespace

PartitionResult solve_partition_brute_force(const PartitionProblem& problem, StageCosts& costs,
                                            const PartitionOptions& options) {
  PartitionResult result;
  if (const std::int64_t all = count_partitions(problem); all > options.work_limit) {
    result.reason = PartitionReason::too_big;
    result.obstacle = fmt::format("the places make {}{} partitions; brute force was to try at most {}",
                                  all == kManyPartitions ? "over " : "", all, options.work_limit);
    return result;
  }
  const Costs table(problem, costs);
  const std::vector<std::vector<std::int32_t>>& places = table.places();
  const auto stages = static_cast<std::size_t>(problem.stages());
  result.pairs_timed = table.timed();

  // All partitions within their memory, by boundaries.
  std::vector<std::size_t> at(stages + 1, 0);
  const auto for_each = [&](const auto& visit) {
    const auto place_from = [&](const auto& self, std::size_t s) -> void {
      for (at[s] = 0; at[s] < places[s].size(); ++at[s]) {
        const std::int32_t least = places[s - 1][at[s - 1]] + (problem.empty_stages ? 0 : 1);
        if (places[s][at[s]] < least) continue;
        if (s < stages) {
          self(self, s + 1);
        } else {
          ++result.work;
          if (table.fits(at)) visit(table.value(at));
        }
      }
    };
    place_from(place_from, 1);
  };
  const auto here = [&](Seconds slowest, Seconds work) {
    Candidate out{slowest, work, {}};
    for (std::size_t s = 1; s < stages; ++s) out.at.push_back(places[s][at[s]]);
    return out;
  };

  // The optimum, and the slowest pairs of as many as are wanted.
  const auto keep = static_cast<std::size_t>(std::max(1, options.keep));
  Candidate optimum{Seconds(kInfinity), Seconds(kInfinity), {}};
  std::multiset<Seconds> fastest;
  for_each([&](std::pair<Seconds, Seconds> value) {
    // Boundaries ascend from visit to visit: of equals the first stays.
    if (value < std::pair(optimum.slowest, optimum.work)) optimum = here(value.first, value.second);
    if (fastest.size() == keep && value.first >= *fastest.rbegin()) return;
    fastest.insert(value.first);
    if (fastest.size() > keep) fastest.erase(std::prev(fastest.end()));
  });
  if (fastest.empty()) {
    result.reason = PartitionReason::infeasible;
    return result;
  }
  result.reach = optimum.slowest * std::max(1.0, options.widest);
  if (fastest.size() == keep) result.reach = std::min(result.reach, *fastest.rbegin());

  // Of those within reach the least Σ.
  std::set<Candidate, ByWork> least;
  for_each([&](std::pair<Seconds, Seconds> value) {
    if (value.first > result.reach) return;
    if (least.size() == keep && value.second > least.rbegin()->work) return;
    least.insert(here(value.first, value.second));
    if (least.size() > keep) least.erase(std::prev(least.end()));
  });
  const auto add = [&](const Candidate& candidate) {
    Partition partition = partition_of(candidate.at, problem.blocks);
    // The checker knows the rest of the value, and agrees with this search or shows its fault.
    const Result<PartitionValue> value = evaluate(problem, costs, partition);
    if (value) result.best.push_back({std::move(partition), *value});
  };
  add(optimum);
  for (const Candidate& candidate : least)
    if (candidate.at != optimum.at) add(candidate);
  result.bound = optimum.slowest;
  result.reason = PartitionReason::optimal;
  return result;
}

}  // namespace tessera::train
