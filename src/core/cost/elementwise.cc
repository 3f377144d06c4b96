#include "elementwise.h"

#include "collective.h"

namespace tessera::pricing {
namespace {

// A cast reads bf16 and writes its low-precision copies: 4 bytes an element times this. NVFP4 adds the
// Hadamard rotation and a second scale, twice the work; bf16 casts nothing.
double cast(const Context& c) noexcept {
  if (c.layout.dtype == Dtype::bf16) return 0;
  return c.constants.quantised_bytes * (c.layout.dtype == Dtype::nvfp4 ? 2 : 1);
}

// Norm (read, write), residual add (two reads, a write): ten bytes an element in bf16. Hyper-connections read
// and write every stream on the way in and out of a sublayer.
double residual_bytes(const Context& c) noexcept {
  const double streams = static_cast<double>(c.model.residual_streams);
  return 10 * c.hidden * (streams > 1 ? 2 * streams : 1);
}

// What a mixer does between its projections and its core, and the width its output projection casts.
struct MixerBytes {
  double between = 0;
  double output_width = 0;
};

struct MixerBytesOf {
  const Context& c;
  MixerBytes operator()(std::monostate) const noexcept { return {}; }
  MixerBytes operator()(const SoftmaxAttention& m) const noexcept {
    const double heads =
        (static_cast<double>(m.query_heads) + repeated(c, m.kv_heads)) * static_cast<double>(m.head_dim);
    const double out = static_cast<double>(m.query_heads * m.value_dim);
    // Rotary embedding reads and writes queries and keys; a norm does so once more; a gate reads two, writes
    // one.
    return {4 * heads * (m.query_key_norm ? 2 : 1) + (m.output_gate ? 6 * out : 0), out};
  }
  MixerBytes operator()(const LatentAttention& m) const noexcept {
    const double heads = static_cast<double>(m.heads);
    const double key = static_cast<double>(m.nope_dim + m.rope_dim), value = static_cast<double>(m.value_dim);
    return {4 * heads * (2 * key + value), heads * value};
  }
  MixerBytes operator()(const CompressedAttention& m) const noexcept {
    const double width = static_cast<double>(m.heads * m.head_dim);
    return {12 * width, width};
  }
  MixerBytes operator()(const GatedDeltaNet& m) const noexcept {
    const double width = static_cast<double>(m.value_heads * m.value_dim);
    return {12 * width, width};  // L2 norms, gates and the gated output norm
  }
  MixerBytes operator()(const KimiDelta& m) const noexcept {
    const double width = static_cast<double>(m.heads * m.head_dim);
    return {12 * width, width};
  }
  MixerBytes operator()(const Mamba1& m) const noexcept {
    const double width = static_cast<double>(m.inner);
    return {12 * width, width};
  }
  MixerBytes operator()(const Mamba2& m) const noexcept {
    const double inner = static_cast<double>(m.heads * m.head_dim);
    // Splitting the wide projection (x, z, B, C), and the gated output norm.
    return {2 * (2 * inner + 2 * static_cast<double>(m.groups * m.state)) + 8 * inner, inner};
  }
  MixerBytes operator()(const LightningAttention& m) const noexcept {
    const double width = static_cast<double>(m.heads * m.head_dim);
    return {12 * width, width};  // rotary embedding, norm and gate
  }
  MixerBytes operator()(const ShortConvolution&) const noexcept {
    return {12 * c.hidden, c.hidden};  // two gates around the convolution
  }
};

// Gated: read two, write one; the activation and its gate are one kernel. Squared ReLU: read one, write one.
double activation_bytes(bool gated, double q) noexcept {
  return (gated ? 6.0 : 4.0) + 4 * q;
}

// Traffic counted from kernel sources; what the framework adds on top is not known to better.
constexpr double kTrafficError = 0.4;

}  // namespace

double mixer_traffic(const Context& c, const Mixer& mixer) noexcept {
  const double q = cast(c);
  const MixerBytes m = std::visit(MixerBytesOf{c}, mixer);
  return residual_bytes(c) + 4 * q * c.hidden + m.between + 4 * q * m.output_width;
}

double dense_traffic(const Context& c, const DenseFeedForward& dense) noexcept {
  const double q = cast(c);
  return residual_bytes(c) + 4 * q * c.hidden +
         activation_bytes(dense.gated, q) * static_cast<double>(dense.width);
}

MoeTraffic moe_traffic(const Context& c, const MixtureOfExperts& moe) noexcept {
  const double q = cast(c);
  const double copies = static_cast<double>(moe.top_k);
  const double width = routed_width(c, moe);
  const double per_width = activation_bytes(moe.gated, q);
  MoeTraffic out;
  out.residual = residual_bytes(c);
  out.router = (4 + 4 * q) * c.hidden + 24 * static_cast<double>(moe.experts);
  // A dispatcher that permutes before sending sorts every copy once more.
  if (c.software.dispatcher == Dispatcher::all_to_all) out.router += 8 * copies * width;
  out.activation = copies * static_cast<double>(moe.expert_width) / c.etp * per_width;
  out.experts = copies * width * (6 + 4 * q) + out.activation;
  // One add and one concatenation per expert, out of the grouped product.
  if (moe.bias && c.software.expert_bias_loop)
    out.experts += 8 * copies * ((moe.gated ? 2 : 1) * static_cast<double>(moe.expert_width) / c.etp + width);
  out.shared = static_cast<double>(moe.shared_width) * per_width;
  return out;
}

double norm_traffic(const Context& c) noexcept {
  return 4 * c.hidden;
}

Estimate traffic_time(const Context& c, double bytes, bool fused) noexcept {
  const double factor = c.constants.memory_traffic * (fused ? c.constants.fused_traffic : 1);
  return {Bytes(bytes * factor) / c.gpu.memory_bandwidth, Provenance::roofline, kTrafficError};
}

}  // namespace tessera::pricing
