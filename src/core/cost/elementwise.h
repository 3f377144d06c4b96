// Memory-bound work between the products: norms, activations, permutes, casts, router, rotary embedding.
// A third of a real step, so it is counted in bytes, term by term.
#pragma once

#include "pricing.h"

namespace tessera::pricing {

/// Bytes per token of a mixer's sublayer, forward: norm, residual, casts, and what the mixer's own kernels
/// leave.
[[nodiscard]] double mixer_traffic(const Context& context, const Mixer& mixer) noexcept;
[[nodiscard]] double dense_traffic(const Context& context, const DenseFeedForward& dense) noexcept;

/// Bytes per token of a MoE sublayer, forward, by where they fall.
struct MoeTraffic {
  double residual = 0;    ///< norm and residual add, before the dispatch
  double router = 0;      ///< router, and the sort of a dispatcher that permutes twice: before the dispatch
  double experts = 0;     ///< permute, activation, unpermute: per token of this rank on average
  double activation = 0;  ///< of `experts`, the activation function alone
  double shared = 0;
};
[[nodiscard]] MoeTraffic moe_traffic(const Context& context, const MixtureOfExperts& moe) noexcept;

/// Bytes per token of the norm alone, for recompute.
[[nodiscard]] double norm_traffic(const Context& context) noexcept;

/// Time of so many bytes in all.
[[nodiscard]] Estimate traffic_time(const Context& context, double bytes, bool fused) noexcept;

}  // namespace tessera::pricing
