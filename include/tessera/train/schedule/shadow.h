// Shadow microbatches: how a schedule whose template cannot take M microbatches runs them all the same.
//
// The template's order for M' > M microbatches is kept, and M' − M of them are shadows (see ActionList).
// Where they sit matters: of all places of two shadows among twelve microbatches, 4 ranks and 2 chunks each,
// the slowest takes 8 % longer than the fastest.
//
//   const std::int32_t padded = padded_microbatches(Template::interleaved, sizes);          // 10 → 12
//   const auto places = shadow_places(ShadowPlacement::spread, padded, padded - 10);        // {4, 8}
//   TESSERA_TRY(ActionList list, make_padded_schedule(Template::interleaved, sizes, padded, places));
//
// The search for places knows the durations: best_shadows().
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/core/base/units.h"
#include "tessera/train/schedule/action.h"
#include "tessera/train/schedule/schedule_template.h"

namespace tessera::train {

enum class ShadowPlacement : std::uint8_t {
  first,   ///< "first": in front of all real microbatches
  last,    ///< "last": behind them
  spread,  ///< "spread": as far from each other and from both ends as they can
  ends,    ///< "ends": half in front, half behind; the odd one in front
};
inline constexpr std::size_t kShadowPlacements = 4;
[[nodiscard]] std::string_view name(ShadowPlacement placement) noexcept;

/// The least number of microbatches, not below sizes.microbatches, that the template can take with these
/// ranks, chunks and groups (N = pp where sizes.group is 0). The same number when it needs no shadows.
[[nodiscard]] std::int32_t padded_microbatches(Template schedule, const TemplateSizes& sizes) noexcept;

/// `shadows` numbers below `padded`, ascending. Needs 0 ≤ shadows ≤ padded.
[[nodiscard]] std::vector<std::int32_t> shadow_places(ShadowPlacement placement, std::int32_t padded,
                                                      std::int32_t shadows);

/// make_schedule() for `padded` microbatches, those in `places` shadows. sizes.microbatches counts the real
/// ones. With two pipelines (dualpipe), number m is microbatch m / 2 of pipeline m mod 2: both get as many,
/// or the second one less. Errors: those of make_schedule; places that are not padded − microbatches
/// different numbers below `padded`. Pure and thread-safe.
[[nodiscard]] Result<ActionList> make_padded_schedule(Template schedule, const TemplateSizes& sizes,
                                                      std::int32_t padded,
                                                      std::span<const std::int32_t> places,
                                                      const ScheduleCosts& costs = {});

/// How long an action without shadows takes.
using ActionDuration = std::function<Seconds(const Action& action)>;

/// A choice of places, and how long the pipeline takes with it.
struct ShadowChoice {
  std::vector<std::int32_t> places;
  Seconds makespan;
  bool proved = false;  ///< all choices were tried: none is faster
};
/// The places that make the pipeline shortest, for these durations and transfers between ranks: all choices
/// tried where they are few, else a local search from the best of the named placements, over the first and
/// last groups and one in the middle. At most about 0.3 s; same input, same choice. Errors as
/// make_padded_schedule.
[[nodiscard]] Result<ShadowChoice> best_shadows(Template schedule, const TemplateSizes& sizes,
                                                std::int32_t padded, const ActionDuration& duration,
                                                Seconds transfer, const ScheduleCosts& costs = {});

/// How long the pipeline takes: a rank runs its actions in order, an action starts when its rank is free and
/// its inputs have come, `transfer` later from another rank; shadows take no time. Errors as check_schedule.
[[nodiscard]] Result<Seconds> pipeline_makespan(const ActionList& list, const ActionDuration& duration,
                                                Seconds transfer);

}  // namespace tessera::train
