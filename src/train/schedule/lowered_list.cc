#include "tessera/train/schedule/lowered_list.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

namespace tessera::train {
namespace {

constexpr std::pair<CellKind, std::string_view> kWords[] = {
    {CellKind::send_forward, "SEND_F"},
    {CellKind::receive_forward, "RECV_F"},
    {CellKind::send_backward, "SEND_B"},
    {CellKind::receive_backward, "RECV_B"},
    {CellKind::unshard, "UNSHARD"},
    {CellKind::reshard, "RESHARD"},
    {CellKind::reduce_gradient, "REDUCE_GRAD"},
};

std::optional<std::int32_t> take_index(std::string_view& text) noexcept {
  std::int64_t value = 0;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    value = value * 10 + (text[digits] - '0');
    if (value > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  }
  if (digits == 0) return std::nullopt;
  text.remove_prefix(digits);
  return static_cast<std::int32_t>(value);
}

}  // namespace

ActionList without_communication(const LoweredList& list) {
  ActionList out{
      .microbatches = list.microbatches, .pipelines = list.pipelines, .rank_of_stage = list.rank_of_stage};
  out.ranks.reserve(list.ranks.size());
  for (const auto& cells : list.ranks) {
    auto& actions = out.ranks.emplace_back();
    for (const Cell& cell : cells)
      if (cell.kind == CellKind::compute) actions.push_back(cell.action);
  }
  return out;
}

std::string text(const Cell& cell) {
  for (const auto& [kind, word] : kWords)
    if (kind == cell.kind)
      return is_message(kind)
                 ? fmt::format("{}{}{}", cell.action.stage.value(), word, cell.action.microbatch.value())
                 : fmt::format("{}{}", cell.action.stage.value(), word);
  return text(cell.action);
}

std::optional<Cell> parse_cell(std::string_view text) noexcept {
  if (const auto action = parse_action(text)) return Cell{.action = *action};
  const auto stage = take_index(text);
  if (!stage) return std::nullopt;
  for (const auto& [kind, word] : kWords) {
    if (!text.starts_with(word)) continue;
    text.remove_prefix(word.size());
    const auto microbatch = is_message(kind) ? take_index(text) : 0;
    if (!microbatch || !text.empty()) return std::nullopt;
    return message(kind, StageId(*stage), MicrobatchId(*microbatch));
  }
  return std::nullopt;
}

}  // namespace tessera::train
