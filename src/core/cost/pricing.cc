#include "pricing.h"

namespace tessera::pricing {

Context::Context(const CostInput& in) noexcept
    : input(in),
      model(*in.model),
      cluster(*in.cluster),
      gpu(in.cluster->gpu),
      layout(*in.layout),
      software(in.software),
      constants(in.constants),
      table(in.table),
      tp(static_cast<double>(layout.tp)),
      cp(static_cast<double>(layout.cp)),
      ep(static_cast<double>(layout.ep)),
      etp(static_cast<double>(layout.etp)),
      hidden(static_cast<double>(model.hidden)),
      tokens(static_cast<double>(layout.tokens_per_microbatch()) / cp),
      tokens_local(tokens / tp),
      dense_dtype(layout.dtype == Dtype::nvfp4 ? Dtype::mxfp8 : layout.dtype),
      expert_dtype(layout.dtype) {}

void Tasks::add(const Tasks& other) noexcept {
  for (std::size_t pass = 0; pass < kPasses; ++pass)
    for (std::size_t kind = 0; kind < kTaskKinds; ++kind) work[pass][kind].add(other.work[pass][kind]);
}

}  // namespace tessera::pricing
