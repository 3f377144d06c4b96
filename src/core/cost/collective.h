// Time of collectives by topology: inside a scale-up domain, and across.
#pragma once

#include "pricing.h"

namespace tessera::pricing {

/// All-gather or reduce-scatter of a buffer of `bytes` in all, over `ranks` that lie `stride` apart.
[[nodiscard]] Estimate ring_time(const Context& context, KernelTable::Collective kind, double bytes,
                                 double ranks, double stride) noexcept;

/// One expert all-to-all of this rank, at the fullest of the EP ranks.
struct AllToAll {
  Estimate dispatch;
  Estimate combine;
  Bytes dispatched, combined;  ///< per rank, over the fabric
};
[[nodiscard]] AllToAll all_to_all(const Context& context, const MixtureOfExperts& moe) noexcept;

/// Copies of one token that leave its rank, split by link.
struct Copies {
  double scale_up = 0;
  double scale_out = 0;
};
[[nodiscard]] Copies token_copies(const Context& context, const MixtureOfExperts& moe) noexcept;

/// Sum of a buffer of `bytes` over the TP ranks, left on all of them.
[[nodiscard]] Estimate tensor_parallel_sum(const Context& context, double bytes) noexcept;

/// Largest over mean tokens of the EP ranks under balanced routing.
[[nodiscard]] double fullest_rank(const Context& context, const MixtureOfExperts& moe) noexcept;

/// Rows of the routed experts of the fullest EP rank: token copies it receives. Under ETP the ranks of one
/// expert gather each other's tokens, so each has the rows of all of them.
[[nodiscard]] double routed_rows(const Context& context, const MixtureOfExperts& moe) noexcept;

/// Width the routed experts work in.
[[nodiscard]] double routed_width(const Context& context, const MixtureOfExperts& moe) noexcept;

}  // namespace tessera::pricing
