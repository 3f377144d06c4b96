// How a run is laid over the machine: parallel sizes, microbatches, shapes. And the rules it must keep.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/base/document.h"
#include "tessera/core/base/result.h"
#include "tessera/core/cluster/cluster.h"
#include "tessera/core/model/model_spec.h"

namespace tessera {

/// What is computed again in backward instead of being kept. A unit inside another one is computed again
/// once; a unit that a layer does not have costs it nothing.
struct Recompute {
  bool full = false;               ///< whole layers; only their input is kept
  bool mla_up_projection = false;  ///< MLA's queries, keys and values from their latents
  bool moe = false;  ///< the whole MoE: router, dispatch, routed and shared experts, combine; its normed
                     ///< input is kept
  bool moe_activation = false;  ///< the routed experts' activation function only
  bool shared_experts = false;
  bool core_attention = false;  ///< the mixer's core, linear ones too: its output and states are not kept
  bool norm = false;            ///< the norms in front of mixer and feed-forward
  bool operator==(const Recompute&) const = default;
};

/// The units by the names that job and plan files use.
struct RecomputeUnit {
  std::string_view name;
  bool Recompute::* member;
};
inline constexpr std::array<RecomputeUnit, 7> kRecomputeUnits{{
    {"full", &Recompute::full},
    {"mla_up_projection", &Recompute::mla_up_projection},
    {"moe", &Recompute::moe},
    {"moe_activation", &Recompute::moe_activation},
    {"shared_experts", &Recompute::shared_experts},
    {"core_attention", &Recompute::core_attention},
    {"norm", &Recompute::norm},
}};

/// How the layers of one kind spare memory, where that is not `Layout::recompute`.
struct LayerMemory {
  std::string kind;  ///< "GE", "AE.2", "mtp AE": see kind_name
  Recompute recompute;
  /// Share of what a microbatch keeps between F and B that goes to the host's memory after F and comes back
  /// before B.
  double offload = 0;
  bool operator==(const LayerMemory&) const = default;
};

struct Layout {
  std::int64_t tp = 1;               ///< tensor parallel
  std::int64_t pp = 1;               ///< pipeline parallel: ranks of one pipeline
  std::int64_t vp = 1;               ///< virtual stages (chunks) per pipeline rank
  std::int64_t ep = 1;               ///< expert parallel
  std::int64_t etp = 1;              ///< tensor parallel inside an expert
  std::int64_t cp = 1;               ///< context parallel
  std::int64_t dp = 1;               ///< data parallel of the dense part = world / (tp·pp·cp)
  std::int64_t microbatches = 1;     ///< per pipeline and step
  std::int64_t microbatch_size = 1;  ///< sequences
  std::int64_t sequence = 4096;      ///< tokens
  Dtype dtype = Dtype::bf16;
  Recompute recompute;
  std::vector<LayerMemory> layer_memory;  ///< by kind; each at most once
  bool operator==(const Layout&) const = default;

  /// Of the layers of this kind: their own entry, else the layout's recompute without offload.
  [[nodiscard]] LayerMemory memory_of(std::string_view kind) const;
  [[nodiscard]] std::int64_t world() const noexcept { return tp * pp * cp * dp; }
  [[nodiscard]] std::int64_t stages() const noexcept { return pp * vp; }
  /// Data parallel of the experts = world / (pp·ep·etp).
  [[nodiscard]] std::int64_t expert_dp() const noexcept { return world() / (pp * ep * etp); }
  [[nodiscard]] std::int64_t tokens_per_microbatch() const noexcept { return microbatch_size * sequence; }
  [[nodiscard]] std::int64_t tokens_per_step() const noexcept {
    return tokens_per_microbatch() * microbatches * dp;
  }
};

/// Every size counts from 1, the world, PP × EP × ETP and PP × VP are at most 2²⁴, microbatches at most 2²⁰
/// and the tokens of a step at most 2⁵⁰, so that no product of sizes overflows. What reads a layout from
/// outside asks this before any member function; the error has the key (`layout.dp`) and the numbers, and no
/// place in a file.
[[nodiscard]] Status check_layout_sizes(const Layout& layout);

/// The `layout:` section of a job. `dp` may be left out (the world decides), or `global_batch` (sequences)
/// given instead of `microbatches`. `recompute: auto`, also what a missing key means, leaves recompute and
/// offload to the planner: see leaves_memory_open.
[[nodiscard]] Result<Layout> read_layout(Cursor section, std::int64_t gpus);

/// Whether a job's `layout:` section leaves recompute and offload to the planner.
[[nodiscard]] bool leaves_memory_open(Cursor section);

/// The rules a layout must keep on this world and with this model, check_layout_sizes first; the error names
/// the rule and the numbers: world = tp·pp·cp·dp; experts fold over the ranks of one stage, (world/pp) %
/// (ep·etp) = 0; every MoE layer's experts divide by ep; heads and widths divide by tp; the sequence divides
/// by cp (2·cp with causal balance) and tp. `folding` false holds it to the stricter rule of targets without
/// folded experts, (dp·cp) % ep = 0.
[[nodiscard]] Status check_layout(const Layout& layout, std::int64_t gpus, const ModelSpec* model,
                                  bool folding = true);

}  // namespace tessera
