// The parameter formulas of docs/formulas.md, over any number type.
//
// With std::int64_t they are exact; with double they cannot overflow, which is how a model too large to be
// counted is found before it is counted.
#pragma once

#include <cstdint>
#include <type_traits>
#include <variant>

#include "tessera/core/model/model_spec.h"

namespace tessera::formulas {

template <class N>
[[nodiscard]] constexpr N to(std::int64_t value) noexcept {
  return static_cast<N>(value);
}

/// Matrices do the arithmetic; vectors are norm weights, biases and per-head scalars.
template <class N>
struct Size {
  N matrices{};
  N vectors{};
  [[nodiscard]] N total() const { return matrices + vectors; }
  Size& operator+=(const Size& other) {
    matrices += other.matrices;
    vectors += other.vectors;
    return *this;
  }
};

/// `query_width` is what the indexer's queries are projected from: MLA's query latent, or the hidden state.
template <class N>
Size<N> indexer(const SparseIndexer& x, N hidden, N query_width) {
  if (x.shared) return {};
  const N heads = to<N>(x.heads), dim = to<N>(x.head_dim);
  return {query_width * heads * dim + hidden * dim + hidden * heads, 2 * dim};
}

template <class N>
Size<N> mixer(const SoftmaxAttention& a, N h) {
  const N queries = to<N>(a.query_heads) * to<N>(a.head_dim) * (a.output_gate ? 2 : 1);
  const N keys = to<N>(a.kv_heads) * to<N>(a.head_dim);
  const N values = a.shared_value ? to<N>(0) : to<N>(a.kv_heads) * to<N>(a.value_dim);
  Size<N> out;
  out.matrices = h * queries + h * keys + h * values + to<N>(a.query_heads) * to<N>(a.value_dim) * h;
  if (a.head_gate) out.matrices += h * to<N>(a.query_heads);
  if (a.bias) out.vectors += queries + keys + values;
  if (a.output_bias) out.vectors += h;
  if (a.query_key_norm) {
    out.vectors +=
        a.query_key_norm_wide ? to<N>(a.query_heads) * to<N>(a.head_dim) + keys : 2 * to<N>(a.head_dim);
  }
  if (a.sinks) out.vectors += to<N>(a.query_heads);
  if (a.indexer) out += indexer<N>(*a.indexer, h, h);
  return out;
}

template <class N>
Size<N> mixer(const LatentAttention& a, N h) {
  const N heads = to<N>(a.heads), rank = to<N>(a.query_rank), kv = to<N>(a.kv_rank), rope = to<N>(a.rope_dim),
          value = to<N>(a.value_dim);
  const N query_dim = to<N>(a.nope_dim) + rope;
  Size<N> out;
  out.matrices = rank > 0 ? h * rank + rank * heads * query_dim : h * heads * query_dim;
  out.matrices += h * (kv + rope) + kv * heads * (to<N>(a.nope_dim) + value) + heads * value * h;
  if (a.output_gate) out.matrices += h * heads * value;
  out.vectors = rank + kv;
  if (a.indexer) out += indexer<N>(*a.indexer, h, rank > 0 ? rank : h);
  return out;
}

template <class N>
Size<N> mixer(const CompressedAttention& a, N h) {
  const N heads = to<N>(a.heads), dim = to<N>(a.head_dim), rank = to<N>(a.query_rank),
          out_rank = to<N>(a.output_rank), groups = to<N>(a.output_groups);
  Size<N> out;
  out.matrices = h * rank + rank * heads * dim + h * dim + heads * dim * out_rank + groups * out_rank * h;
  out.vectors = rank + dim + heads;  // two norms, one sink per head
  if (a.ratio == 0) return out;
  // A compressor pools `ratio` tokens by learned gates and positions; overlapping windows double its width.
  const auto compressor = [&](N width) -> Size<N> {
    const N wide = a.indexer ? 2 * width : width;
    return {2 * h * wide, to<N>(a.ratio) * wide + width};
  };
  out += compressor(dim);
  if (a.indexer && !a.indexer->shared) {
    const N index_heads = to<N>(a.indexer->heads), index_dim = to<N>(a.indexer->head_dim);
    out.matrices += rank * index_heads * index_dim + h * index_heads;
    out += compressor(index_dim);
  }
  return out;
}

template <class N>
Size<N> mixer(const GatedDeltaNet& g, N h) {
  const N keys = to<N>(g.key_heads) * to<N>(g.key_dim), values = to<N>(g.value_heads) * to<N>(g.value_dim),
          heads = to<N>(g.value_heads);
  return {h * (2 * keys + 2 * values + 2 * heads) + to<N>(g.convolution) * (2 * keys + values) + values * h,
          to<N>(g.value_dim) + 2 * heads};
}

template <class N>
Size<N> mixer(const KimiDelta& k, N h) {
  const N heads = to<N>(k.heads), dim = to<N>(k.head_dim), width = heads * dim;
  const N low_rank = h * dim + dim * width;
  return {3 * h * width + low_rank + (k.full_rank_gate ? h * width : low_rank) + h * heads + width * h +
              3 * to<N>(k.convolution) * width,
          dim + heads + width};
}

template <class N>
Size<N> mixer(const Mamba1& m, N h) {
  const N inner = to<N>(m.inner), state = to<N>(m.state), rank = to<N>(m.time_rank);
  return {2 * h * inner + to<N>(m.convolution) * inner + inner * (rank + 2 * state) + rank * inner +
              inner * state + inner + inner * h,
          2 * inner + rank + 2 * state};
}

template <class N>
Size<N> mixer(const Mamba2& m, N h) {
  const N inner = to<N>(m.heads) * to<N>(m.head_dim), mixed = inner + 2 * to<N>(m.groups) * to<N>(m.state),
          heads = to<N>(m.heads);
  return {h * (inner + mixed + heads) + to<N>(m.convolution) * mixed + inner * h, mixed + 3 * heads + inner};
}

template <class N>
Size<N> mixer(const LightningAttention& l, N h) {
  const N width = to<N>(l.heads) * to<N>(l.head_dim);
  return {5 * h * width, width};
}

template <class N>
Size<N> mixer(const ShortConvolution& s, N h) {
  return {3 * h * h + to<N>(s.kernel) * h + h * h, to<N>(0)};
}

template <class N>
Size<N> mixer(const Mixer& any, N h) {
  return std::visit(
      [&](const auto& one) -> Size<N> {
        if constexpr (std::is_same_v<std::decay_t<decltype(one)>, std::monostate>) {
          return {};
        } else {
          return mixer<N>(one, h);
        }
      },
      any);
}

template <class N>
Size<N> dense(const DenseFeedForward& d, N h) {
  return {to<N>(d.gated ? 3 : 2) * h * to<N>(d.width), to<N>(0)};
}

template <class N>
struct MoeSize {
  Size<N> one_expert, router, shared, latent;
};

template <class N>
MoeSize<N> moe(const MixtureOfExperts& m, N h) {
  const N inner = m.latent > 0 ? to<N>(m.latent) : h, width = to<N>(m.expert_width),
          experts = to<N>(m.experts), up = to<N>(m.gated ? 2 : 1);
  MoeSize<N> out;
  out.one_expert = {(up + 1) * inner * width, m.bias ? up * width + inner : to<N>(0)};
  out.router = {h * experts, experts * to<N>((m.bias ? 1 : 0) + (m.score_correction ? 1 : 0))};
  out.shared = {(up + 1) * h * to<N>(m.shared_width) + (m.shared_gate ? h : to<N>(0)), to<N>(0)};
  if (m.latent > 0) out.latent = {2 * h * inner, to<N>(0)};
  return out;
}

/// The mixing weights hyper-connections put before one sublayer: from all streams to read, write and mix
/// them.
template <class N>
Size<N> hyper_connection(N streams, N h) {
  const N outputs = (streams + 2) * streams;
  return {outputs * streams * h, outputs + 3};
}

}  // namespace tessera::formulas
