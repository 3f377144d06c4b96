// How a run is laid over the machine: parallel sizes, microbatches, shapes. And the rules it must keep.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/core/base/document.h"
#include "tessera/core/base/result.h"
#include "tessera/core/cluster/cluster.h"
#include "tessera/core/model/model_spec.h"

namespace tessera {

/// What is computed again in backward instead of being kept.
struct Recompute {
  bool full = false;  ///< whole layers; only their input is kept
  bool mla_up_projection = false;
  bool moe = false;             ///< the routed experts with dispatch and combine
  bool moe_activation = false;  ///< the experts' activation function only
  bool shared_experts = false;
  bool core_attention = false;
  bool norm = false;
  bool operator==(const Recompute&) const = default;
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
  bool operator==(const Layout&) const = default;

  [[nodiscard]] std::int64_t world() const noexcept { return tp * pp * cp * dp; }
  [[nodiscard]] std::int64_t stages() const noexcept { return pp * vp; }
  /// Data parallel of the experts = world / (pp·ep·etp).
  [[nodiscard]] std::int64_t expert_dp() const noexcept { return world() / (pp * ep * etp); }
  [[nodiscard]] std::int64_t tokens_per_microbatch() const noexcept { return microbatch_size * sequence; }
  [[nodiscard]] std::int64_t tokens_per_step() const noexcept {
    return tokens_per_microbatch() * microbatches * dp;
  }
};

/// The `layout:` section of a job. `dp` may be left out (the world decides), or `global_batch` (sequences)
/// given instead of `microbatches`.
[[nodiscard]] Result<Layout> read_layout(Cursor section, std::int64_t gpus);

/// The rules a layout must keep on this world and with this model; the error names the rule and the numbers:
/// world = tp·pp·cp·dp; experts fold over the ranks of one stage, (world/pp) % (ep·etp) = 0; every MoE
/// layer's experts divide by ep; heads and widths divide by tp; the sequence divides by cp (2·cp with causal
/// balance) and tp. `folding` false holds it to the stricter rule of targets without folded experts, (dp·cp)
/// % ep = 0.
[[nodiscard]] Status check_layout(const Layout& layout, std::int64_t gpus, const ModelSpec* model,
                                  bool folding = true);

}  // namespace tessera
