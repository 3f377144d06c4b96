#include "tessera/train/schedule/check_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tessera/train/schedule/eager.h"

namespace tessera::train {
namespace {

constexpr std::size_t kShownActions = 24;  // of a cycle; a longer one is cut

// Every rank that stands still waits for an action of another that stands still too: following the waits must
// come back.
std::unexpected<Error> deadlock(const ActionList& list, const ActionIndex& index,
                                const std::vector<std::int32_t>& done) {
  const auto stuck = [&](std::size_t r) { return static_cast<std::size_t>(done[r]) < list.ranks[r].size(); };
  const auto blocker = [&](std::size_t r) {
    const ActionInputs inputs = inputs_of(list.ranks[r][static_cast<std::size_t>(done[r])], index, list);
    const ActionAt f = inputs.forward;
    return f.rank >= 0 && f.index >= done[static_cast<std::size_t>(f.rank)] ? f : inputs.backward;
  };
  std::size_t rank = 0;
  while (!stuck(rank)) ++rank;
  std::vector<std::int32_t> visited(list.ranks.size(), -1);
  std::vector<std::size_t> path;
  while (visited[rank] < 0) {
    visited[rank] = static_cast<std::int32_t>(path.size());
    path.push_back(rank);
    rank = static_cast<std::size_t>(blocker(rank).rank);
  }
  const std::vector<std::size_t> cycle(path.begin() + visited[rank], path.end());

  std::string lines;
  for (std::size_t i = 0; i < std::min(cycle.size(), kShownActions); ++i) {
    const std::size_t r = cycle[i];
    const ActionAt wanted = blocker(r);
    const Action& waiting = list.ranks[r][static_cast<std::size_t>(done[r])];
    const Action& later =
        list.ranks[static_cast<std::size_t>(wanted.rank)][static_cast<std::size_t>(wanted.index)];
    lines += fmt::format("{}rank {} action {}, {}, waits for rank {} action {}, {}", i == 0 ? "" : "\n", r,
                         done[r], text(waiting), wanted.rank, wanted.index, text(later));
  }
  if (cycle.size() > kShownActions) lines += fmt::format("\n… and {} more", cycle.size() - kShownActions);
  return infeasible(
      cycle.size() == 1
          ? std::string("the schedule deadlocks: an action waits for a later one of its own rank")
          : fmt::format("the schedule deadlocks: {} actions wait for each other in a circle", cycle.size()),
      lines);
}

}  // namespace

Result<ScheduleFacts> check_schedule(const ActionList& list) {
  TESSERA_TRY(const ActionIndex index, ActionIndex::build(list));
  const std::vector<std::int32_t> done = run_eagerly(list, index, [](ActionAt) {});
  for (std::size_t r = 0; r < list.ranks.size(); ++r)
    if (static_cast<std::size_t>(done[r]) < list.ranks[r].size()) return deadlock(list, index, done);

  ScheduleFacts facts;
  for (const auto& actions : list.ranks) {
    std::int32_t live = 0, held = 0, peak_live = 0, peak_held = 0;
    for (const Action& cell : actions) {
      const std::optional<Action> real = list.real_part(cell);
      if (!real) continue;
      const Action& action = *real;
      const bool pair = action.kind == ActionKind::overlap;
      const ActionKind kind = pair ? action.backward_kind : action.kind;
      if (pair || action.kind == ActionKind::forward) {
        peak_live = std::max(peak_live, ++live);
        peak_held = std::max(peak_held, ++held);
      }
      if (kind == ActionKind::full_backward || kind == ActionKind::input_gradient) --live;
      if (kind == ActionKind::full_backward || kind == ActionKind::weight_gradient) --held;
      facts.actions += pair ? 2 : 1;
    }
    facts.peak_live.push_back(peak_live);
    facts.peak_until_weight.push_back(peak_held);
  }
  return facts;
}

}  // namespace tessera::train
