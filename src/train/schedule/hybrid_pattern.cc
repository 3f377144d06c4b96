#include "tessera/train/schedule/hybrid_pattern.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/core/base/text.h"

namespace tessera::train {
namespace {

constexpr std::size_t kLongestPattern = 1 << 16;  // entries

constexpr bool is_mixer(char symbol) noexcept {
  return symbol != '-' && symbol != 'E';
}

// Characters a layout string has and a pattern has not.
bool looks_like_layout(std::string_view text) {
  return text.find_first_of("tmL0123456789(),") != std::string_view::npos;
}

std::string letters(MegatronRelease release) {
  std::vector<std::string> words;
  for (const char c : hybrid_letters(release)) words.emplace_back(1, c);
  return join_words(words);
}

Status check_part(std::string_view part, std::string_view what, std::string_view allowed,
                  MegatronRelease release) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (hybrid_letters(release).find(part[i]) != std::string_view::npos ||
        allowed.find(part[i]) != std::string_view::npos)
      continue;
    const auto byte = static_cast<unsigned char>(part[i]);
    return bad_input(fmt::format("hybrid pattern: '{}' at position {} of {} is no layer of Megatron-Core {}",
                                 byte >= 0x20 && byte < 0x7f ? part[i] : '?', i, what, name(release)),
                     fmt::format("Its letters are {}.", letters(release)));
  }
  if (part.find('*') != std::string_view::npos && part.find_first_of("D+") != std::string_view::npos)
    return bad_input(
        fmt::format("hybrid pattern: {} has attention (*) beside MLA (+) or DSA (D), which "
                    "Megatron-Core does not run in one model",
                    what));
  return {};
}

}  // namespace

std::string_view hybrid_letters(MegatronRelease release) noexcept {
  return release == MegatronRelease::v0_16_1 ? "M*-E" : "MG*D+-E";
}
std::string_view name(MegatronRelease release) noexcept {
  return release == MegatronRelease::v0_16_1 ? "0.16.1" : "0.19.2";
}
Result<MegatronRelease> megatron_release(std::string_view text) {
  for (const MegatronRelease release : {MegatronRelease::v0_16_1, MegatronRelease::v0_19_2})
    if (text == name(release)) return release;
  return bad_input(fmt::format("Megatron-Core {} is not known", text), "Known are 0.16.1 and 0.19.2.");
}

std::int64_t HybridPattern::entries() const noexcept {
  std::int64_t sum = 0;
  for (const std::string& segment : segments) sum += static_cast<std::int64_t>(segment.size());
  return sum;
}
std::int64_t HybridPattern::count(char symbol) const noexcept {
  std::int64_t sum = mtp_layers * std::ranges::count(mtp, symbol);
  for (const std::string& segment : segments) sum += std::ranges::count(segment, symbol);
  return sum;
}

Result<HybridPattern> read_hybrid_pattern(std::string_view text, MegatronRelease release) {
  if (text.size() > kLongestPattern)
    return bad_input(fmt::format("hybrid pattern: longer than {} entries", kLongestPattern));
  if (looks_like_layout(text))
    return bad_input(
        fmt::format("hybrid pattern \"{}\": this is a pipeline layout string, not a hybrid layer pattern",
                    text),
        "In a layout E is the embedding and * repeats; in a pattern E is an MoE layer and * is attention.");
  const std::vector<std::string_view> parts = split(text, '/');
  HybridPattern pattern;
  if (release == MegatronRelease::v0_16_1) {
    if (text.find('|') != std::string_view::npos)
      return bad_input("hybrid pattern: Megatron-Core 0.16.1 cannot cut stages with |",
                       "It gives each rank an equal share of the entries. 0.19.2 takes cuts.");
    if (parts.size() > 1)
      return bad_input("hybrid pattern: Megatron-Core 0.16.1 has no MTP part (/)", "0.19.2 takes one.");
  }
  TESSERA_CHECK(check_part(parts[0], "the main part", "|", release));
  for (const std::string_view segment : split(parts[0], '|')) pattern.segments.emplace_back(segment);
  if (std::all_of(parts.begin() + 1, parts.end(), [](std::string_view part) { return part.empty(); }))
    return pattern;
  for (std::size_t i = 2; i < parts.size(); ++i)
    if (parts[i] != parts[1])
      return bad_input(
          fmt::format("hybrid pattern: MTP part {} is \"{}\" and part 1 is \"{}\"; all must be equal", i,
                      parts[i], parts[1]));
  TESSERA_CHECK(check_part(parts[1], "the MTP part", "", release));
  pattern.mtp = parts[1];
  pattern.mtp_layers = static_cast<std::int64_t>(parts.size()) - 1;
  return pattern;
}

Result<HybridSegment> hybrid_segment(const HybridPattern& pattern, std::int64_t pp, std::int64_t vp,
                                     std::int64_t rank, std::int64_t chunk) {
  const auto count = static_cast<std::int64_t>(pattern.segments.size());
  if (pp < 1 || vp < 1 || rank < 0 || rank >= pp || chunk < 0 || chunk >= vp)
    return bad_input(fmt::format("hybrid pattern: no virtual stage {} of rank {} with pp = {} and vp = {}",
                                 chunk, rank, pp, vp));
  if (count == 1 && pp * vp > 1) {
    const std::int64_t entries = pattern.entries();
    if (vp > 1)
      return bad_input(
          fmt::format("hybrid pattern: without cuts (|) there are no virtual stages, but vp = {}", vp));
    if (entries % pp != 0)
      return bad_input(
          fmt::format("hybrid pattern: {} entries without cuts (|) cannot be shared out equally over pp = "
                      "{} ranks",
                      entries, pp));
    const std::int64_t share = entries / pp;
    return HybridSegment{.entries = pattern.segments[0].substr(static_cast<std::size_t>(rank * share),
                                                               static_cast<std::size_t>(share)),
                         .first = rank * share};
  }
  if (count != pp * vp)
    return bad_input(
        fmt::format("hybrid pattern: {} segments, but pp = {} and vp = {} need {}", count, pp, vp, pp * vp));
  HybridSegment segment;
  const auto at = static_cast<std::size_t>(chunk * pp + rank);
  for (std::size_t i = 0; i < at; ++i) segment.first += static_cast<std::int64_t>(pattern.segments[i].size());
  segment.entries = pattern.segments[at];
  return segment;
}

Result<std::string> layout_of_hybrid_pattern(const HybridPattern& pattern) {
  std::string out = "E";
  std::int64_t position = 0;
  const auto last = pattern.segments.size() - 1;
  for (std::size_t s = 0; s <= last; ++s) {
    const std::string& segment = pattern.segments[s];
    for (std::size_t i = 0; i < segment.size(); i += 2, position += 2) {
      const bool mixer = is_mixer(segment[i]);
      if (mixer && i + 1 == segment.size() && s < last)
        return bad_input(
            fmt::format("hybrid pattern: the cut after stage {} splits a block behind its mixer, entry {} "
                        "({}); a layout string holds whole blocks",
                        s, position, segment[i]),
            "Move the cut by one entry.");
      if (!mixer || i + 1 == segment.size() || is_mixer(segment[i + 1]))
        return bad_input(
            fmt::format("hybrid pattern: entry {} ({}) stands without {}; in a layout string each t is a "
                        "mixer with its feed-forward part",
                        position, segment[i], mixer ? "a feed-forward part" : "a mixer"));
      out += 't';
    }
    if (s < last) out += '|';
  }
  out.append(static_cast<std::size_t>(pattern.mtp_layers), 'm');
  return out + 'L';
}

}  // namespace tessera::train
