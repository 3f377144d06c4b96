// The parameter-free core of every mixer: softmax by efficiency or table, linear mixers by measured time.
// Pricing a delta rule or a scan by its operations is wrong by up to ten times, and below about ten thousand
// tokens even in sign (a Gated DeltaNet core is slower there than softmax).

#include <algorithm>
#include <array>
#include <cmath>

#include "mixer_time.h"

namespace tessera::pricing {
namespace {

double d(std::int64_t value) noexcept {
  return static_cast<double>(value);
}

// FlashAttention-3 forward, H100, head dimension 128, causal: 292, 423, 521, 579, 602, 616 TFLOP/s at 0.5 to
// 16 K tokens (arXiv:2407.08608), over the peak of 989.
double hopper_share(double sequence) noexcept {
  constexpr std::array<double, 6> kShare{0.295, 0.428, 0.527, 0.585, 0.609, 0.623};
  const double position = std::clamp(std::log2(sequence / 512), 0.0, 5.0);
  const auto low = static_cast<std::size_t>(std::min(position, 4.0));
  const double part = position - static_cast<double>(low);
  return kShare[low] * (1 - part) + kShare[low + 1] * part;
}

// Blackwell reaches a smaller share of its larger peak: 896 and 1,227 TFLOP/s at 4 and 16 K tokens of 2,250
// (AIC, B200, 32 query heads), against 579 and 616 of 989.
double softmax_rate(const Context& c, double sequence, double head_dim) noexcept {
  const double peak = c.gpu.peak_of(Dtype::bf16).value();
  const double blackwell = peak > 2000e12 ? 0.68 : 1;
  // Head dimension 64 fills the tensor cores half: 0.55 of the rate, an estimate.
  return peak * hopper_share(sequence) * blackwell * (head_dim <= 64 ? 0.55 : 1);
}

constexpr double kSoftmaxError = 0.2;
constexpr double kLinearError = 0.25;
constexpr double kSparseError = 0.4;
constexpr double kUnmeasuredError = 0.6;

// FP8 attention runs its two products at twice the rate and keeps the softmax in higher precision: an
// estimate between the 0.62 of FlashAttention-3's best figures (0.74 against 1.2 PFLOP/s, arXiv:2407.08608)
// and no gain at all.
constexpr double kFp8Attention = 0.75;

// Measured times per token scale with memory bandwidth to the power 0.6 between GPUs: GDN takes 0.137 µs on
// H100 (3.35 TB/s), 0.132 on H20 (4.0) and 0.083 on B200 (7.7) (AIC tables; InferSim's parts for H20).
double memory_scale(const Context& c, double measured_on) noexcept {
  return std::pow(measured_on / c.gpu.memory_bandwidth.value(), 0.6);
}
constexpr double kH100Memory = 3.35e12;
constexpr double kB200Memory = 7.7e12;

// All tokens of the microbatch against `sequence` keys, this rank's share of them under context parallelism.
// Blocks of a chunked attention are sequences of their own, hence `sequence`.
Estimate softmax(const Context& c, double sequence, double query_heads, double kv_heads, double key_dim,
                 double value_dim, double window) {
  const double batch = d(c.layout.tokens_per_microbatch()) / sequence;
  const bool local = window > 0 && window < sequence;
  if (!local && c.table != nullptr) {
    // A value dimension of its own (MLA: 192 and 128) is priced as the kernel of dimension 128, which every
    // table has, times the ratio of the widths: 1.25 for MLA.
    const bool equal = key_dim == value_dim;
    const double table_dim = equal ? key_dim : 128;
    if (auto measured = c.table->attention(c.gpu, query_heads, kv_heads, table_dim, sequence, batch)) {
      const double ratio = (key_dim + value_dim) / (2 * table_dim) / c.cp;
      if (ratio == 1) return *measured;
      return {measured->time * ratio, Provenance::scaled_table,
              measured->error / measured->time + (equal ? 0 : kSoftmaxError / 2)};
    }
  }
  // Keys a query meets: half the sequence under the causal mask; with a window, the window and the tile of
  // 128 queries and keys that has to be computed around it.
  constexpr double kTile = 128;
  const double keys = local ? std::min(sequence / 2, window + kTile) : sequence / 2;
  const Flops operations(2 * query_heads * (key_dim + value_dim) * keys * c.tokens);
  return {operations / FlopsPerSecond(softmax_rate(c, sequence, std::min(key_dim, value_dim))),
          Provenance::roofline, kSoftmaxError};
}

// The indexer scores every key in fp8, on all heads; half the context on average.
Estimate indexer_scores(const Context& c, const SparseIndexer& indexer) {
  if (indexer.shared) return {};
  // DeepGEMM's scoring kernel is a chain of small products with a ReLU between: half the fp8 rate.
  constexpr double kEfficiency = 0.5;
  const FlopsPerSecond peak = std::max(c.gpu.peak_of(Dtype::fp8), c.gpu.peak_of(Dtype::bf16));
  const Flops operations(2 * d(indexer.heads * indexer.head_dim) * d(c.layout.sequence) / 2 * c.tokens);
  return {operations / (peak * kEfficiency), Provenance::roofline, kSparseError};
}

// Mean number of keys a causal query keeps when it may keep `top_k` of those before it.
double kept_keys(double sequence, double top_k) noexcept {
  if (top_k >= sequence) return sequence / 2;
  return top_k - top_k * top_k / (2 * sequence);
}

struct CoreOf {
  const Context& c;

