// Matrix products with parameters: forward, input gradient and weight gradient.
#pragma once

#include "pricing.h"

namespace tessera::pricing {

/// `count` products of rows × in by in × out, launched together (grouped GEMM when count > 1).
struct Product {
  double rows = 0;
  double in = 0;
  double out = 0;
  double count = 1;
};

/// The three products cost the same operations with permuted shapes; the weight gradient also accumulates
/// into the main gradients. NVFP4 computes its weight gradients at 8 bits.
[[nodiscard]] ThreePass gemm_time(const Context& context, const Product& product, Dtype dtype);

}  // namespace tessera::pricing
