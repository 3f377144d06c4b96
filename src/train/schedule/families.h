// The families of templates. Sizes are legal here: schedule_template.cc has looked.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/train/schedule/schedule_template.h"

namespace tessera::train {

/// The list without its actions: ranks and the place of every stage.
[[nodiscard]] ActionList empty_list(Template schedule, const TemplateSizes& sizes);

/// Where ActionList::shadow has microbatch number m of all pipelines together: m / pipelines of pipeline
/// m mod pipelines.
[[nodiscard]] inline std::size_t numbered_shadow(const ActionList& list, std::int32_t m) noexcept {
  return static_cast<std::size_t>(m % list.pipelines * list.microbatches + m / list.pipelines);
}

// All forwards, then all backwards: all_forward_first.cc.
[[nodiscard]] ActionList gpipe(const TemplateSizes& sizes);
[[nodiscard]] ActionList looped_bfs(const TemplateSizes& sizes);

// One forward, one backward: interleaved.cc.
[[nodiscard]] ActionList one_f_one_b(const TemplateSizes& sizes);
/// Also 1f1b-overlap, which is one chunk in pairs.
[[nodiscard]] ActionList interleaved(Template schedule, const TemplateSizes& sizes);
[[nodiscard]] ActionList interleaved_zb(const TemplateSizes& sizes);

// Chunks in a V, orders fixed: zb_v_torch.cc.
[[nodiscard]] ActionList zb_v_torch(const TemplateSizes& sizes);

// Pairs of two directions: dual_pipe.cc.
[[nodiscard]] ActionList dual_pipe(Template schedule, const TemplateSizes& sizes);

// Orders that depend on durations: zero_bubble.cc.
/// Chunk activations, F → W, that a rank of this template may hold.
[[nodiscard]] std::int32_t default_most_live(Template schedule, std::int32_t pp) noexcept;
[[nodiscard]] ActionList zero_bubble(Template schedule, const TemplateSizes& sizes,
                                     const ScheduleCosts& costs);

}  // namespace tessera::train