  // Under context parallelism every rank gathers the fp32 states (`state` elements a sequence) that the
  // others' pieces leave, whatever their length (LASP-2, arXiv:2502.07563).
  [[nodiscard]] Core linear(Estimate forward, double state) const {
    return {.forward = forward,
            .backward = c.constants.linear_backward,
            .compute_share = 0.5,
            .exchanged = Bytes(4 * state * d(c.layout.microbatch_size) * (c.cp - 1))};
  }

  Core operator()(std::monostate) const { return {}; }

  Core operator()(const SoftmaxAttention& m) const {
    const double heads = d(m.query_heads) / c.tp, kv = repeated(c, m.kv_heads) / c.tp;
    double sequence = d(c.layout.sequence);
    if (m.window == 0 && m.chunk > 0) sequence = std::min(sequence, d(m.chunk));
    Estimate forward = softmax(c, sequence, heads, kv, d(m.head_dim), d(m.value_dim), d(m.window));
    if (m.window == 0 && m.chunk == 0 && m.indexer) {
      // Kept blocks are whole tiles: the dense kernel's speed over fewer keys, and the scoring beside it.
      forward =
          forward * (2 * kept_keys(sequence, d(m.indexer->top_k)) / sequence) + indexer_scores(c, *m.indexer);
    }
    if (c.software.fp8_attention) forward *= kFp8Attention;
    return {.forward = forward,
            .backward = c.constants.attention_backward,
            .exchanged = Bytes(2 * kv * d(m.head_dim + m.value_dim) * c.tokens * (c.cp - 1))};
  }

  Core operator()(const LatentAttention& m) const {
    const double heads = d(m.heads) / c.tp;
    const double key = d(m.nope_dim + m.rope_dim), value = d(m.value_dim);
    Core out{.backward = c.constants.attention_backward,
             .exchanged = Bytes(2 * heads * (key + value) * c.tokens * (c.cp - 1))};
    if (m.indexer) {
      // Sparse MLA runs absorbed over the latent, kv_rank + rope for scores and kv_rank for values, at 640 of
      // 989 TFLOP/s on H800 (deepseek-ai/FlashMLA README, token-level sparse prefill).
      constexpr double kEfficiency = 0.65;
      const double keys = kept_keys(d(c.layout.sequence), d(m.indexer->top_k));
      const Flops operations(2 * heads * d(2 * m.kv_rank + m.rope_dim) * keys * c.tokens);
      out.forward = Estimate(operations / (c.gpu.peak_of(Dtype::bf16) * kEfficiency), Provenance::roofline,
                             kSparseError);
      out.forward += indexer_scores(c, *m.indexer);
      return out;
    }
    out.forward = softmax(c, d(c.layout.sequence), heads, heads, key, value, 0);
    if (c.software.fp8_attention) out.forward *= kFp8Attention;
    return out;
  }

  Core operator()(const CompressedAttention& m) const {
    const double heads = d(m.heads) / c.tp, sequence = d(c.layout.sequence);
    double keys = std::min(sequence / 2, d(m.window));
    if (m.ratio > 0) {
      const double entries = sequence / d(m.ratio);
      keys += m.indexer ? kept_keys(entries, d(m.indexer->top_k)) : entries / 2;
    }
    const Flops operations(4 * heads * d(m.head_dim) * keys * c.tokens);
    Core out{.forward = Estimate(operations / FlopsPerSecond(softmax_rate(c, sequence, d(m.head_dim))),
                                 Provenance::roofline, kSparseError),
             .backward = c.constants.attention_backward,
             .exchanged = Bytes(2 * d(m.head_dim) * c.tokens * (c.cp - 1))};
    if (m.indexer && m.ratio > 0) out.forward += indexer_scores(c, *m.indexer) * (1 / d(m.ratio));
    return out;
  }

