// Times of a schedule whose durations are known per stage, before any model or plan: to compare templates and
// files.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/core/base/units.h"
#include "tessera/train/schedule/action.h"
#include "tessera/train/schedule/check_schedule.h"
#include "tessera/train/schedule/schedule_template.h"

namespace tessera::train {

struct Interval {
  Seconds start;
  Seconds end;
};

struct ScheduleTimes {
  std::vector<std::vector<Interval>> ranks;  ///< of ActionList::ranks[rank][index]
  std::vector<Seconds> busy;                 ///< per rank: Σ durations
  std::vector<Seconds> own_span;             ///< per rank: end of its last action − start of its first
  Seconds makespan;

  /// Two meanings of "bubble", as shares: of the step in which ranks idle, and of each rank's own span, which
  /// leaves out that ranks start late and end early (the measure of the zero-bubble papers). Over all ranks.
  [[nodiscard]] double bubble() const noexcept;
  [[nodiscard]] double own_span_bubble() const noexcept;
};

/// Each rank runs its list in order; an action starts when its rank is free and its inputs have come,
/// `costs.transfer` later from another rank. A pair takes `pair_share` of the time that its halves take one
/// after the other, and both end together. Errors of check_schedule, and costs of another number of stages.
[[nodiscard]] Result<ScheduleTimes> time_schedule(const ActionList& list, const ScheduleCosts& costs = {},
                                                  double pair_share = 1);

/// One line of a comparison.
struct TemplateFigures {
  Template schedule;
  std::int32_t chunks = 0;  ///< per rank: its own, or the asked-for vp
  /// The rest is absent where the sizes are not legal; then `refusal` says why.
  Error refusal;
  bool legal = false;
  std::int32_t group = 0;  ///< N used; 0 where it plays no role or the template finds its own
  Seconds makespan;
  double bubble = 0;
  double own_span_bubble = 0;
  double over_work = 0;  ///< makespan / work of the busiest rank: comparable between different chunk counts
  std::int32_t peak_live = 0;          ///< chunks, of the fullest rank, F → B
  std::int32_t peak_until_weight = 0;  ///< the same, F → W
};

/// Every template at these sizes, with one chunk's durations; best `over_work` first, illegal ones last. A
/// template with a fixed number of chunks keeps it. `group` 0 takes each template's default, or the legal one
/// nearest to it.
[[nodiscard]] std::vector<TemplateFigures> compare_templates(const TemplateSizes& sizes,
                                                             const StageCost& chunk = {},
                                                             Seconds transfer = {}, double pair_share = 1);

}  // namespace tessera::train
