// The search for places. An action list can be walked in one order whatever the durations, so that order is
// found once, and a choice of places then costs one pass over flat arrays.
#include <algorithm>
#include <numeric>
#include <utility>

#include "families.h"
#include "tessera/train/schedule/check_schedule.h"
#include "tessera/train/schedule/eager.h"
#include "tessera/train/schedule/shadow.h"

namespace tessera::train {
namespace {

// Actions visited by one search: about 0.2 s.
constexpr std::int64_t kVisits = 40'000'000;

using Shadows = std::vector<char>;  // by shadow index, 1 = a shadow

class Walk {
 public:
  Walk(const ActionList& list, const ActionIndex& index, const ActionDuration& duration, Seconds transfer)
      : free_(list.ranks.size()) {
    std::vector<std::vector<std::int32_t>> step_of;
    for (const auto& actions : list.ranks) step_of.emplace_back(actions.size(), -1);
    const auto step = [&](ActionAt at) -> std::int32_t& {
      return step_of[static_cast<std::size_t>(at.rank)][static_cast<std::size_t>(at.index)];
    };
    run_eagerly(list, index, [&](ActionAt at) {
      const Action& action =
          list.ranks[static_cast<std::size_t>(at.rank)][static_cast<std::size_t>(at.index)];
      Step made{.rank = static_cast<std::size_t>(at.rank)};
      const ActionInputs inputs = inputs_of(action, index, list);
      std::size_t k = 0;
      for (const ActionAt input : {inputs.forward, inputs.backward}) {
        if (input.rank >= 0) made.input[k] = step(input);
        made.hop[k++] = input.rank == at.rank ? 0.0 : transfer.value();
      }
      made.shadow[0] = made.shadow[1] = list.shadow_index(action.stage, action.microbatch);
      if (action.kind == ActionKind::overlap) {
        made.shadow[1] = list.shadow_index(action.backward_stage, action.backward_microbatch);
        made.takes[1] = duration(forward(action.stage, action.microbatch)).value();
        made.takes[2] = duration({.kind = action.backward_kind,
                                  .stage = action.backward_stage,
                                  .microbatch = action.backward_microbatch})
                            .value();
      }
      made.takes[0] = duration(action).value();
      step(at) = static_cast<std::int32_t>(steps_.size());
      steps_.push_back(made);
    });
    end_.resize(steps_.size());
  }

  [[nodiscard]] std::int64_t steps() const noexcept { return static_cast<std::int64_t>(steps_.size()); }

  double makespan(const Shadows& shadow) noexcept {
    std::ranges::fill(free_, 0.0);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      double start = free_[step.rank];
      for (const std::size_t k : {0U, 1U})
        if (step.input[k] >= 0)
          start = std::max(start, end_[static_cast<std::size_t>(step.input[k])] + step.hop[k]);
      // 0 = whole, 1 = its forward only, 2 = its backward only, 3 = nothing.
      const auto left = static_cast<std::size_t>(2 * shadow[step.shadow[0]]) +
                        static_cast<std::size_t>(shadow[step.shadow[1]]);
      free_[step.rank] = end_[i] = start + step.takes[left];
    }
    return free_.empty() ? 0.0 : *std::ranges::max_element(free_);
  }

 private:
  struct Step {
    std::size_t rank = 0;
    std::int32_t input[2] = {-1, -1};
    double hop[2] = {0, 0};
    std::size_t shadow[2] = {0, 0};  // of its halves; twice the same when it has one
    double takes[4] = {0, 0, 0, 0};
  };
  std::vector<Step> steps_;
  std::vector<double> free_, end_;
};

class PlaceSearch {
 public:
  PlaceSearch(const ActionList& list, Walk walk, std::int32_t padded, std::int32_t shadows,
              std::int32_t group)
      : walk_(std::move(walk)),
        padded_(padded),
        shadows_(shadows),
        left_(std::max<std::int64_t>(kVisits / std::max<std::int64_t>(walk_.steps(), 1), 1)),
        shadow_(static_cast<std::size_t>(padded), 0) {
    for (std::int32_t m = 0; m < padded; ++m) index_.push_back(numbered_shadow(list, m));
    // Groups in the middle are all alike.
    const std::int32_t middle = padded / 2 / group * group;
    for (std::int32_t m = 0; m < padded; ++m)
      if (m < 2 * group || m >= padded - 2 * group || (m >= middle && m < middle + group))
        tried_.push_back(m);
  }

