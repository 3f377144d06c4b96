#include "tessera/train/schedule/shadow.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "families.h"

namespace tessera::train {
namespace {

Status check_places(std::span<const std::int32_t> places, std::int32_t padded, std::int32_t real) {
  if (padded < real || std::cmp_not_equal(places.size(), padded - real))
    return bad_input(fmt::format("{} shadows bring {} microbatches to {}, not to {}", places.size(), real,
                                 real + static_cast<std::int64_t>(places.size()), padded));
  std::vector<bool> taken(static_cast<std::size_t>(std::max(padded, 0)), false);
  for (const std::int32_t place : places) {
    if (place < 0 || place >= padded)
      return bad_input(fmt::format("a shadow at {}; expected 0 … {}", place, padded - 1));
    if (taken[static_cast<std::size_t>(place)])
      return bad_input(fmt::format("two shadows at {}; expected different places", place));
    taken[static_cast<std::size_t>(place)] = true;
  }
  return {};
}

}  // namespace

std::string_view name(ShadowPlacement placement) noexcept {
  constexpr std::array<std::string_view, kShadowPlacements> kNames{"first", "last", "spread", "ends"};
  return kNames[static_cast<std::size_t>(placement)];
}

std::int32_t padded_microbatches(Template schedule, const TemplateSizes& sizes) noexcept {
  const std::int32_t m = sizes.microbatches, pp = sizes.pp;
  if (schedule == Template::dual_pipe) return std::max(2 * pp, m + m % 2);
  if (schedule == Template::dual_pipe_v) return std::max(2 * pp, m);
  if (!traits(schedule).groups || sizes.vp == 1 || sizes.any_group) return m;
  const std::int32_t group = sizes.group == 0 ? pp : sizes.group;
  if (group < pp || pp < 1) return m;  // no number of microbatches makes that legal
  if (m <= group) return group;
  const std::int32_t rest = m % group;
  return rest == 0 || rest >= pp ? m : m - rest + pp;
}

std::vector<std::int32_t> shadow_places(ShadowPlacement placement, std::int32_t padded,
                                        std::int32_t shadows) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(shadows));
  const std::int32_t in_front = placement == ShadowPlacement::first  ? shadows
                                : placement == ShadowPlacement::ends ? (shadows + 1) / 2
                                                                     : 0;
  for (std::int32_t i = 0; i < shadows; ++i)
    out[static_cast<std::size_t>(i)] =
        placement == ShadowPlacement::spread
            ? static_cast<std::int32_t>((std::int64_t{i} + 1) * padded / (shadows + 1))
        : i < in_front ? i
                       : padded - shadows + i;
  return out;
}

Result<ActionList> make_padded_schedule(Template schedule, const TemplateSizes& given, std::int32_t padded,
                                        std::span<const std::int32_t> places, const ScheduleCosts& costs) {
  TESSERA_CHECK(check_places(places, padded, given.microbatches));
  TemplateSizes sizes = given;
  sizes.microbatches = padded;
  // A group that was chosen for the real microbatches alone may not be the one that was padded for.
  if (sizes.group == 0 && traits(schedule).groups) sizes.group = sizes.pp;
  TESSERA_TRY(ActionList list, make_schedule(schedule, sizes, costs));
  if (places.empty()) return list;
  list.shadow.assign(static_cast<std::size_t>(padded), false);
  for (const std::int32_t place : places) list.shadow[numbered_shadow(list, place)] = true;
  return list;
}

}  // namespace tessera::train
