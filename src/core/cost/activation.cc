// Activations by what each backward reads: the inputs of the parameterised products and of the cores. What is
// computed again is `Again`'s to say.

#include "activation.h"

#include <algorithm>

#include "collective.h"
#include "mixer_time.h"

namespace tessera::pricing {
namespace {

double d(std::int64_t value) noexcept {
  return static_cast<double>(value);
}

// Elements per token over all TP ranks: what goes into a core, what comes out of it.
struct CoreKept {
  double input = 0;
  double latent_heads = 0;  // of the input, what MLA's up-projections make from the latents
  double made = 0;          // by the core: its output, what is convolved for it, its states
};

struct CoreKeptOf {
  const Context& c;

  CoreKept operator()(std::monostate) const noexcept { return {}; }
  CoreKept operator()(const SoftmaxAttention& m) const noexcept {
    const double key_value = repeated(c, m.kv_heads) * d(m.head_dim + m.value_dim);
    const double gate = m.output_gate ? d(m.query_heads * m.value_dim) : 0;
    return {.input = d(m.query_heads * m.head_dim) + key_value + gate,
            .made = d(m.query_heads * m.value_dim)};
  }
  CoreKept operator()(const LatentAttention& m) const noexcept {
    const double key = d(m.heads * (m.nope_dim + m.rope_dim)), value = d(m.heads * m.value_dim);
    // Queries of full rank come from the layer's input, not from a latent.
    return {.input = d(m.query_rank + m.kv_rank + m.rope_dim) + 2 * key + value,
            .latent_heads = (m.query_rank > 0 ? 2 : 1) * key + value,
            .made = value};
  }
  CoreKept operator()(const CompressedAttention& m) const noexcept {
    const double width = d(m.heads * m.head_dim);
    const double latents = d(m.query_rank + m.output_rank * std::max<std::int64_t>(1, m.output_groups));
    return {.input = latents + width + repeated(c, 1) * d(m.head_dim), .made = width};
  }
  CoreKept operator()(const GatedDeltaNet& m) const noexcept {
    // Before and after the convolution, the gate, the output and its normed form, one state per chunk of 64.
    const double key = d(m.key_heads * m.key_dim), value = d(m.value_heads * m.value_dim);
    return {.input = 2 * key + value + 2 * value,
            .made = 2 * key + value + value + d(m.value_heads * m.key_dim * m.value_dim) / 64};
  }
  CoreKept operator()(const KimiDelta& m) const noexcept {
    // As for Gated DeltaNet, with a decay as wide as the keys.
    const double width = d(m.heads * m.head_dim);
    return {.input = 5 * width, .made = 4 * width + width * d(m.head_dim) / 64};
  }
  CoreKept operator()(const Mamba1& m) const noexcept {
    return {.input = 3 * d(m.inner) + d(m.time_rank + 2 * m.state), .made = 2 * d(m.inner)};
  }
  CoreKept operator()(const Mamba2& m) const noexcept {
    const double inner = d(m.heads * m.head_dim), groups = 2 * repeated(c, m.groups) * d(m.state);
    const double chunk = m.chunk > 0 ? d(m.chunk) : 256;
    return {.input = 2 * inner + groups, .made = 2 * inner + groups + inner * d(m.state) / chunk};
  }
  CoreKept operator()(const LightningAttention& m) const noexcept {
    const double width = d(m.heads * m.head_dim);
    return {.input = 5 * width, .made = width};
  }
  CoreKept operator()(const ShortConvolution&) const noexcept {
    return {.input = 4 * c.hidden, .made = c.hidden};
  }
};

// Bytes per token of the residual input of a sublayer's norm, and of the normed input of its first product.
double sublayer_input(const Context& c, const Again& again) noexcept {
  return 2 * c.hidden + (again.norm ? 0 : c.hidden * operand_bytes(c.dense_dtype));
}

// Inputs of the activation function in bf16, and its output as the next product reads it.
double mlp_kept(double width, bool gated, bool output, Dtype dtype) noexcept {
  return width * ((gated ? 2 : 1) * 2 + (output ? operand_bytes(weight_gradient_dtype(dtype)) : 0));
}

double mixer_kept(const Context& c, const Again& again, const Mixer& mixer) {
  if (std::holds_alternative<std::monostate>(mixer)) return 0;
  const CoreKept core = std::visit(CoreKeptOf{c}, mixer);
  const double kept =
      core.input - (again.up_projection ? core.latent_heads : 0) + (again.core ? 0 : core.made);
  // Cut over TP with the heads, or with the sequence.
  return c.tokens_local * (sublayer_input(c, again) + 2 * kept);
}

double dense_kept(const Context& c, const Again& again, const DenseFeedForward& dense) {
  return c.tokens_local *
         (sublayer_input(c, again) + mlp_kept(d(dense.width), dense.gated, true, c.dense_dtype));
}

// Probabilities are applied inside the activation, so the routed experts' output is not kept.
double moe_kept(const Context& c, const Again& again, const MixtureOfExperts& moe) {
  double out = c.tokens_local * sublayer_input(c, again);
  if (again.moe) return out;
  out += c.tokens_local * 4 * d(moe.experts);
  const double operand = operand_bytes(weight_gradient_dtype(c.expert_dtype));
  out += routed_rows(c, moe) *
         (routed_width(c, moe) * operand +
          mlp_kept(d(moe.expert_width) / c.etp, moe.gated, !again.moe_activation, c.expert_dtype));
  if (moe.shared_width > 0 && !again.shared_expert)
    out += c.tokens_local * mlp_kept(d(moe.shared_width), moe.gated, true, c.dense_dtype);
  return out;
}

// A product's input and the gradient of its output.
double product_stash(double rows, double in, double out, Dtype dtype) noexcept {
  return rows * (in * operand_bytes(weight_gradient_dtype(dtype)) + out * 2);
}

double mlp_stash(double rows, double in, double width, bool gated, Dtype dtype) noexcept {
  return product_stash(rows, in, (gated ? 2 : 1) * width, dtype) + product_stash(rows, width, in, dtype);
}

}  // namespace

double layer_activation(const Context& c, const Again& again, const Layer& layer) {
  if (again.everything) return 2 * c.hidden * c.tokens_local;
  double out = mixer_kept(c, again, layer.mixer);
  if (layer.dense) out += dense_kept(c, again, *layer.dense);
  if (layer.moe) out += moe_kept(c, again, *layer.moe);
  return out;
}

double layer_stash(const Context& c, const Layer& layer) {
  double out = 0;
  for (const Projection& p : projections(c, layer.mixer))
    out += product_stash(c.tokens, p.in, p.out, c.dense_dtype);
  if (layer.dense)
    out += mlp_stash(c.tokens, c.hidden, d(layer.dense->width) / c.tp, layer.dense->gated, c.dense_dtype);
  if (!layer.moe) return out;
  const MixtureOfExperts& moe = *layer.moe;
  const double width = routed_width(c, moe);
  out += product_stash(c.tokens_local, c.hidden, d(moe.experts), Dtype::bf16);
  out += mlp_stash(routed_rows(c, moe), width, d(moe.expert_width) / c.etp, moe.gated, c.expert_dtype);
  if (moe.latent > 0)
    out += product_stash(c.tokens_local, c.hidden, width, c.dense_dtype) +
           product_stash(c.tokens_local, width, c.hidden, c.dense_dtype);
  if (moe.shared_width > 0)
    out += mlp_stash(c.tokens, c.hidden, d(moe.shared_width) / c.tp, moe.gated, c.dense_dtype);
  return out;
}

double dispatch_buffers(const Context& c, const Layer& layer) {
  if (!layer.moe || c.ep * c.etp <= 1) return 0;
  return routed_rows(c, *layer.moe) * routed_width(c, *layer.moe) * 2 * 2;
}

double logit_bytes(const Context& c) {
  return c.tokens * d(c.model.vocabulary) / c.tp * (2 + 4);
}

}  // namespace tessera::pricing
