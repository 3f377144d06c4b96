// Static bytes by parameter: mixed-precision Adam holds 18 bytes a parameter: 2 weight, 4 gradient, 12 master
// weight and moments (Megatron-Core MoE, arXiv:2603.07685); the 12 are sharded over data parallel ranks
// (ZeRO-1). With bf16 gradients it is 2 instead of 4, with bf16 moments 8 instead of 12. Activations by what
// each backward reads: the inputs of the parameterised products and of the cores.

#include "memory.h"

#include <algorithm>

#include "collective.h"
#include "mixer_time.h"
#include "tessera/core/model/count.h"

namespace tessera::pricing {
namespace {

double d(std::int64_t value) noexcept {
  return static_cast<double>(value);
}

std::int64_t share(std::int64_t parameters, std::int64_t ranks) noexcept {
  return (parameters + ranks - 1) / ranks;
}

constexpr double kWeight = 2;

struct Parameters {
  std::int64_t dense = 0;
  std::int64_t expert = 0;
  double low_precision = 0;  ///< of them, those of products in the training dtype
};

Parameters parameters_on_rank(const Context& c, const Block& block) {
  const ParameterCount count = count_parameters(c.model, block);
  const Layout& l = c.layout;
  Parameters out;
  const std::int64_t cut = share(count.mixer, l.tp) + share(count.dense, l.tp) + share(count.shared, l.tp);
  out.dense = cut + share(count.embedding, l.tp) + share(count.head, l.tp) + count.router + count.latent +
              count.norms + count.projection;
  // A tied head on another rank than the embedding is a copy that is kept equal.
  if (block.kind == BlockKind::head && c.model.tied_embeddings && l.pp > 1)
    out.dense += share(c.model.vocabulary * c.model.hidden, l.tp);
  out.expert = share(count.routed, l.ep * l.etp);
  out.low_precision = d(cut) + d(out.expert);
  return out;
}

// Bytes per token of inputs kept in the training dtype, and of those kept in bf16.
struct Kept {
  double low = 0;
  double bf16 = 0;
};

// Queries, keys, values and output of an attention core; inputs of a recurrence.
struct CoreKept {
  double operator()(std::monostate) const noexcept { return 0; }
  double operator()(const SoftmaxAttention& m) const noexcept {
    return d(m.query_heads * (m.head_dim + m.value_dim) + m.kv_heads * (m.head_dim + m.value_dim)) +
           (m.output_gate ? d(m.query_heads * m.value_dim) : 0);
  }
  bool up_projection_again;
  double operator()(const LatentAttention& m) const noexcept {
    const double latent = d(m.query_rank + m.kv_rank + m.rope_dim), output = d(m.heads * m.value_dim);
    const double heads = d(m.heads * (2 * (m.nope_dim + m.rope_dim) + m.value_dim));
    return latent + output + (up_projection_again ? 0 : heads);
  }
  double operator()(const CompressedAttention& m) const noexcept {
    return d(m.query_rank + 2 * m.heads * m.head_dim + m.head_dim +
             m.output_rank * std::max<std::int64_t>(1, m.output_groups));
  }
  double operator()(const GatedDeltaNet& m) const noexcept {
    // Before and after the convolution, the gate, the output, and one state per chunk of 64 tokens.
    const double key = d(m.key_heads * m.key_dim), value = d(m.value_heads * m.value_dim);
    return 2 * (2 * key + value) + 3 * value + d(m.value_heads * m.key_dim * m.value_dim) / 64;
  }
  double operator()(const KimiDelta& m) const noexcept {
    const double width = d(m.heads * m.head_dim);
    return 9 * width + width * d(m.head_dim) / 64;
  }
  double operator()(const Mamba1& m) const noexcept { return 5 * d(m.inner) + d(m.time_rank + 2 * m.state); }
  double operator()(const Mamba2& m) const noexcept {
    const double inner = d(m.heads * m.head_dim), groups = d(2 * m.groups * m.state);
    const double chunk = m.chunk > 0 ? d(m.chunk) : 256;
    return 4 * inner + 2 * groups + inner * d(m.state) / chunk;
  }
  double operator()(const LightningAttention& m) const noexcept { return 6 * d(m.heads * m.head_dim); }
  double hidden;
  double operator()(const ShortConvolution&) const noexcept { return 5 * hidden; }
};

double bytes(const Context& c, const Kept& kept) noexcept {
  return kept.low * operand_bytes(c.dense_dtype) + kept.bf16 * 2;
}

// Per token of the CP rank, cut over TP with heads or sequence.
double mixer_kept(const Context& c, const Mixer& mixer) {
  if (std::holds_alternative<std::monostate>(mixer)) return 0;
  const double core = std::visit(
      CoreKept{.up_projection_again = c.layout.recompute.mla_up_projection, .hidden = c.hidden}, mixer);
  // The residual input of the norm, and the normed input of the first projection.
  const Kept kept{.low = c.layout.recompute.norm ? 0 : c.hidden, .bf16 = c.hidden + core};
  return bytes(c, kept) / c.tp;
}

double dense_kept(const Context& c, const DenseFeedForward& dense) {
  const double width = d(dense.width);
  const Kept kept{.low = (c.layout.recompute.norm ? 0 : c.hidden) + width,
                  .bf16 = c.hidden + width * (dense.gated ? 2 : 1)};
  return bytes(c, kept) / c.tp;
}

// Per token of the rank; routed copies at the fullest rank. Probabilities are applied inside the activation,
// so the last product's output is not kept.
double moe_kept(const Context& c, const MixtureOfExperts& moe) {
  const Recompute& again = c.layout.recompute;
  Kept kept{.low = again.norm ? 0 : c.hidden, .bf16 = c.hidden + 2 * d(moe.experts)};
  if (again.moe) return bytes(c, {.low = 0, .bf16 = c.hidden});
  const double width = moe.latent > 0 ? d(moe.latent) : c.hidden;
  const double copies = d(moe.top_k) * fullest_rank(c, moe);
  const double inner = d(moe.expert_width);  // ETP cuts the width and gathers as many tokens
  kept.low += copies * (width + (again.moe_activation ? 0 : inner));
  kept.bf16 += copies * inner * (moe.gated ? 2 : 1);
  if (moe.shared_width > 0 && !again.shared_experts) {
    kept.low += d(moe.shared_width);
    kept.bf16 += d(moe.shared_width) * (moe.gated ? 2 : 1);
  }
  return bytes(c, kept);
}

// Between B and W: each product's input, and the gradient of its output in bf16.
double layer_stash(const Context& c, const Layer& layer) {
  const double operand = operand_bytes(c.dense_dtype);
  double out = 0;
  for (const Projection& p : projections(c, layer.mixer)) out += c.tokens * (p.in * operand + p.out * 2);
  const auto mlp = [&](double rows, double in, double width, bool gated) {
    return rows * (in * operand + width * (gated ? 2 : 1) * 2 + width * operand + in * 2);
  };
  if (layer.dense) out += mlp(c.tokens, c.hidden, d(layer.dense->width) / c.tp, layer.dense->gated);
  if (layer.moe) {
    const MixtureOfExperts& moe = *layer.moe;
    const double width = moe.latent > 0 ? d(moe.latent) : c.hidden;
    out += mlp(c.tokens_local * d(moe.top_k) * fullest_rank(c, moe), width, d(moe.expert_width), moe.gated);
    if (moe.shared_width > 0) out += mlp(c.tokens, c.hidden, d(moe.shared_width) / c.tp, moe.gated);
  }
  return out;
}

double layer_activation(const Context& c, const Layer& layer) {
  if (c.layout.recompute.full) return 2 * c.hidden * c.tokens_local;
  double out = c.tokens * mixer_kept(c, layer.mixer);
  if (layer.dense) out += c.tokens * dense_kept(c, *layer.dense);
  if (layer.moe) out += c.tokens_local * moe_kept(c, *layer.moe);
  return out;
}

// Received copies in and their results out, in bf16, at the fullest rank.
double dispatch_buffers(const Context& c, const Layer& layer) {
  if (!layer.moe || c.ep <= 1) return 0;
  const double width = layer.moe->latent > 0 ? d(layer.moe->latent) : c.hidden;
  return c.tokens_local * d(layer.moe->top_k) * fullest_rank(c, *layer.moe) * width * 2 * 2;
}

// bf16 logits and their fp32 probabilities.
double logits(const Context& c) {
  return c.tokens * d(c.model.vocabulary) / c.tp * (2 + 4);
}

}  // namespace

BlockMemory block_memory(const Context& c, const Block& block) {
  const Parameters parameters = parameters_on_rank(c, block);
  BlockMemory out;
  out.dense_parameters = parameters.dense;
  out.expert_parameters = parameters.expert;
  const double all = d(parameters.dense) + d(parameters.expert);
  out.weights = Bytes(kWeight * all);
  // A low-precision product reads its weight by rows forward and by columns backward: two copies, beside the
  // bf16 weight or instead of it.
  if (c.layout.dtype != Dtype::bf16) {
    const double beside = c.software.low_precision_weights ? kWeight : 0;
    out.weights += Bytes((2 * operand_bytes(c.layout.dtype) - beside) * parameters.low_precision);
  }
  out.gradients = Bytes((c.software.bf16_gradients ? 2 : 4) * all);
  const bool sharded = c.software.distributed_optimizer;
  const double optimizer = c.software.bf16_moments ? 4 + 2 * 2 : 4 + 2 * 4;  // master weight and two moments
  const double dense_shards = sharded ? d(c.layout.dp * c.layout.cp) : 1;
  const double expert_shards = sharded ? d(std::max<std::int64_t>(1, c.layout.expert_dp())) : 1;
  out.optimizer =
      Bytes(optimizer * (d(parameters.dense) / dense_shards + d(parameters.expert) / expert_shards));

  const double input = 2 * c.hidden * d(c.model.residual_streams) * c.tokens_local;
  if (block.type >= 0) {
    const Layer& layer = c.model.layer_of(block);
    out.activation = Bytes(layer_activation(c, layer) + (input - 2 * c.hidden * c.tokens_local));
    out.weight_stash = Bytes(layer_stash(c, layer));
    out.workspace = Bytes(dispatch_buffers(c, layer));
  }
  if (block.kind == BlockKind::head || block.kind == BlockKind::mtp) {
    out.activation += Bytes(2 * 2 * c.hidden * c.tokens_local);
    out.weight_stash += Bytes(2 * c.tokens * (c.hidden + d(c.model.vocabulary) / c.tp));
    out.workspace = std::max(out.workspace, Bytes(logits(c)));
  }
  if (block.kind == BlockKind::mtp) out.activation += Bytes(2 * 2 * c.hidden * c.tokens_local);
  return out;
}

}  // namespace tessera::pricing
