// The parameterised products of every mixer, cut over tensor parallel ranks.

#include "mixer_time.h"

namespace tessera::pricing {
namespace {

double d(std::int64_t value) noexcept {
  return static_cast<double>(value);
}

struct ProjectionsOf {
  const Context& c;
  double h = c.hidden;
  double tp = c.tp;
  using List = std::vector<Projection>;

  List operator()(std::monostate) const { return {}; }
  List operator()(const SoftmaxAttention& m) const {
    const double query = d(m.query_heads * m.head_dim) * (m.output_gate ? 2 : 1);
    const double key_value = repeated(c, m.kv_heads) * d(m.head_dim + (m.shared_value ? 0 : m.value_dim));
    const double gate = m.head_gate ? d(m.query_heads) : 0;
    List out{{h, (query + key_value + gate) / tp}, {d(m.query_heads * m.value_dim) / tp, h}};
    if (m.indexer) add_indexer(*m.indexer, h, out);
    return out;
  }
  List operator()(const LatentAttention& m) const {
    const double heads = d(m.heads), key = d(m.nope_dim + m.rope_dim), value = d(m.value_dim);
    List out;
    if (m.query_rank > 0) {
      out.push_back({h, d(m.query_rank) / tp});
      out.push_back({d(m.query_rank), heads * key / tp, true});
    } else {
      out.push_back({h, heads * key / tp});
    }
    out.push_back({h, d(m.kv_rank + m.rope_dim) / tp});
    out.push_back({d(m.kv_rank), heads * (d(m.nope_dim) + value) / tp, true});
    if (m.output_gate) out.push_back({h, heads * value / tp});
    out.push_back({heads * value / tp, h});
    if (m.indexer) add_indexer(*m.indexer, m.query_rank > 0 ? d(m.query_rank) : h, out);
    return out;
  }
  List operator()(const CompressedAttention& m) const {
    const double width = d(m.heads * m.head_dim);
    List out{{h, d(m.query_rank) / tp}, {d(m.query_rank), width / tp}, {h, d(m.head_dim)}};
    // The output projection runs in groups: each group's heads into a latent, then all latents into the
    // stream.
    const double groups = m.output_groups > 0 ? d(m.output_groups) : 1;
    out.push_back({width / groups, d(m.output_rank) * groups / tp});
    out.push_back({d(m.output_rank) * groups / tp, h});
    if (m.indexer) add_indexer(*m.indexer, d(m.query_rank), out);
    return out;
  }
  List operator()(const GatedDeltaNet& m) const {
    const double key = d(m.key_heads * m.key_dim), value = d(m.value_heads * m.value_dim);
    return {{h, (2 * key + 2 * value + 2 * d(m.value_heads)) / tp}, {value / tp, h}};
  }
  List operator()(const KimiDelta& m) const {
    const double width = d(m.heads * m.head_dim), rank = d(m.head_dim);
    // Queries, keys, values and one step size per head; decay through a low rank, the output gate too or in
    // full.
    const double full_gate = m.full_rank_gate ? width : 0;
    const double ranks = m.full_rank_gate ? 1 : 2;
    return {{h, (3 * width + full_gate + d(m.heads)) / tp},
            {h, ranks * rank},
            {rank, ranks * width / tp},
            {width / tp, h}};
  }
  List operator()(const Mamba1& m) const {
    const double inner = d(m.inner), rank = d(m.time_rank), state = d(m.state);
    return {{h, 2 * inner / tp}, {inner / tp, rank + 2 * state}, {rank, inner / tp}, {inner / tp, h}};
  }
  List operator()(const Mamba2& m) const {
    const double inner = d(m.heads * m.head_dim);
    return {{h, (2 * inner + 2 * repeated(c, m.groups) * d(m.state) + d(m.heads)) / tp}, {inner / tp, h}};
  }
  List operator()(const LightningAttention& m) const {
    const double width = d(m.heads * m.head_dim);
    return {{h, 4 * width / tp}, {width / tp, h}};
  }
  List operator()(const ShortConvolution&) const { return {{h, 3 * h / tp}, {h / tp, h}}; }

  // Every TP rank scores for all heads: the indexer is small and not cut.
  void add_indexer(const SparseIndexer& indexer, double query_in, List& out) const {
    if (indexer.shared) return;
    out.push_back({query_in, d(indexer.heads * indexer.head_dim)});
    out.push_back({h, d(indexer.head_dim + indexer.heads)});
  }
};

}  // namespace

std::vector<Projection> projections(const Context& c, const Mixer& mixer) {
  return std::visit(ProjectionsOf{c}, mixer);
}

}  // namespace tessera::pricing
