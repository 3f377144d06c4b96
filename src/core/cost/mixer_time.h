// A token mixer on one rank: its projections, its core, and what it keeps.
#pragma once

#include <vector>

#include "pricing.h"

namespace tessera::pricing {

/// A projection as one TP rank holds it.
struct Projection {
  double in = 0;
  double out = 0;
  bool up_projection = false;  ///< of MLA: from a latent to the heads, cheap to compute again
};
[[nodiscard]] std::vector<Projection> projections(const Context& context, const Mixer& mixer);

/// The core: what has no parameters. Zero for no mixer.
struct Core {
  Estimate forward;
  double backward = 0;  ///< × forward
  double compute_share = 1;
  Bytes exchanged;  ///< over context parallel ranks, per pass: keys and values, or a linear mixer's states
};
[[nodiscard]] Core core_time(const Context& context, const Mixer& mixer);

}  // namespace tessera::pricing