  ShadowChoice run() {
    if (choices() <= left_) {
      all();
      best_.proved = true;
      return std::move(best_);
    }
    for (std::size_t p = 0; p < kShadowPlacements; ++p)
      consider(shadow_places(static_cast<ShadowPlacement>(p), padded_, shadows_));
    while (left_ > 0 && moved()) {
    }
    return std::move(best_);
  }

 private:
  // Of all places, but no more than one more than may be tried.
  [[nodiscard]] std::int64_t choices() const noexcept {
    std::int64_t count = 1;
    for (std::int32_t i = 0; i < shadows_; ++i) {
      count = count * (padded_ - i) / (i + 1);  // whole: i + 1 neighbouring numbers were multiplied
      if (count > left_) return left_ + 1;
    }
    return count;
  }

  void all() {
    std::vector<std::int32_t> places(static_cast<std::size_t>(shadows_));
    std::iota(places.begin(), places.end(), 0);
    while (true) {
      consider(places);
      std::int32_t i = shadows_ - 1;
      while (i >= 0 && places[static_cast<std::size_t>(i)] == padded_ - shadows_ + i) --i;
      if (i < 0) return;
      std::iota(places.begin() + i, places.end(), places[static_cast<std::size_t>(i)] + 1);
    }
  }

  bool consider(std::vector<std::int32_t> places) {
    --left_;
    for (const std::int32_t m : places) shadow_[index_[static_cast<std::size_t>(m)]] = 1;
    const double makespan = walk_.makespan(shadow_);
    for (const std::int32_t m : places) shadow_[index_[static_cast<std::size_t>(m)]] = 0;
    // Sums of durations may differ in their last digits.
    if (!best_.places.empty() && makespan >= best_.makespan.value() * (1 - 1e-12)) return false;
    best_.places = std::move(places);
    best_.makespan = Seconds(makespan);
    return true;
  }

  // One shadow to a better place; false when there is none.
  bool moved() {
    for (std::size_t k = 0; k < best_.places.size(); ++k) {
      for (const std::int32_t m : tried_) {
        if (left_ <= 0) return false;
        if (std::ranges::find(best_.places, m) != best_.places.end()) continue;
        std::vector<std::int32_t> places = best_.places;
        places[k] = m;
        std::ranges::sort(places);
        if (consider(std::move(places))) return true;
      }
    }
    return false;
  }

  Walk walk_;
  std::int32_t padded_, shadows_;
  std::int64_t left_;  // choices that may still be tried
  Shadows shadow_;
  std::vector<std::size_t> index_;   // of a microbatch's number
  std::vector<std::int32_t> tried_;  // numbers a shadow may move to
  ShadowChoice best_;
};

}  // namespace

Result<ShadowChoice> best_shadows(Template schedule, const TemplateSizes& sizes, std::int32_t padded,
                                  const ActionDuration& duration, Seconds transfer,
                                  const ScheduleCosts& costs) {
  const std::int32_t shadows = padded - sizes.microbatches;
  const std::vector<std::int32_t> last =
      shadow_places(ShadowPlacement::last, std::max(padded, 0), std::max(shadows, 0));
  TESSERA_TRY(const ActionList list, make_padded_schedule(schedule, sizes, padded, last, costs));
  TESSERA_TRY(const ActionIndex index, ActionIndex::build(list));
  Walk walk(list, index, duration, transfer);
  if (shadows == 0)
    return ShadowChoice{.makespan = Seconds(walk.makespan(Shadows(static_cast<std::size_t>(padded), 0))),
                        .proved = true};
  const std::int32_t group = traits(schedule).groups && sizes.group > 0 ? sizes.group : sizes.pp;
  return PlaceSearch(list, std::move(walk), padded, shadows, std::max(group, 1)).run();
}

Result<Seconds> pipeline_makespan(const ActionList& list, const ActionDuration& duration, Seconds transfer) {
  TESSERA_CHECK(check_schedule(list));
  TESSERA_TRY(const ActionIndex index, ActionIndex::build(list));
  Walk walk(list, index, duration, transfer);
  Shadows shadow(static_cast<std::size_t>(list.microbatches) * static_cast<std::size_t>(list.pipelines), 0);
  for (std::size_t i = 0; i < list.shadow.size(); ++i) shadow[i] = list.shadow[i] ? 1 : 0;
  return Seconds(walk.makespan(shadow));
}

}  // namespace tessera::train
