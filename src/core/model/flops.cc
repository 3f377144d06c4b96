// Forward operations per token. Sources of each core formula stand in docs/formulas.md.
#include <algorithm>
#include <variant>

#include "parameter_formulas.h"
#include "tessera/core/model/count.h"

namespace tessera {

namespace {

// Tokens a query sees on average, when query t of s sees min(t, limit) of them.
double mean_context(double sequence, double limit) {
  return sequence <= limit ? sequence / 2 : limit - limit * limit / (2 * sequence);
}

// The same within blocks of `chunk` tokens, the last one perhaps shorter.
double mean_chunked_context(double sequence, double chunk) {
  if (sequence <= chunk) return sequence / 2;
  const double whole = static_cast<double>(static_cast<std::int64_t>(sequence / chunk));
  const double rest = sequence - whole * chunk;
  return (whole * chunk * chunk + rest * rest) / (2 * sequence);
}

double scoring(const SparseIndexer& indexer, double mean_entries) {
  if (indexer.shared) return 0;
  return 2 * static_cast<double>(indexer.heads) * static_cast<double>(indexer.head_dim) * mean_entries;
}

// The operations that no parameter takes part in.
struct Core {
  double sequence;

  double operator()(const std::monostate&) const { return 0; }

  double operator()(const SoftmaxAttention& a) const {
    double context = sequence / 2;
    double extra = 0;
    if (a.window > 0) {
      context = mean_context(sequence, static_cast<double>(a.window));
    } else if (a.chunk > 0) {
      context = mean_chunked_context(sequence, static_cast<double>(a.chunk));
    } else if (a.indexer) {
      context = mean_context(sequence, static_cast<double>(a.indexer->top_k));
      extra = scoring(*a.indexer, sequence / 2);
    }
    return extra +
           2 * static_cast<double>(a.query_heads) * static_cast<double>(a.head_dim + a.value_dim) * context;
  }

  double operator()(const LatentAttention& a) const {
    double context = sequence / 2;
    double extra = 0;
    if (a.indexer) {
      context = mean_context(sequence, static_cast<double>(a.indexer->top_k));
      extra = scoring(*a.indexer, sequence / 2);
    }
    const auto dims = static_cast<double>(a.nope_dim + a.rope_dim + a.value_dim);
    return extra + 2 * static_cast<double>(a.heads) * dims * context;
  }

  double operator()(const CompressedAttention& a) const {
    double context = mean_context(sequence, static_cast<double>(a.window));
    double extra = 0;
    if (a.ratio > 0) {
      const double entries = sequence / static_cast<double>(a.ratio);
      context += a.indexer ? mean_context(entries, static_cast<double>(a.indexer->top_k)) : entries / 2;
      if (a.indexer) extra = scoring(*a.indexer, entries / 2);
    }
    return extra + 4 * static_cast<double>(a.heads) * static_cast<double>(a.head_dim) * context;
  }

  // Chunked delta rule, chunks of 64 tokens.
  double operator()(const GatedDeltaNet& g) const {
    constexpr double chunk = 64;
    const auto key = static_cast<double>(g.key_dim), value = static_cast<double>(g.value_dim);
    return static_cast<double>(g.value_heads) *
           (6 * key * value + 2 * chunk * (3 * key + 2 * value) + chunk * chunk / 3);
  }

  double operator()(const KimiDelta& k) const {
    constexpr double chunk = 64;
    const auto dim = static_cast<double>(k.head_dim);
    return static_cast<double>(k.heads) * (6 * dim * dim + 3 * chunk * dim + chunk * chunk);
  }

  double operator()(const Mamba1& m) const {
    return 9 * static_cast<double>(m.inner) * static_cast<double>(m.state);
  }

  double operator()(const Mamba2& m) const {
    const auto chunk = static_cast<double>(m.chunk), state = static_cast<double>(m.state);
    const auto inner = static_cast<double>(m.heads) * static_cast<double>(m.head_dim);
    return 2 * chunk * state * static_cast<double>(m.groups) + 2 * chunk * inner + 4 * state * inner;
  }

  double operator()(const LightningAttention& l) const {
    constexpr double chunk = 256;
    const auto dim = static_cast<double>(l.head_dim);
    return static_cast<double>(l.heads) * (4 * chunk * dim + 4 * dim * dim);
  }

  double operator()(const ShortConvolution&) const { return 0; }
};

void add_layer(ForwardFlops& out, const ModelSpec& model, const Layer& layer, std::int64_t sequence) {
  const auto h = static_cast<double>(model.hidden);
  double projections = formulas::mixer<double>(layer.mixer, h).matrices;
  if (model.residual_streams > 1)
    projections +=
        2 * formulas::hyper_connection<double>(static_cast<double>(model.residual_streams), h).matrices;
  out.mixer_projections += Flops(2 * projections);
  out.mixer_core += Flops(std::visit(Core{static_cast<double>(sequence)}, layer.mixer));
  if (layer.dense) out.dense += Flops(2 * formulas::dense<double>(*layer.dense, h).matrices);
  if (!layer.moe) return;
  const auto moe = formulas::moe<double>(*layer.moe, h);
  out.shared += Flops(2 * moe.shared.matrices);
  out.router += Flops(2 * moe.router.matrices);
  out.latent += Flops(2 * moe.latent.matrices);
  out.routed += Flops(2 * static_cast<double>(layer.moe->top_k) * moe.one_expert.matrices);
}

}  // namespace

Flops ForwardFlops::total() const noexcept {
  return mixer_projections + mixer_core + dense + shared + router + latent + routed + projection + head;
}

ForwardFlops forward_flops(const ModelSpec& model, const Block& block, std::int64_t sequence) {
  const auto h = static_cast<double>(model.hidden);
  const Flops head(2 * h * static_cast<double>(model.vocabulary));
  ForwardFlops out;
  switch (block.kind) {
    case BlockKind::embedding:
      break;
    case BlockKind::head:
      out.head = head;
      break;
    case BlockKind::layer:
      add_layer(out, model, model.layer_of(block), sequence);
      break;
    case BlockKind::mtp:
      add_layer(out, model, model.layer_of(block), sequence);
      out.projection = Flops(4 * h * h);
      out.head = head;
      break;
  }
  return out;
}

Flops training_flops_per_token(const ModelSpec& model, std::int64_t sequence) {
  Flops forward;
  for (const Block& block : model.blocks) forward += forward_flops(model, block, sequence).total();
  return 3 * forward;
}

}  // namespace tessera
