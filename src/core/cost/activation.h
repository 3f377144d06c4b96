// Bytes of one microbatch on one rank: what backward reads, what W reads, and what a block needs while it
// runs.
#pragma once

#include "pricing.h"

namespace tessera::pricing {

/// Kept from F to B. `again` is the context's own, or none for what lives while a recomputed layer's backward
/// runs.
[[nodiscard]] double layer_activation(const Context& context, const Again& again, const Layer& layer);

/// Between B and W: each product's input, and the gradient of its output in bf16.
[[nodiscard]] double layer_stash(const Context& context, const Layer& layer);

/// Received copies in and their results out, in bf16, at the fullest rank.
[[nodiscard]] double dispatch_buffers(const Context& context, const Layer& layer);

/// bf16 logits and their fp32 probabilities, from a head's forward to its backward.
[[nodiscard]] double logit_bytes(const Context& context);

}  // namespace tessera::pricing
