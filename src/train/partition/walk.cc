#include "walk.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace tessera::train {
namespace {

using Neighbours = std::vector<std::vector<WalkStep::Met>>;  // per track of one rank

// Which tracks of a rank stay open after each of them is taken in this order.
std::vector<std::vector<std::size_t>> open_after(const std::vector<std::size_t>& order,
                                                 const Neighbours& neighbours) {
  std::vector<std::vector<std::size_t>> open;
  for (std::size_t k = 0; k < order.size(); ++k) {
    auto& now = open.emplace_back();
    for (std::size_t i = 0; i <= k; ++i)
      for (const WalkStep::Met& met : neighbours[order[i]])
        if (std::find(order.begin() + static_cast<std::ptrdiff_t>(k) + 1, order.end(), met.track) !=
            order.end()) {
          now.push_back(order[i]);
          break;
        }
  }
  return open;
}

// The order that keeps fewest tracks open: from each track on, always the next that leaves fewest.
std::vector<std::size_t> order_of(const Neighbours& neighbours) {
  const std::size_t tracks = neighbours.size();
  std::vector<std::size_t> best;
  std::size_t fewest = tracks + 1;
  for (std::size_t start = 0; start < tracks; ++start) {
    std::vector<std::size_t> order{start};
    while (order.size() < tracks) {
      std::size_t choice = tracks, least = tracks + 1;
      for (std::size_t t = 0; t < tracks; ++t) {
        if (std::ranges::find(order, t) != order.end()) continue;
        std::vector<std::size_t> trial = order;
        trial.push_back(t);
        for (std::size_t rest = 0; rest < tracks; ++rest)
          if (std::ranges::find(trial, rest) == trial.end()) trial.push_back(rest);
        const std::size_t open = open_after(trial, neighbours)[order.size()].size();
        if (open < least) least = open, choice = t;
      }
      order.push_back(choice);
    }
    std::size_t most = 0;
    for (const auto& open : open_after(order, neighbours)) most = std::max(most, open.size());
    if (most < fewest) fewest = most, best = order;
  }
  return best;
}

}  // namespace

std::optional<Walk> walk_of(const Labelling& labelling) {
  const auto& rank_of_stage = labelling.problem().graph.rank_of_stage;
  const std::size_t stages = labelling.stages();
  std::set<std::int32_t> ranks;
  for (const RankId rank : rank_of_stage) ranks.insert(rank.value());
  const std::size_t each = ranks.size();
  if (each == 0 || stages % each != 0) return std::nullopt;
  Walk walk{.tracks = stages / each};

  std::vector<RankId> line(rank_of_stage.begin(), rank_of_stage.begin() + static_cast<std::ptrdiff_t>(each));
  if (std::set<std::int32_t> distinct; [&] {
        for (const RankId rank : line) distinct.insert(rank.value());
        return distinct.size();
      }() != each)
    return std::nullopt;
  std::vector<bool> down(walk.tracks, false);
  for (std::size_t t = 0; t < walk.tracks; ++t) {
    const auto first = rank_of_stage.begin() + static_cast<std::ptrdiff_t>(t * each);
    const bool up = std::equal(line.begin(), line.end(), first);
    down[t] = !up;
    if (!up && !std::equal(line.rbegin(), line.rend(), first)) return std::nullopt;
  }

  for (std::size_t t = 0; t + 1 < walk.tracks; ++t) {
    Join join{.from = t, .to = t + 1, .boundary = (t + 1) * each};
    if (down[t] == down[t + 1]) {
      join.kind = Join::Kind::stitch;
      if (down[t]) std::swap(join.from, join.to);
    } else {
      join.kind = down[t] ? Join::Kind::same_start : Join::Kind::same_end;
    }
    walk.joins.push_back(join);
  }

  for (std::size_t r = 0; r < each; ++r) {
    const auto stage_of = [&](std::size_t t) { return t * each + (down[t] ? each - 1 - r : r); };
    Neighbours neighbours(walk.tracks);
    for (std::size_t t = 0; t < walk.tracks; ++t)
      for (const std::size_t index : labelling.pairs_of(stage_of(t))) {
        const StagePair& pair = labelling.pairs()[index];
        const std::size_t other = pair.first == stage_of(t) ? pair.second : pair.first;
        if (stage_of(other / each) != other) return std::nullopt;  // a pair across ranks
        neighbours[t].push_back({.track = other / each, .pair = index});
      }
    const std::vector<std::size_t> order = order_of(neighbours);
    const auto open = open_after(order, neighbours);
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::size_t t = order[k], s = stage_of(t);
      WalkStep step{.stage = s,
                    .track = t,
                    .rank = static_cast<std::size_t>(line[r].value()),
                    .entry = down[t] ? s + 1 : s,
                    .exit = down[t] ? s : s + 1,
                    .last_of_rank = k + 1 == order.size(),
                    .open = open[k]};
      for (const WalkStep::Met& met : neighbours[t])
        if (std::find(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), met.track) !=
            order.begin() + static_cast<std::ptrdiff_t>(k))
          step.met.push_back(met);
      walk.steps.push_back(std::move(step));
    }
  }
  return walk;
}

}  // namespace tessera::train
