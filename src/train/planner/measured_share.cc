#include "measured_share.h"

#include <algorithm>
#include <optional>

namespace tessera::train {

MeasuredShare::MeasuredShare(const ExecutionPlan& plan) {
  pairs_ = std::ranges::count_if(plan.pairs, [](const PairPlan& p) { return p.measured.has_value(); });
  if (pairs_ == 0) return;
  for (auto& side : sides_) side.resize(plan.actions.stages());
  for (const auto& rank : plan.actions.ranks) {
    for (const Action& cell : rank) {
      const std::optional<Action> real = plan.actions.real_part(cell);
      if (!real) continue;
      const Action& action = *real;
      if (action.kind != ActionKind::overlap) {
        ++sides_[action.kind == ActionKind::forward ? 0 : 1][action.stage.index()].runs;
        continue;
      }
      const PairPlan* pair = plan.pair(action.stage, action.backward_stage);
      const bool measured = pair != nullptr && pair->measured.has_value() && is_measured(action);
      for (Side* side : {&sides_[0][action.stage.index()], &sides_[1][action.backward_stage.index()]}) {
        ++side->runs;
        if (!measured) continue;
        ++side->measured;
        side->error += pair->measured->error;
      }
    }
  }
}

Estimate MeasuredShare::of(std::size_t stage, Pass pass, const Estimate& duration) const {
  if (pairs_ == 0) return duration;
  const Side& side = sides_[pass == Pass::forward ? 0 : 1][stage];
  if (side.measured == 0) return duration;
  const double share = side.measured / side.runs;
  return duration * (1 - share) +
         Estimate(duration.time * share, Provenance::measured_pair, side.error / side.measured);
}

}  // namespace tessera::train
