// Which neighbours of a stage live on other ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/train/schedule/action.h"

namespace tessera::train {

/// Rank of the stage before and after; `none` at the ends of a pipeline.
struct StageLinks {
  static constexpr std::int32_t none = -1;
  std::int32_t rank = none;
  std::int32_t previous = none;
  std::int32_t next = none;
  [[nodiscard]] bool receives_forward() const noexcept { return previous != none && previous != rank; }
  [[nodiscard]] bool receives_backward() const noexcept { return next != none && next != rank; }
  [[nodiscard]] bool sends_forward() const noexcept { return receives_backward(); }
  [[nodiscard]] bool sends_backward() const noexcept { return receives_forward(); }
  /// Of all four kinds, for one microbatch.
  [[nodiscard]] std::size_t messages() const noexcept {
    return (receives_forward() ? 2U : 0U) + (receives_backward() ? 2U : 0U);
  }
};

/// `list` is an ActionList or a LoweredList with valid ranks and pipelines of equal length.
template <class List>
std::vector<StageLinks> stage_links(const List& list) {
  const std::size_t chain = list.stages() / static_cast<std::size_t>(list.pipelines);
  std::vector<StageLinks> links(list.stages());
  for (std::size_t s = 0; s < links.size(); ++s) {
    links[s].rank = list.rank_of_stage[s].value();
    if (s % chain != 0) links[s].previous = list.rank_of_stage[s - 1].value();
    if ((s + 1) % chain != 0) links[s].next = list.rank_of_stage[s + 1].value();
  }
  return links;
}

/// Are the fields that are no cells sound: counts positive, every stage on a rank?
template <class List>
bool has_sound_frame(const List& list) noexcept {
  if (list.microbatches < 0 || list.pipelines < 1 ||
      list.stages() % static_cast<std::size_t>(list.pipelines) != 0)
    return false;
  for (const RankId rank : list.rank_of_stage)
    if (rank.value() < 0 || rank.index() >= list.ranks.size()) return false;
  return true;
}

}  // namespace tessera::train
