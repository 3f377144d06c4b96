#include "tessera/train/schedule/action.h"

#include <fmt/format.h>

#include <algorithm>

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

std::optional<Action> ActionList::without_shadows(const Action& action) const noexcept {
  const bool first = !is_shadow(action.stage, action.microbatch);
  if (action.kind != ActionKind::overlap) return first ? std::optional(action) : std::nullopt;
  const bool second = !is_shadow(action.backward_stage, action.backward_microbatch);
  if (first && second) return action;
  if (first) return forward(action.stage, action.microbatch);
  if (!second) return std::nullopt;
  return Action{
      .kind = action.backward_kind, .stage = action.backward_stage, .microbatch = action.backward_microbatch};
}

std::int32_t ActionList::real_microbatches() const noexcept {
  return microbatches * pipelines - static_cast<std::int32_t>(std::ranges::count(shadow, true));
}

std::int32_t ActionList::real_microbatches(StageId s) const noexcept {
  if (shadow.empty()) return microbatches;
  const auto first = shadow.begin() + static_cast<std::ptrdiff_t>(shadow_index(s, MicrobatchId(0)));
  return microbatches - static_cast<std::int32_t>(std::count(first, first + microbatches, true));
}

std::string text(const Action& action) {
  if (action.kind == ActionKind::overlap)
    return fmt::format("({}F{};{}{}{})OVERLAP_F_B", action.stage.value(), action.microbatch.value(),
                       action.backward_stage.value(), letter(action.backward_kind),
                       action.backward_microbatch.value());
  return fmt::format("{}{}{}", action.stage.value(), letter(action.kind), action.microbatch.value());
}

}  // namespace tessera::train
