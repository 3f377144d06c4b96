// Where boundaries may lie: the rules of the model and of the frameworks, and the user's own.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "tessera/train/partition/partition_problem.h"

namespace tessera::train {

namespace {

using Places = std::vector<std::vector<std::int32_t>>;

// MTP blocks [first, last) and the stages [lowest, highest] of which one may hold them.
struct MtpRule {
  std::int32_t first = 0, last = 0;
  std::int32_t lowest = 0, highest = 0;
};

// Only the last chunk of a rank other than rank 0 may hold MTP blocks. Where such stages lie apart, the last
// run of neighbours counts, so that the rule stays one of single boundaries.
Result<std::optional<MtpRule>> mtp_rule(const ModelSpec& model, std::span<const RankId> rank_of_stage,
                                        const PlacementRules& rules) {
  const auto is_mtp = [](const Block& block) { return block.kind == BlockKind::mtp; };
  const auto first = std::ranges::find_if(model.blocks, is_mtp);
  if (first == model.blocks.end() || rules.split_mtp) return std::optional<MtpRule>();
  MtpRule out;
  out.first = static_cast<std::int32_t>(first - model.blocks.begin());
  out.last =
      static_cast<std::int32_t>(std::find_if_not(first, model.blocks.end(), is_mtp) - model.blocks.begin());
  const auto stages = static_cast<std::int32_t>(rank_of_stage.size());
  // Of rank 0 the rule speaks where stages go round; where they come back to it, the last stage is there.
  const bool rank_0 = !rank_of_stage.empty() && rank_of_stage.back() == RankId(0);
  const auto may_hold = [&](std::int32_t s) {
    const RankId rank = rank_of_stage[static_cast<std::size_t>(s)];
    const auto later = rank_of_stage.subspan(static_cast<std::size_t>(s) + 1);
    return (rank_0 || rank != RankId(0)) && std::ranges::find(later, rank) == later.end();
  };
  out.highest = stages - 1;
  while (out.highest >= 0 && !may_hold(out.highest)) --out.highest;
  if (out.highest < 0) return infeasible("no stage may hold the MTP blocks");
  out.lowest = out.highest;
  while (out.lowest > 0 && may_hold(out.lowest - 1)) --out.lowest;
  return std::optional(out);
}

bool mtp_allows(const MtpRule& rule, std::int32_t boundary, std::int32_t place) {
  if (place > rule.first && place < rule.last) return false;  // between two MTP blocks
  if (boundary <= rule.lowest && place > rule.first) return false;
  return boundary <= rule.highest || place >= rule.last;
}

// Drops the places that no choice of the other boundaries goes with. Boundaries only have to ascend, so the
// neighbours' extremes decide. False, with the boundary: nothing is left of it.
std::optional<std::size_t> keep_ascending(Places& places, std::int32_t step) {
  std::int32_t low = places.empty() || places.front().empty() ? 0 : places.front().front();
  for (std::size_t b = 0; b < places.size(); ++b) {
    if (b > 0) std::erase_if(places[b], [&](std::int32_t place) { return place < low + step; });
    if (places[b].empty()) return b;
    low = places[b].front();
  }
  std::int32_t high = places.empty() ? 0 : places.back().back();
  for (std::size_t b = places.size(); b-- > 0;) {
    if (b + 1 < places.size())
      std::erase_if(places[b], [&](std::int32_t place) { return place > high - step; });
    if (places[b].empty()) return b;
    high = places[b].back();
  }
  return std::nullopt;
}

std::optional<std::int32_t> pin_of(const PlacementRules& rules, std::int32_t stage) {
  for (const auto& [pinned, block] : rules.pinned)
    if (pinned.value() == stage) return block;
  return std::nullopt;
}

Status check_pins(const PlacementRules& rules, std::int32_t stages, std::int32_t blocks) {
  for (const auto& [stage, block] : rules.pinned) {
    if (stage.value() < 1 || stage.value() >= stages)
      return bad_input(
          fmt::format("stage {} is pinned; expected a stage from 1 to {}: stage 0 starts at block 0",
                      stage.value(), stages - 1));
    if (block < 0 || block > blocks)
      return bad_input(fmt::format("stage {} is pinned to block {}; the model has blocks 0 to {}",
                                   stage.value(), block, blocks - 1));
    for (const auto& [other, other_block] : rules.pinned)
      if (other == stage && other_block != block)
        return bad_input(
            fmt::format("stage {} is pinned to block {} and to block {}", stage.value(), block, other_block));
  }
  return {};
}

std::unexpected<Error> no_place(const PlacementRules& rules, std::int32_t boundary, const Places& before) {
  const auto b = static_cast<std::size_t>(boundary) - 1;
  const auto words = [&](std::size_t other) {
    const std::vector<std::int32_t>& places = before[other];
    return places.empty() ? fmt::format("stage {} has no place either", other + 1)
           : places.size() == 1
               ? fmt::format("stage {} starts at block {}", other + 1, places.front())
               : fmt::format("stage {} starts at blocks {} to {}", other + 1, places.front(), places.back());
  };
  std::string message = fmt::format("stage {} has no legal first block", boundary);
  if (const auto pin = pin_of(rules, boundary)) message += fmt::format(" (it is pinned to block {})", *pin);
  if (b > 0) message += "; " + words(b - 1);
  if (b + 1 < before.size()) message += "; " + words(b + 1);
  return infeasible(std::move(message), rules.empty_stages
                                            ? "Unpin a boundary, or allow more places."
                                            : "Unpin a boundary, use fewer stages, or allow empty stages.");
}

}  // namespace

Result<Places> legal_places(const ModelSpec& model, std::span<const RankId> rank_of_stage,
                            const PlacementRules& rules) {
  const auto blocks = static_cast<std::int32_t>(model.blocks.size());
  const auto stages = static_cast<std::int32_t>(rank_of_stage.size());
  if (stages < 1) return bad_input("a pipeline needs at least one stage");
  TESSERA_CHECK(check_pins(rules, stages, blocks));
  TESSERA_TRY(const std::optional<MtpRule> mtp, mtp_rule(model, rank_of_stage, rules));

  const std::int32_t step = rules.empty_stages ? 0 : 1;
  const bool embedding = blocks > 0 && model.blocks.front().kind == BlockKind::embedding;
  const bool head = blocks > 0 && model.blocks.back().kind == BlockKind::head;
  const std::int32_t lowest = std::max(step, embedding ? 1 : 0);
  const std::int32_t highest = blocks - std::max(step, head ? 1 : 0);
  Places places(static_cast<std::size_t>(stages) - 1);
  for (std::int32_t boundary = 1; boundary < stages; ++boundary)
    for (std::int32_t place = lowest; place <= highest; ++place) {
      const auto pin = pin_of(rules, boundary);
      if (pin && *pin != place) continue;
      if (mtp && !mtp_allows(*mtp, boundary, place)) continue;
      if (std::ranges::find(rules.uncut, place) != rules.uncut.end()) continue;
      places[static_cast<std::size_t>(boundary) - 1].push_back(place);
    }
  const Places before = places;
  if (const auto empty = keep_ascending(places, step))
    return no_place(rules, static_cast<std::int32_t>(*empty) + 1, before);
  return places;
}

Places places_around(std::span<const std::vector<std::int32_t>> legal, const Partition& center,
                     std::int32_t window, std::int32_t widened) {
  Places out(legal.size());
  std::int32_t middle = 0;
  for (std::size_t b = 0; b < legal.size(); ++b) {
    // An empty stage says nothing by its bounds: what the stages before it cover does.
    if (const BlockRange stage = center.stages[b]; stage.begin < stage.end)
      middle = std::max(middle, stage.end);
    const std::int32_t most = window + (std::cmp_less(b, widened) ? 1 : 0);
    std::ranges::copy_if(legal[b], std::back_inserter(out[b]),
                         [&](std::int32_t place) { return std::abs(place - middle) <= most; });
    if (out[b].empty() && !legal[b].empty())
      out[b].push_back(*std::ranges::min_element(
          legal[b], {}, [&](std::int32_t place) { return std::abs(place - middle); }));
  }
  return out;
}

}  // namespace tessera::train
