#include "tessera/train/schedule/megatron_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/core/base/text.h"

namespace tessera::train {

namespace {

constexpr std::size_t kLongestLayout = 1 << 16;  // characters after expansion; a guard against "t*999999999"

// Characters a hybrid layer pattern has and a layout string has not, outside a repeat.
bool looks_like_hybrid_pattern(std::string_view text) {
  if (text.find_first_of("MGDdg-+/") != std::string_view::npos) return true;
  // "E*E|E*E": an E is followed by a star that no number follows.
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '*' && (i + 1 == text.size() || text[i + 1] < '0' || text[i + 1] > '9')) return true;
  return false;
}

// Replaces each `piece*INT`, where `piece` ends right before the star.
template <class PieceBegin>
Result<std::string> expand_repeats(std::string text, PieceBegin piece_begin) {
  std::size_t star = 0;
  while ((star = text.find('*', star)) != std::string::npos) {
    const std::optional<std::size_t> begin = piece_begin(text, star);
    if (!begin) {
      ++star;
      continue;
    }
    std::size_t end = star + 1;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    const auto count = to_integer(std::string_view(text).substr(star + 1, end - star - 1));
    if (!count)
      return bad_input(fmt::format("layout \"{}\": '*' at position {} needs a number after it", text, star));
    std::string piece = text.substr(*begin, star - *begin);
    if (piece.starts_with('(')) piece = piece.substr(1, piece.size() - 2);
    if (*count > static_cast<std::int64_t>(kLongestLayout) ||
        text.size() + piece.size() * static_cast<std::size_t>(*count) > kLongestLayout)
      return bad_input(fmt::format("layout: expands to more than {} characters", kLongestLayout));
    std::string repeated;
    for (std::int64_t i = 0; i < *count; ++i) repeated += piece;
    text.replace(*begin, end - *begin, repeated);
    star = *begin + repeated.size();
  }
  return text;
}

std::string counts_of(const std::vector<std::string>& stages) {
  std::string out;
  for (const auto& stage : stages)
    out += fmt::format("{}{}", out.empty() ? "" : ", ", std::ranges::count(stage, 't'));
  return out;
}

}  // namespace

Result<std::vector<std::string>> expand_megatron_layout(std::string_view layout) {
  std::string text(layout);
  std::erase(text, ',');
  if (text.size() > kLongestLayout)
    return bad_input(fmt::format("layout: longer than {} characters", kLongestLayout));
  if (looks_like_hybrid_pattern(text))
    return bad_input(
        fmt::format("layout \"{}\": this is a hybrid layer pattern, not a pipeline layout string", layout),
        "In a layout E is the embedding and * repeats; in a pattern E is an MoE layer and * is attention.\n"
        "A layout of the same cuts has one t per transformer block, such as Ett|ttL.");
  auto expanded = expand_repeats(std::move(text),
                                 [](const std::string& s, std::size_t star) -> std::optional<std::size_t> {
                                   if (star == 0 || s[star - 1] != ')') return std::nullopt;
                                   const auto open = s.rfind('(', star);
                                   if (open == std::string::npos || open + 2 >= star) return std::nullopt;
                                   return open;
                                 });
  if (!expanded) return std::unexpected(expanded.error());
  expanded = expand_repeats(*std::move(expanded),
                            [](const std::string& s, std::size_t star) -> std::optional<std::size_t> {
                              if (star == 0 || s[star - 1] == ')' || s[star - 1] == '(' || s[star - 1] == '*')
                                return std::nullopt;
                              return star - 1;
                            });
  if (!expanded) return std::unexpected(expanded.error());
  for (std::size_t i = 0; i < expanded->size(); ++i) {
    const char c = (*expanded)[i];
    if (std::string_view("EtmL|").find(c) != std::string_view::npos) continue;
    return bad_input(
        fmt::format("layout \"{}\": unexpected '{}'", layout, c),
        "A layout holds E (embedding), t (decoder layer), m (MTP layer), L (loss), | between stages,\n"
        "and the macros (group)*n and x*n; groups do not nest, and there are no blanks.");
  }
  std::vector<std::string> stages;
  for (const std::string_view stage : split(*expanded, '|')) stages.emplace_back(stage);
  return stages;
}

