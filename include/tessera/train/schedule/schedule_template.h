// Pipeline schedule templates: pure functions from sizes, and for some from durations, to actions per rank.
//
// Notation: p ranks, v chunks (virtual stages) per rank, m microbatches, N the group size; F, I, W, B = I + W
// and O (a forward and a backward in a pair) are durations of one chunk, all chunks alike, transfers free.
// "Idle" is makespan minus work, of the rank that idles least; "live" counts chunk activations at once on
// rank r (0-based), from F to B, or from F to W where the backward is split.
//
// Placement: linear is stage s on rank s mod p. V is two chunks a rank, down and back: stage s on rank s for
// s < p, else on rank 2p − 1 − s, so that the last stage sits beside the first.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/core/base/units.h"
#include "tessera/train/schedule/action.h"

namespace tessera::train {

enum class Template : std::uint8_t {
  /// "1f1b", v = 1. Makespan (m + p − 1)(F + B); live min(m, p − r). PipeDream-flush, arXiv:2006.09503.
  one_f_one_b,
  /// "interleaved", groups of N. Megatron-LM's schedule, arXiv:2104.04473. With N = p and p | m the makespan
  /// is (mv + p − 1)(F + B); live min(mv, (v − 1)N + 2(p − 1 − r) + 1).
  interleaved,
  /// "interleaved-overlap": one more warm-up forward, then F and B in pairs. Megatron-LM's order with expert
  /// parallel overlap. With N = p and p | m, n = p(v − 1) + 1 and m > p: (p − 1 + n)(F + B) + (mv − n)·O;
  /// live
  /// one more than interleaved.
  interleaved_overlap,
  /// "gpipe", v = 1: all forwards, then all backwards in the same order. Makespan (m + p − 1)(F + B); live m.
  /// arXiv:1811.06965.
  gpipe,
  /// "looped-bfs": chunk by chunk all forwards, then backwards the other way round. With m ≥ p the makespan
  /// is
  /// (mv + p − 1)(F + B); live mv. Breadth-first, arXiv:2211.05953; order of torch.distributed.pipelining.
  looped_bfs,
  /// "1f1b-overlap", v = 1: 2(p − 1 − r) + 1 warm-up forwards, then pairs. Makespan p(F + B) + (m − 1)·O for
  /// m ≥ 2p; live min(m, 2(p − r)), twice that of 1f1b.
  one_f_one_b_overlap,
  /// "interleaved-zb": interleaved with I and W apart, one microbatch less in flight per rank and W r steps
  /// late. For v = 1 it is ZB-H1. With N = p, p | m and F = I = W the idle time is (p − 1)F; live
  /// min(mv, (v − 1)N + p). Order of torch.distributed.pipelining's ScheduleInterleavedZeroBubble.
  interleaved_zb,
  /// "zb-h1", v = 1: uses durations. No more live than 1f1b: p. Idle (p − 1)(F + I − W) for m ≥ p and W ≤ F,
  /// I.
  /// Zero Bubble, arXiv:2401.10241.
  zb_h1,
  /// "zb-h2", v = 1: uses durations. Live 2p − 1. Idle (p − 1)·max(F, F + I − 2W) for m ≥ 2p and W ≤ F, I:
  /// the
  /// ranks start late all the same, and only an optimizer that need not wait for all ranks ends earlier.
  /// arXiv:2401.10241.
  zb_h2,
  /// "zb-v", v = 2 in a V: uses durations. Live 2p chunks, as much as 1f1b. Idle (p − 1)F when F = I = W and
  /// m ≥ 2p. arXiv:2405.15362.
  zb_v,
  /// "zb-v-torch", v = 2 in a V: the same as a fixed order, that of torch.distributed.pipelining's
  /// ScheduleZBVZeroBubble. Fewer than 2p − 1 microbatches are the order of 2p − 1 with the rest left out.
  zb_v_torch,
  /// "1f1b-v", v = 2 in a V, backward whole: uses durations. Live 2(⌊2p/3⌋ + 1) chunks, about two thirds of
  /// 1f1b. arXiv:2405.15362.
  one_f_one_b_v,
  /// "v-half", v = 2 in a V: uses durations. Live p + 2 chunks, about half of 1f1b. arXiv:2405.15362.
  v_half,
  /// "v-min", v = 2 in a V: uses durations. Live 2⌈(p + 2)/3⌉ chunks, about a third of 1f1b.
  /// arXiv:2405.15362.
  v_min,
  /// "dualpipe", p even, v = 2: two pipelines in opposite directions, m/2 microbatches each; every stage
  /// lives
  /// on two ranks. m even and at least 2p. Live p + 1. When F = I ≥ W the middle ranks idle
  /// (p/2 − 1)(O + B − 3W). Order of deepseek-ai/DualPipe, arXiv:2412.19437.
  dual_pipe,
  /// "dualpipe-v", v = 2 in a V: half of dualpipe, folded. m at least 2p. Live 2p + 1 chunks. When F = I ≥ W
  /// the last rank idles (p − 1)(O + B − 3W). Order of deepseek-ai/DualPipe's DualPipeV.
  dual_pipe_v,
};
inline constexpr std::size_t kTemplates = 16;

enum class StagePlacement : std::uint8_t { linear, v_shape, two_ways };

/// What a template is, in figures.
struct TemplateTraits {
  std::string_view name;
  std::int32_t chunks = 0;  ///< v, where it is fixed; 0 = any
  StagePlacement placement = StagePlacement::linear;
  bool groups = false;     ///< takes N
  bool durations = false;  ///< orders depend on ScheduleCosts
  bool split = false;      ///< has I and W
  bool pairs = false;      ///< overlaps F with B
};
[[nodiscard]] const TemplateTraits& traits(Template schedule) noexcept;
[[nodiscard]] std::string_view name(Template schedule) noexcept;
/// Hyphens, underscores and case do not matter: "ZB_V" and "zbv" are "zb-v".
[[nodiscard]] Result<Template> template_by_name(std::string_view name);

struct TemplateSizes {
  std::int32_t pp = 1;
  std::int32_t vp = 1;
  std::int32_t microbatches = 1;
  std::int32_t group = 0;  ///< N; 0 = pp, or for interleaved-zb the smallest legal. Legal iff pp ≤ N ≤ M and
                           ///< (M mod N = 0 or M mod N ≥ pp); idle when vp = 1
  bool any_group = false;  ///< take a group that breaks the rule, for comparisons: it idles longer, or is
                           ///< refused as a deadlock
  std::int32_t most_live = 0;  ///< of templates that use durations: chunk activations a rank may hold; 0 =
                               ///< the template's own
  /// Of templates that use durations: how long lists of up to 640 forwards and backwards are refined by local
  /// search, about 5 ms each; 0 = not at all. A list that meets its bound is not searched any further.
  std::int32_t effort = 4;
};

/// Of one microbatch in one stage.
struct StageCost {
  Seconds forward{1};
  Seconds input_gradient{1};
  Seconds weight_gradient{1};
};
struct ScheduleCosts {
  std::vector<StageCost> stages;  ///< in model order; empty = every pass of every stage takes as long
  Seconds transfer;               ///< of an activation or gradient between ranks
};

/// Errors say which rule the sizes break and the nearest legal value (of two equally near ones the smaller,
/// which keeps fewer activations). Templates that do not use durations look at the sizes only. Pure and
/// thread-safe; near-linear in the actions.
[[nodiscard]] Result<ActionList> make_schedule(Template schedule, const TemplateSizes& sizes,
                                               const ScheduleCosts& costs = {});

/// The group sizes that are legal for these sizes with vp > 1, ascending; empty iff microbatches < pp.
[[nodiscard]] std::vector<std::int32_t> legal_groups(std::int32_t pp, std::int32_t microbatches);

/// Where stage s of pp · vp lives.
[[nodiscard]] RankId rank_of_stage(Template schedule, std::int32_t pp, StageId stage) noexcept;

}  // namespace tessera::train
