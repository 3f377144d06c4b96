// Where each chunk of the schedule runs, and walking an action list as its ranks would: the common ground of
// the checker and the simulator.
//
// Eager execution: a rank starts its next action as soon as the action's inputs exist; a send never waits for
// its receiver. An action's inputs are the forward of the stage before and the backward of the stage after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/train/schedule/action.h"

namespace tessera::train {

/// ActionList::ranks[rank][index].
struct ActionAt {
  std::int32_t rank = -1;
  std::int32_t index = -1;
  bool operator==(const ActionAt&) const = default;
};

/// Finds the action that runs a given chunk for a given microbatch. O(1) a look-up.
class ActionIndex {
 public:
  /// Also proves that the list is complete: every (stage, microbatch) once per pass, on the rank that holds
  /// the stage, F before B and I before W. A failure is infeasible and names the action. Linear time; memory
  /// is bounded by the number of actions, whatever `microbatches` says.
  [[nodiscard]] static Result<ActionIndex> build(const ActionList& list);

  [[nodiscard]] ActionAt forward(StageId s, MicrobatchId m) const noexcept { return at(forward_, s, m); }
  /// The full backward or the input gradient.
  [[nodiscard]] ActionAt backward(StageId s, MicrobatchId m) const noexcept { return at(backward_, s, m); }
  /// The weight gradient, or the full backward that holds it.
  [[nodiscard]] ActionAt weight(StageId s, MicrobatchId m) const noexcept { return at(weight_, s, m); }

 private:
  [[nodiscard]] ActionAt at(const std::vector<std::int32_t>& where, StageId s,
                            MicrobatchId m) const noexcept {
    return {rank_of_stage_[s.index()].value(), where[s.index() * microbatches_ + m.index()]};
  }
  std::size_t microbatches_ = 0;
  std::vector<RankId> rank_of_stage_;
  std::vector<std::int32_t> forward_, backward_, weight_;
};

/// The actions whose results this one needs from the stages before and after; absent ones have rank −1.
struct ActionInputs {
  ActionAt forward;   ///< of the stage before, for the action's forward
  ActionAt backward;  ///< of the stage after, for the action's backward
};
[[nodiscard]] inline ActionInputs inputs_of(const Action& action, const ActionIndex& index,
                                            const ActionList& list) noexcept {
  const bool pair = action.kind == ActionKind::overlap;
  ActionInputs inputs;
  if ((pair || action.kind == ActionKind::forward) && list.has_previous(action.stage))
    inputs.forward = index.forward(StageId(action.stage.value() - 1), action.microbatch);
  if (pair || action.kind == ActionKind::full_backward || action.kind == ActionKind::input_gradient) {
    const StageId stage = pair ? action.backward_stage : action.stage;
    if (list.has_next(stage))
      inputs.backward =
          index.backward(StageId(stage.value() + 1), pair ? action.backward_microbatch : action.microbatch);
  }
  return inputs;
}

/// Calls visit(ActionAt) for every action, each after its rank's previous one and after its inputs, in linear
/// time and always in the same order. Returns how far each rank came: short of its end in a deadlock.
template <class Visit>
std::vector<std::int32_t> run_eagerly(const ActionList& list, const ActionIndex& index, Visit&& visit) {
  const auto ranks = static_cast<std::int32_t>(list.ranks.size());
  std::vector<std::size_t> first(list.ranks.size() + 1, 0);
  for (std::size_t r = 0; r < list.ranks.size(); ++r) first[r + 1] = first[r] + list.ranks[r].size();
  // A blocked rank waits for one action; the ranks that wait for the same one form a list.
  std::vector<std::int32_t> waiter(first.back(), -1);
  std::vector<std::int32_t> next_waiter(list.ranks.size(), -1);
  std::vector<std::int32_t> done(list.ranks.size(), 0);
  std::vector<std::int32_t> runnable(list.ranks.size());
  for (std::int32_t r = 0; r < ranks; ++r) runnable[static_cast<std::size_t>(r)] = ranks - 1 - r;

  const auto missing = [&](ActionAt input) {
    return input.rank >= 0 && input.index >= done[static_cast<std::size_t>(input.rank)];
  };
  while (!runnable.empty()) {
    const std::int32_t rank = runnable.back();
    runnable.pop_back();
    const auto r = static_cast<std::size_t>(rank);
    const std::vector<Action>& actions = list.ranks[r];
    for (std::int32_t& i = done[r]; static_cast<std::size_t>(i) < actions.size();) {
      const ActionInputs inputs = inputs_of(actions[static_cast<std::size_t>(i)], index, list);
      const ActionAt blocker = missing(inputs.forward) ? inputs.forward : inputs.backward;
      if (missing(blocker)) {
        std::int32_t& head =
            waiter[first[static_cast<std::size_t>(blocker.rank)] + static_cast<std::size_t>(blocker.index)];
        next_waiter[r] = head;
        head = rank;
        break;
      }
      visit(ActionAt{rank, i});
      for (std::int32_t w = waiter[first[r] + static_cast<std::size_t>(i)]; w >= 0;
           w = next_waiter[static_cast<std::size_t>(w)])
        runnable.push_back(w);
      ++i;
    }
  }
  return done;
}

}  // namespace tessera::train
