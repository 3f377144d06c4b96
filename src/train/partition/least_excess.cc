#include "least_excess.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "range_columns.h"
#include "tessera/core/solver/mip.h"

namespace tessera::train {

namespace {

// Ranges of all stages together up to which the MILP is asked: beyond, it takes longer than the message is
// worth, and a descent leaves the best found, said not to be proved.
constexpr std::size_t kProvedRanges = 150;
constexpr std::int64_t kNodes = 2'000;
constexpr double kTolerance = 1e-9;

// Moves runs of neighbouring boundaries by one place as long as that helps: the rank that exceeds most first,
// then all ranks together.
class Descent {
 public:
  Descent(const PartitionProblem& problem, const StageCosts& costs)
      : problem_(problem),
        costs_(costs),
        places_(all_places(problem)),
        stages_(stages_of_ranks(problem.graph)) {}

  // None when the boundaries' middles cannot be made to ascend.
  std::optional<Partition> run() {
    const std::int32_t step = problem_.empty_stages ? 0 : 1;
    for (const std::vector<std::int32_t>& places : places_) {
      if (places.empty()) return std::nullopt;
      const std::int32_t least = at_.empty() ? 0 : value(at_.size() - 1) + step;
      const std::size_t first =
          static_cast<std::size_t>(std::ranges::lower_bound(places, least) - places.begin());
      at_.push_back(std::max(places.size() / 2, first));
      if (at_.back() >= places.size()) return std::nullopt;
    }
    for (auto now = judge(); improve(now);) {
    }
    return partition();
  }

 private:
  using Judgement = std::pair<Bytes, double>;  // largest excess, sum of squares of all

  [[nodiscard]] std::int32_t value(std::size_t boundary) const { return places_[boundary][at_[boundary]]; }
  [[nodiscard]] Partition partition() const {
    Partition out;
    for (std::size_t s = 0; s + 1 < at_.size(); ++s) out.stages.push_back({value(s), value(s + 1)});
    return out;
  }

  [[nodiscard]] Judgement judge() {
    Judgement out{Bytes(-std::numeric_limits<double>::infinity()), 0};
    for (std::size_t r = 0; r < problem_.budget.size(); ++r) {
      Bytes most(-std::numeric_limits<double>::infinity());
      for (const std::vector<std::int32_t>& live : problem_.graph.live[r]) {
        Bytes need;
        for (std::size_t i = 0; i < stages_[r].size(); ++i) {
          const auto& [held, activation] = memory(stages_[r][i]);
          need += held + activation * static_cast<double>(live[i]);
        }
        most = std::max(most, need - problem_.budget[r]);
      }
      out.first = std::max(out.first, most);
      if (most > Bytes(0)) out.second += most.value() * most.value();
    }
    return out;
  }

  // Of a stage as it is now.
  const std::pair<Bytes, Bytes>& memory(StageId stage) {
    const BlockRange range{value(stage.index()), value(stage.index() + 1)};
    const auto [known, added] = memory_.try_emplace({stage, range.begin, range.end});
    if (added) known->second = {costs_.held(stage, range), costs_.activation(stage, range)};
    return known->second;
  }

  // From the boundary before `first` to the one after `last`: places need not be equally far apart.
  [[nodiscard]] bool ascends(std::size_t first, std::size_t last) const {
    for (std::size_t b = first; b <= last + 1; ++b)
      if (value(b) < value(b - 1) + (problem_.empty_stages ? 0 : 1)) return false;
    return true;
  }

  bool improve(Judgement& now) {
    for (std::size_t first = 1; first + 1 < at_.size(); ++first)
      for (std::size_t last = first; last + 1 < at_.size(); ++last)
        for (const int step : {-1, 1}) {
          const std::vector<std::size_t> before = at_;
          bool possible = true;
          for (std::size_t b = first; b <= last && possible; ++b) {
            possible = step > 0 ? at_[b] + 1 < places_[b].size() : at_[b] > 0;
            if (possible) at_[b] += static_cast<std::size_t>(step);
          }
          if (possible && ascends(first, last))
            if (const Judgement then = judge(); then < now) {
              now = then;
              return true;
            }
          at_ = before;
        }
    return false;
  }

  const PartitionProblem& problem_;
  const StageCosts& costs_;
  std::vector<std::vector<std::int32_t>> places_;
  std::vector<std::vector<StageId>> stages_;
  std::vector<std::size_t> at_;  // per boundary, index of its place
  std::map<std::tuple<StageId, std::int32_t, std::int32_t>, std::pair<Bytes, Bytes>> memory_;
};

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
  std::vector<std::vector<BlockRange>> ranges = stage_ranges(problem);
  std::size_t count = 0;
  for (const std::vector<BlockRange>& of_stage : ranges) count += of_stage.size();
  if (count > kProvedRanges)
    if (const std::optional<Partition> found = Descent(problem, costs).run())
      return excess_of(problem, costs, *found);
  MipModel model;
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
