// Times an action list by the rules of the reference vectors: a rank runs its actions in order; one starts
// when the rank is free and its inputs have come, `comm` later from another rank; both halves of a pair start
// and end together.
#pragma once

#include <algorithm>
#include <concepts>
#include <vector>

#include "tessera/train/schedule/eager.h"
#include "tessera/train/schedule/schedule_template.h"

namespace tessera::train::testing {

struct ChunkTimes {
  double f = 1, i = 1, w = 1, pair = 3, comm = 0;
  [[nodiscard]] double b() const { return i + w; }
};

struct OrderTimes {
  double makespan = 0;
  std::vector<double> idle;  ///< per rank, up to the makespan
  [[nodiscard]] double least_idle() const { return *std::ranges::min_element(idle); }
};

/// `of(stage)` gives the times of a stage.
template <std::invocable<StageId> Of>
OrderTimes order_times(const ActionList& list, Of&& of) {
  const ActionIndex index = ActionIndex::build(list).value();
  std::vector<std::vector<double>> end;
  for (const auto& actions : list.ranks) end.emplace_back(actions.size(), 0.0);
  std::vector<double> free(list.ranks.size(), 0.0), busy(list.ranks.size(), 0.0);
  run_eagerly(list, index, [&](ActionAt at) {
    const auto r = static_cast<std::size_t>(at.rank), k = static_cast<std::size_t>(at.index);
    const Action& action = list.ranks[r][k];
    const ChunkTimes t = of(action.stage);
    const ActionInputs inputs = inputs_of(action, index, list);
    for (const ActionAt input : {inputs.forward, inputs.backward})
      if (input.rank >= 0)
        free[r] = std::max(free[r],
                           end[static_cast<std::size_t>(input.rank)][static_cast<std::size_t>(input.index)] +
                               (input.rank == at.rank ? 0 : t.comm));
    const double takes = action.kind == ActionKind::forward           ? t.f
                         : action.kind == ActionKind::full_backward   ? t.b()
                         : action.kind == ActionKind::input_gradient  ? t.i
                         : action.kind == ActionKind::weight_gradient ? t.w
                                                                      : t.pair;
    end[r][k] = free[r] += takes;
    busy[r] += takes;
  });
  OrderTimes out;
  out.makespan = *std::ranges::max_element(free);
  for (const double b : busy) out.idle.push_back(out.makespan - b);
  return out;
}
inline OrderTimes order_times(const ActionList& list, const ChunkTimes& all) {
  return order_times(list, [&](StageId) { return all; });
}

inline ScheduleCosts costs_of(const ChunkTimes& t, int stages) {
  ScheduleCosts costs{.transfer = Seconds(t.comm)};
  costs.stages.assign(static_cast<std::size_t>(stages), {Seconds(t.f), Seconds(t.i), Seconds(t.w)});
  return costs;
}

}  // namespace tessera::train::testing
