#include <limits>

#include "tessera/train/schedule/action.h"

namespace tessera::train {

namespace {

std::optional<std::int64_t> take_number(std::string_view& text) noexcept {
  std::int64_t value = 0;
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    value = value * 10 + (text[digits] - '0');
    if (value > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
    ++digits;
  }
  if (digits == 0) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

std::optional<Action> take_single(std::string_view& text) noexcept {
  Action action;
  const auto stage = take_number(text);
  if (!stage || text.empty()) return std::nullopt;
  switch (text.front()) {
    case 'F':
      action.kind = ActionKind::forward;
      break;
    case 'B':
      action.kind = ActionKind::full_backward;
      break;
    case 'I':
      action.kind = ActionKind::input_gradient;
      break;
    case 'W':
      action.kind = ActionKind::weight_gradient;
      break;
    default:
      return std::nullopt;
  }
  text.remove_prefix(1);
  const auto microbatch = take_number(text);
  if (!microbatch) return std::nullopt;
  action.stage = StageId(*stage);
  action.microbatch = MicrobatchId(*microbatch);
  return action;
}

}  // namespace

std::optional<Action> parse_action(std::string_view text) noexcept {
  if (!text.starts_with('(')) {
    const auto action = take_single(text);
    return text.empty() ? action : std::nullopt;
  }
  text.remove_prefix(1);
  const auto f = take_single(text);
  if (!f || f->kind != ActionKind::forward || !text.starts_with(';')) return std::nullopt;
  text.remove_prefix(1);
  const auto b = take_single(text);
  if (!b || (b->kind != ActionKind::full_backward && b->kind != ActionKind::input_gradient))
    return std::nullopt;
  if (text != ")OVERLAP_F_B") return std::nullopt;
  return overlap(*f, *b);
}

}  // namespace tessera::train
