// An action as the parts it runs: a forward, a backward, or both.
#pragma once

#include "tessera/train/schedule/action.h"

namespace tessera::train {

[[nodiscard]] constexpr bool has_forward(const Action& action) noexcept {
  return action.kind == ActionKind::forward || action.kind == ActionKind::overlap;
}
/// The kind of the action's backward part; `forward` when it has none.
[[nodiscard]] constexpr ActionKind backward_part(const Action& action) noexcept {
  return action.kind == ActionKind::overlap ? action.backward_kind : action.kind;
}
[[nodiscard]] constexpr bool has_backward(const Action& action) noexcept {
  const ActionKind kind = backward_part(action);
  return kind == ActionKind::full_backward || kind == ActionKind::input_gradient;
}
[[nodiscard]] constexpr bool has_weight(const Action& action) noexcept {
  const ActionKind kind = backward_part(action);
  return kind == ActionKind::full_backward || kind == ActionKind::weight_gradient;
}
/// Of the backward part.
[[nodiscard]] constexpr StageId backward_stage(const Action& action) noexcept {
  return action.kind == ActionKind::overlap ? action.backward_stage : action.stage;
}
[[nodiscard]] constexpr MicrobatchId backward_microbatch(const Action& action) noexcept {
  return action.kind == ActionKind::overlap ? action.backward_microbatch : action.microbatch;
}

}  // namespace tessera::train
