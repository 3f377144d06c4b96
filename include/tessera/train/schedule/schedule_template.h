// Pipeline schedule templates: pure functions from sizes to actions per rank.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/train/schedule/action.h"

namespace tessera::train {

enum class Template : std::uint8_t {
  one_f_one_b,          ///< "1f1b": vp = 1
  interleaved,          ///< "interleaved": vp ≥ 1, groups of N microbatches per chunk
  interleaved_overlap,  ///< "interleaved-overlap": one more warm-up forward, then F and B in pairs
};
[[nodiscard]] std::string_view name(Template schedule) noexcept;
[[nodiscard]] Result<Template> template_by_name(std::string_view name);

struct TemplateSizes {
  std::int32_t pp = 1;
  std::int32_t vp = 1;
  std::int32_t microbatches = 1;
  std::int32_t group =
      0;  ///< N; 0 = pp. Legal iff pp ≤ N ≤ M and (M mod N = 0 or M mod N ≥ pp); idle when vp = 1
  bool any_group = false;  ///< take a group that breaks the rule, for comparisons: it idles longer, or is
                           ///< refused as a deadlock
};

/// Stage s lives on rank s mod pp. Errors say which rule the sizes break and the nearest legal N (of two
/// equally near ones the smaller, which keeps fewer activations). With vp = 1 there are no groups, so any
/// number of microbatches is legal. Source of orders and rule: Megatron-LM's schedules.
[[nodiscard]] Result<ActionList> make_schedule(Template schedule, const TemplateSizes& sizes);

/// The group sizes that are legal for these sizes with vp > 1, ascending; empty iff microbatches < pp.
[[nodiscard]] std::vector<std::int32_t> legal_groups(std::int32_t pp, std::int32_t microbatches);

}  // namespace tessera::train