Status check_megatron_layout(const std::vector<std::string>& stages, const MegatronSizes& sizes,
                             const MegatronTarget& target) {
  const auto count = static_cast<std::int64_t>(stages.size());
  if (count % sizes.pp != 0)
    return bad_input(fmt::format("layout: {} stages cannot be spread over pp = {} ranks", count, sizes.pp),
                     fmt::format("The number of stages must be a multiple of {}.", sizes.pp));
  const std::int64_t vp = count / sizes.pp;
  if (sizes.declared_vp && *sizes.declared_vp != vp)
    return bad_input(fmt::format("layout: {} stages over pp = {} ranks mean vp = {}, but vp = {} is declared",
                                 count, sizes.pp, vp, *sizes.declared_vp),
                     "Drop vp, or change the string.");
  std::vector<std::string> faults;
  std::string all;
  for (const auto& stage : stages) all += stage;
  const auto occurrences = [&](char c) { return std::ranges::count(all, c); };
  if (occurrences('E') != 1 || !all.starts_with('E') || !stages.front().starts_with('E'))
    faults.push_back(fmt::format("exactly one E must stand first, found {}", occurrences('E')));
  if (occurrences('L') == 0) faults.emplace_back("no L (loss)");
  if (occurrences('L') > 1 && !target.several_losses)
    faults.push_back(fmt::format("{} L (loss) where the target takes one", occurrences('L')));
  if (occurrences('L') >= 1 && (!stages.back().ends_with('L')))
    faults.push_back(
        fmt::format("the last stage ({}) is \"{}\" and does not end with L", count - 1, stages.back()));
  if (occurrences('t') != sizes.layers) {
    const auto found = occurrences('t');
    faults.push_back(fmt::format("{} t for {} layers: {} {}", found, sizes.layers,
                                 std::abs(found - sizes.layers),
                                 found < sizes.layers ? "missing" : "too many"));
  }
  if (occurrences('m') != sizes.mtp)
    faults.push_back(fmt::format("{} m for {} MTP layers", occurrences('m'), sizes.mtp));
  if (occurrences('m') > 0) {
    const auto last_layer = all.rfind('t');
    if (last_layer != std::string::npos && all.find('m') < last_layer)
      faults.emplace_back("an m stands before a t; MTP comes after every decoder layer");
    std::vector<std::int64_t> holders;
    for (std::int64_t s = 0; s < count; ++s)
      if (stages[static_cast<std::size_t>(s)].find('m') != std::string::npos) holders.push_back(s);
    if (!target.split_mtp) {
      if (holders.size() > 1)
        faults.push_back(
            fmt::format("MTP is spread over {} stages where the target takes one", holders.size()));
      for (const std::int64_t s : holders) {
        if (sizes.pp > 1 && s % sizes.pp == 0)
          faults.push_back(fmt::format("stage {} with MTP lies on rank 0", s));
        if (s / sizes.pp != vp - 1)
          faults.push_back(
              fmt::format("stage {} with MTP is not the last virtual stage of its rank {}", s, s % sizes.pp));
      }
    }
  }
  if (faults.empty()) return {};
  return bad_input(fmt::format("layout: {}", join_words(faults)),
                   fmt::format("Decoder layers per stage: {}.", counts_of(stages)));
}

Result<Partition> read_megatron_layout(std::string_view layout, const ModelSpec& model,
                                       const MegatronSizes& sizes, const MegatronTarget& target) {
  TESSERA_TRY(const std::vector<std::string> stages, expand_megatron_layout(layout));
  TESSERA_CHECK(check_megatron_layout(stages, sizes, target));
  if (target.several_losses &&
      std::ranges::count_if(stages, [](const std::string& s) { return s.contains('L'); }) > 1)
    return bad_input("layout: losses in several stages are legal for this target, but a plan holds one head",
                     "Use a layout with one L.");
  Partition partition;
  std::int32_t next = 0;
  for (const std::string& stage : stages) {
    const auto end = next + static_cast<std::int32_t>(stage.size());
    partition.stages.push_back({next, end});
    next = end;
  }
  TESSERA_CHECK(check_partition(model, partition));
  return partition;
}

Result<std::string> write_megatron_layout(const ModelSpec& model, const Partition& partition, std::int64_t pp,
                                          const MegatronTarget& target) {
  TESSERA_CHECK(check_partition(model, partition));
  std::vector<std::string> stages;
  for (const BlockRange& range : partition.stages) {
    std::string stage;
    for (std::int32_t b = range.begin; b < range.end; ++b) {
      constexpr std::string_view letters = "EtmL";
      stage += letters[static_cast<std::size_t>(model.blocks[static_cast<std::size_t>(b)].kind)];
    }
    stages.push_back(std::move(stage));
  }
  TESSERA_CHECK(check_megatron_layout(
      stages, {.pp = pp, .declared_vp = std::nullopt, .layers = model.layers(), .mtp = model.mtp_blocks()},
      target));
  std::string out;
  for (const std::string& stage : stages) out += (&stage == &stages.front() ? "" : "|") + stage;
  return out;
}

}  // namespace tessera::train