  Core operator()(const GatedDeltaNet& m) const {
    const double key = d(m.key_heads) / c.tp, value = d(m.value_heads) / c.tp;
    const double state = value * d(m.key_dim * m.value_dim);
    if (c.table != nullptr && m.key_dim == m.value_dim)
      if (const auto measured = c.table->gated_delta_net(
              c.gpu, key, value, d(m.value_dim), d(c.layout.sequence) / c.cp, d(c.layout.microbatch_size)))
        return linear(*measured, state);
    // 0.137 µs a token with 32 value heads of 128 on H100, 0.191 with 64 (AIC): a part that does not shrink.
    const double width = value * d(m.value_dim) / 4096;
    const Seconds token(1e-6 * (0.083 + 0.054 * width) * memory_scale(c, kH100Memory));
    return linear({token * c.tokens, Provenance::roofline, kLinearError}, state);
  }

  Core operator()(const KimiDelta& m) const {
    const double heads = d(m.heads) / c.tp;
    const double state = heads * d(m.head_dim * m.head_dim);
    if (c.table != nullptr)
      if (const auto measured = c.table->kimi_delta(c.gpu, heads, d(m.head_dim), d(c.layout.sequence) / c.cp,
                                                    d(c.layout.microbatch_size)))
        return linear(*measured, state);
    // 0.168 µs a token with 96 heads of 128 on H100, 0.102 with 12, at 32 K tokens (AIC, FlashKDA).
    const double width = heads * d(m.head_dim) / 128;
    const Seconds token(1e-6 * (0.0926 + 0.000786 * width) * memory_scale(c, kH100Memory));
    return linear({token * c.tokens, Provenance::roofline, kLinearError}, state);
  }

  // 0.0955 µs a token on B200 with 64 or 128 heads of 64 and state 128, 0.19 with 256 (AIC): latency, then
  // width.
  [[nodiscard]] Seconds scan_token(double inner) const {
    return Seconds(0.0955e-6 * std::max(1.0, inner / 8192) * memory_scale(c, kB200Memory));
  }

  Core operator()(const Mamba2& m) const {
    const double heads = d(m.heads) / c.tp, groups = repeated(c, m.groups) / c.tp;
    const double state = heads * d(m.head_dim * m.state);
    if (c.table != nullptr)
      if (const auto measured = c.table->mamba2(c.gpu, heads, d(m.head_dim), groups, d(m.state),
                                                d(c.layout.sequence) / c.cp, d(c.layout.microbatch_size)))
        return linear(*measured, state);
    return linear({scan_token(heads * d(m.head_dim)) * c.tokens, Provenance::roofline, kLinearError}, state);
  }

  Core operator()(const Mamba1& m) const {
    // The chunked form is 2 to 8 times faster than the selective scan at equal state (arXiv:2405.21060,
    // figure 10, state 64); the scan's time is proportional to the state.
    const double slower = std::max(1.0, 4 * d(m.state) / 64);
    return linear(
        {scan_token(d(m.inner) / c.tp) * (slower * c.tokens), Provenance::roofline, kUnmeasuredError},
        d(m.inner * m.state) / c.tp);
  }

  Core operator()(const LightningAttention& m) const {
    // Chunked linear attention, chunk 256, 4·C·d + 4·d² operations a head and token. No kernel table exists:
    // the measured chunk kernels of other linear mixers reach 40 to 70 TFLOP/s on H100 and B200 (AIC).
    constexpr double kChunk = 256;
    const double dim = d(m.head_dim);
    const Flops operations(d(m.heads) / c.tp * (4 * kChunk * dim + 4 * dim * dim) * c.tokens);
    return linear({operations / FlopsPerSecond(55e12) * memory_scale(c, kH100Memory), Provenance::roofline,
                   kUnmeasuredError},
                  d(m.heads) / c.tp * dim * dim);
  }

  Core operator()(const ShortConvolution& m) const {
    // Three inputs read, one output written, in bf16, at 0.8 of the memory's peak (AIC).
    const Seconds time = Bytes(8 * c.hidden / c.tp * c.tokens / 0.8) / c.gpu.memory_bandwidth;
    // What a piece hands on is the convolution's tail, in bf16 like its inputs.
    Core out = linear({time, Provenance::roofline, kLinearError}, c.hidden / c.tp * d(m.kernel - 1) / 2);
    out.backward = 2;
    out.compute_share = 0;
    return out;
  }
};

}  // namespace

Core core_time(const Context& c, const Mixer& mixer) {
  return std::visit(CoreOf{c}, mixer);
}

}  // namespace tessera::pricing
