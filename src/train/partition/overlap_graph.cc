#include "tessera/train/partition/overlap_graph.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace tessera::train {

namespace {

using LiveVector = std::vector<std::int32_t>;

bool covers(const LiveVector& larger, const LiveVector& smaller) {
  return std::ranges::equal(larger, smaller, std::ranges::greater_equal());
}

// Without those that another one covers in every entry.
std::vector<LiveVector> pareto_maximal(const std::set<LiveVector>& seen) {
  std::vector<LiveVector> out;
  for (const LiveVector& candidate : seen)
    if (std::ranges::none_of(
            seen, [&](const LiveVector& other) { return other != candidate && covers(other, candidate); }))
      out.push_back(candidate);
  return out;
}

// Does it lie on the line between two others? Then one of those needs at least as much memory, whatever the
// activations weigh.
bool between_others(const LiveVector& candidate, const std::vector<LiveVector>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (all[i] == candidate || all[k] == candidate) continue;
      // candidate = a + t · (b − a) with the same 0 < t < 1 in every entry: t = p / q.
      std::int64_t p = 0, q = 0;
      bool on_line = true;
      for (std::size_t e = 0; e < candidate.size() && on_line; ++e) {
        const std::int64_t part = candidate[e] - all[i][e], whole = all[k][e] - all[i][e];
        if (q == 0 && whole != 0) p = part, q = whole;
        on_line = whole == 0 ? part == 0 : part * q == p * whole;
      }
      if (on_line && q != 0 && (q > 0 ? p > 0 && p < q : p < 0 && p > q)) return true;
    }
  }
  return false;
}

std::vector<LiveVector> extreme(const std::vector<LiveVector>& vectors) {
  std::vector<LiveVector> out;
  std::ranges::copy_if(vectors, std::back_inserter(out),
                       [&](const LiveVector& v) { return !between_others(v, vectors); });
  return out;
}

// Replays one rank. `place` is a stage's entry in the rank's vectors.
std::set<LiveVector> live_vectors(const ActionList& list, std::size_t rank, std::size_t stages_of_rank,
                                  const std::vector<std::size_t>& place) {
  LiveVector live(stages_of_rank, 0);
  std::set<LiveVector> seen{live};
  bool grown = false;  // only the last of several forwards in a row can be a maximum
  const auto free_one = [&](StageId stage) {
    if (grown) seen.insert(live);
    grown = false;
    --live[place[stage.index()]];
  };
  for (const Action& cell : list.ranks[rank]) {
    const std::optional<Action> real = list.real_part(cell);
    if (!real) continue;
    const Action& action = *real;
    const bool pair = action.kind == ActionKind::overlap;
    if (pair || action.kind == ActionKind::forward) {
      ++live[place[action.stage.index()]];
      grown = true;
    }
    const ActionKind backward = pair ? action.backward_kind : action.kind;
    if (backward == ActionKind::full_backward || backward == ActionKind::input_gradient)
      free_one(pair ? action.backward_stage : action.stage);
  }
  if (grown) seen.insert(live);
  return seen;
}

// Ranks with the same stages as one.
struct Folded {
  std::size_t ranks = 0;
  std::vector<std::size_t> rank;      // of the list's ranks
  std::vector<RankId> rank_of_stage;  // of the stages of one pipeline
};
Folded fold(const ActionList& actions) {
  const std::size_t stages = actions.stages() / static_cast<std::size_t>(std::max(actions.pipelines, 1));
  std::vector<std::set<std::size_t>> holds(actions.ranks.size());
  for (std::size_t s = 0; s < actions.stages(); ++s)
    holds[actions.rank_of_stage[s].index()].insert(s % stages);
  Folded out;
  for (std::size_t r = 0; r < holds.size(); ++r) {
    const auto twin = std::ranges::find(holds, holds[r]);
    const auto first = static_cast<std::size_t>(twin - holds.begin());
    // Ranks that hold nothing are not alike in anything that matters.
    out.rank.push_back(first < r && actions.pipelines > 1 ? out.rank[first] : out.ranks++);
  }
  for (std::size_t s = 0; s < stages; ++s)
    out.rank_of_stage.emplace_back(static_cast<std::int64_t>(out.rank[actions.rank_of_stage[s].index()]));
  return out;
}

}  // namespace

OverlapGraph overlap_graph(const ActionList& actions) {
  const Folded folded = fold(actions);
  OverlapGraph out;
  out.rank_of_stage = folded.rank_of_stage;
  const std::size_t stages = folded.rank_of_stage.size();
  const auto one = [&](StageId stage) { return StageId(stage.value() % static_cast<std::int32_t>(stages)); };

  std::map<std::pair<StageId, StageId>, std::int64_t> pairs;
  std::vector<char> paired(stages, 0);
  for (const std::vector<Action>& rank : actions.ranks) {
    std::map<std::pair<StageId, StageId>, std::int64_t> of_rank;
    for (const Action& cell : rank)
      if (const auto action = actions.real_part(cell); action && action->kind == ActionKind::overlap)
        ++of_rank[{one(action->stage), one(action->backward_stage)}];
    for (const auto& [pair, multiplicity] : of_rank) pairs[pair] = std::max(pairs[pair], multiplicity);
  }
  for (const auto& [pair, multiplicity] : pairs) {
    out.edges.push_back({pair.first, pair.second, multiplicity});
    paired[pair.first.index()] = paired[pair.second.index()] = 1;
  }
  for (std::size_t s = 0; s < stages; ++s)
    if (const StageId stage(static_cast<std::int64_t>(s)); paired[s] == 0)
      out.alone.push_back({stage, actions.real_microbatches(stage)});

  std::vector<std::size_t> place(actions.stages(), 0);
  std::vector<std::size_t> count(folded.ranks, 0);
  for (std::size_t s = 0; s < actions.stages(); ++s)
    place[s] = s < stages ? count[folded.rank_of_stage[s].index()]++ : place[s - stages];
  std::vector<std::set<LiveVector>> live(folded.ranks);
  for (std::size_t r = 0; r < actions.ranks.size(); ++r)
    live[folded.rank[r]].merge(live_vectors(actions, r, count[folded.rank[r]], place));
  for (const std::set<LiveVector>& seen : live) out.live.push_back(extreme(pareto_maximal(seen)));
  return out;
}

}  // namespace tessera::train
