#include "tessera/train/schedule/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tessera/core/base/text.h"

namespace tessera::train {
namespace {

constexpr std::size_t kShownRanks = 16;

std::string stages_text(const std::vector<std::string>& stages) {
  return stages.empty() ? "none" : join_words(stages);
}

}  // namespace

Status check_placement(std::span<const RankId> rank_of_stage, std::int32_t pp, StagePlacement held) {
  const bool v = held == StagePlacement::v_shape;
  if (held == StagePlacement::two_ways)
    return bad_input("stages on two ranks each are no placement that one pipeline can have");
  if (v && rank_of_stage.size() != 2 * static_cast<std::size_t>(pp))
    return infeasible(fmt::format("a V has two stages a rank, {} on {} ranks; the schedule has {}", 2 * pp,
                                  pp, rank_of_stage.size()));
  std::vector<std::vector<std::string>> runs(static_cast<std::size_t>(pp)),
      holds(static_cast<std::size_t>(pp));
  for (std::size_t s = 0; s < rank_of_stage.size(); ++s) {
    const auto stage = static_cast<std::int32_t>(s);
    const std::int32_t home = v && stage >= pp ? 2 * pp - 1 - stage : stage % pp;
    runs[rank_of_stage[s].index()].push_back(std::to_string(s));
    holds[static_cast<std::size_t>(home)].push_back(std::to_string(s));
  }
  std::string lines;
  std::size_t differing = 0;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (runs[r] == holds[r]) continue;
    if (++differing <= kShownRanks)
      lines += fmt::format("{}rank {} runs stages {}, but holds {}", lines.empty() ? "" : "\n", r,
                           stages_text(runs[r]), stages_text(holds[r]));
  }
  if (differing == 0) return {};
  if (differing > kShownRanks) lines += fmt::format("\n… and {} more", differing - kShownRanks);
  return infeasible(fmt::format("the schedule does not fit stages placed in a {}: {} of {} ranks differ",
                                v ? "V" : "loop", differing, pp),
                    lines);
}

}  // namespace tessera::train
