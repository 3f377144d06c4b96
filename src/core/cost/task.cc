#include "tessera/core/cost/task.h"

#include <array>

#include "tessera/core/base/text.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, kPasses> kPassNames{"F", "B", "W", "R"};
constexpr std::array<std::string_view, kTaskKinds> kKindNames{"EMBED", "ATTN", "DISP", "SHARED",
                                                              "MLP",   "COMB", "HEAD"};

}  // namespace

std::string task_name(Pass pass, TaskKind kind, std::int32_t layer) {
  std::string out(kPassNames[static_cast<std::size_t>(pass)]);
  out += '_';
  out += kKindNames[static_cast<std::size_t>(kind)];
  if (layer >= 0) {
    out += ":L";
    out += std::to_string(layer);
  }
  return out;
}

std::optional<TaskName> parse_task_name(std::string_view text) noexcept {
  if (text.size() < 3 || text[1] != '_') return std::nullopt;
  TaskName out{Pass::forward, TaskKind::embedding, -1};
  bool known = false;
  for (std::size_t i = 0; i < kPasses && !known; ++i) {
    known = text[0] == kPassNames[i][0];
    if (known) out.pass = static_cast<Pass>(i);
  }
  if (!known) return std::nullopt;
  const std::string_view rest = text.substr(2);
  const auto colon = rest.find(':');
  known = false;
  for (std::size_t i = 0; i < kTaskKinds && !known; ++i) {
    known = rest.substr(0, colon) == kKindNames[i];
    if (known) out.kind = static_cast<TaskKind>(i);
  }
  if (!known) return std::nullopt;
  if (colon == std::string_view::npos) return out;
  const std::string_view number = rest.substr(colon + 1);
  // One spelling per name: no sign, no leading zero.
  if (number.size() < 2 || number.size() > 9 || number[0] != 'L') return std::nullopt;
  if (number[1] < '0' || number[1] > '9' || (number[1] == '0' && number.size() > 2)) return std::nullopt;
  const auto layer = to_integer(number.substr(1));
  if (!layer) return std::nullopt;
  out.layer = static_cast<std::int32_t>(*layer);
  return out;
}

}  // namespace tessera
