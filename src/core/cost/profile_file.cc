#include "tessera/core/cost/profile_file.h"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace tessera {
namespace {

constexpr double kLongest = 1e9;  // milliseconds, eleven days
constexpr std::int64_t kMost = std::int64_t{1} << 40;
constexpr double kLargestError = 0.99;  // beyond it a value says nothing

Result<std::string> key_part(Cursor cell, std::string_view key) {
  TESSERA_TRY(const Cursor value, cell.required(key));
  // A hash of decimal digits alone is a number to YAML.
  TESSERA_TRY(std::string text, value.scalar_text());
  if (text.empty()) return value.error("expected a text that is not empty");
  return text;
}

Result<ProfileCell> read_cell(Cursor node) {
  TESSERA_CHECK(node.only_keys(
      {"mesh", "pair", "schedule", "software", "source", "median_ms", "spread", "count", "error"}));
  ProfileCell cell;
  TESSERA_TRY(cell.key.mesh, key_part(node, "mesh"));
  TESSERA_TRY(cell.key.pair, key_part(node, "pair"));
  TESSERA_TRY(cell.key.schedule, key_part(node, "schedule"));
  TESSERA_TRY(cell.key.software, key_part(node, "software"));
  if (const auto source = node.present("source")) {
    TESSERA_TRY(const std::string text, source->string());
    const auto known = profile_source_by_name(text);
    if (!known)
      return source->error(fmt::format("unknown source {}", text),
                           "Known are theory, primitive and chunk_pair.");
    cell.source = *known;
  }
  TESSERA_TRY(const Cursor median, node.required("median_ms"));
  TESSERA_TRY(const double time, median.number(0, kLongest));
  if (time == 0) return median.error("0 ms; expected a time above 0", "Leave out what was not measured.");
  cell.value.median = Seconds(time * 1e-3);
  TESSERA_TRY(cell.value.spread, node.number_or("spread", 0, 1e6, 0));
  const bool theory = cell.source == ProfileSource::theory;
  TESSERA_TRY(cell.value.count, node.integer_or("count", theory ? 0 : 1, kMost, theory ? 0 : 1));
  TESSERA_TRY(cell.value.error, node.number_or("error", 0, kLargestError, default_error(cell.source)));
  return cell;
}

}  // namespace

Result<std::vector<ProfileCell>> read_profile_cells(Cursor root) {
  Cursor list = root;
  if (root.is_map()) {
    TESSERA_CHECK(root.only_keys({"cells"}));
    TESSERA_TRY(list, root.required_list("cells"));
  }
  if (!list.is_list())
    return list.error(fmt::format("expected a list of cells, found {}", describe(list.kind())),
                      "A cell has mesh, pair, schedule, software and median_ms; see docs/profile.md.");
  if (list.size() == 0) return list.error("the list holds no cell");
  std::vector<ProfileCell> out;
  std::map<std::pair<ProfileKey, ProfileSource>, int> lines;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Cursor node = list.item(i);
    TESSERA_TRY(ProfileCell cell, read_cell(node));
    const auto [first, added] = lines.try_emplace({cell.key, cell.source}, node.line());
    if (!added)
      return node.error(
          fmt::format("this pair has a {} value already, in line {}", name(cell.source), first->second),
          "Keep one of the two.");
    out.push_back(std::move(cell));
  }
  return out;
}

}  // namespace tessera
