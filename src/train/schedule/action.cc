#include "tessera/train/schedule/action.h"

#include <fmt/format.h>

namespace tessera::train {
namespace {

char letter(ActionKind kind) noexcept {
  switch (kind) {
    case ActionKind::forward:
      return 'F';
    case ActionKind::full_backward:
      return 'B';
    case ActionKind::input_gradient:
      return 'I';
    case ActionKind::weight_gradient:
      return 'W';
    case ActionKind::overlap:
      break;
  }
  return '?';
}

}  // namespace

std::string text(const Action& action) {
  if (action.kind == ActionKind::overlap)
    return fmt::format("({}F{};{}{}{})OVERLAP_F_B", action.stage.value(), action.microbatch.value(),
                       action.backward_stage.value(), letter(action.backward_kind),
                       action.backward_microbatch.value());
  return fmt::format("{}{}{}", action.stage.value(), letter(action.kind), action.microbatch.value());
}

}  // namespace tessera::train
