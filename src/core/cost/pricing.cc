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
      expert_dtype(layout.dtype),
      again(computed_again(layout.recompute)) {}

Again computed_again(const Recompute& units) noexcept {
  Again out{.everything = units.full};
  if (out.everything) return out;
  out.up_projection = units.mla_up_projection;
  out.core = units.core_attention;
  out.norm = units.norm;
  out.moe = units.moe;
  out.moe_activation = units.moe_activation && !units.moe;
  out.shared_expert = units.shared_experts && !units.moe;
  return out;
}

void Tasks::add(const Tasks& other) noexcept {
  for (std::size_t pass = 0; pass < kPasses; ++pass)
    for (std::size_t kind = 0; kind < kTaskKinds; ++kind) work[pass][kind].add(other.work[pass][kind]);
}

}  // namespace tessera::pricing
