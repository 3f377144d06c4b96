// Static bytes by parameter: mixed-precision Adam holds 18 bytes a parameter: 2 weight, 4 gradient, 12 master
// weight and moments (Megatron-Core MoE, arXiv:2603.07685); the 12 are sharded over data parallel ranks
// (ZeRO-1). With bf16 gradients it is 2 instead of 4, with bf16 moments 8 instead of 12.

#include "memory.h"

#include <algorithm>

#include "activation.h"
#include "tessera/core/model/count.h"

namespace tessera {
namespace pricing {
namespace {

double d(std::int64_t value) noexcept {
  return static_cast<double>(value);
}

std::int64_t share(std::int64_t parameters, std::int64_t ranks) noexcept {
  return (parameters + ranks - 1) / ranks;
}

struct Parameters {
  std::int64_t dense = 0;
  std::int64_t expert = 0;
  std::int64_t low_precision = 0;        // of the dense ones, those of products in the training dtype
  std::int64_t embedding = 0, head = 0;  // of the dense ones
};

// Key and value projections of fewer heads than TP ranks are repeated: what that adds to all ranks together.
std::int64_t repeated_key_values(const Context& c, const Layer& layer) noexcept {
  const auto* m = std::get_if<SoftmaxAttention>(&layer.mixer);
  if (m == nullptr || m->kv_heads >= c.layout.tp) return 0;
  const std::int64_t width = m->head_dim + (m->shared_value ? 0 : m->value_dim);
  return (c.layout.tp - m->kv_heads) * width * (c.model.hidden + (m->bias ? 1 : 0));
}

// A head that is tied to the embedding, and an MTP block's two ends, are copies kept equal unless the rank
// has the matrix already; price_static_memory knows.
Parameters parameters_on_rank(const Context& c, const Block& block) {
  const ParameterCount count = count_parameters(c.model, block);
  const Layout& l = c.layout;
  const std::int64_t matrix = share(c.model.vocabulary * c.model.hidden, l.tp);
  const bool mtp = block.kind == BlockKind::mtp, head = block.kind == BlockKind::head;
  Parameters out;
  if (block.kind == BlockKind::embedding || mtp || (head && c.model.tied_embeddings)) out.embedding = matrix;
  if ((head || mtp) && !c.model.tied_embeddings) out.head = matrix;
  const std::int64_t repeated = block.type >= 0 ? repeated_key_values(c, c.model.layer_of(block)) : 0;
  out.low_precision = share(count.mixer + repeated, l.tp) + share(count.dense, l.tp) +
                      share(count.shared, l.tp) + count.latent + count.projection;
  out.dense = out.low_precision + out.embedding + out.head + count.router + count.norms;
  out.expert = share(count.routed, l.ep * l.etp);
  return out;
}

// Bytes a parameter costs whatever it is: weight, gradient, optimizer over its shards.
struct PerParameter {
  double weight = 2;
  double gradient, optimizer;
  double dense_shards, expert_shards;
  explicit PerParameter(const Context& c) noexcept
      : gradient(c.software.bf16_gradients ? 2 : 4),
        optimizer(c.software.bf16_moments ? 4 + 2 * 2 : 4 + 2 * 4),  // master weight and two moments
        dense_shards(c.software.distributed_optimizer ? d(c.layout.dp * c.layout.cp) : 1),
        expert_shards(c.software.distributed_optimizer ? d(std::max<std::int64_t>(1, c.layout.expert_dp()))
                                                       : 1) {}
};

// A low-precision product reads its weight by rows forward and by columns backward: two copies, beside the
// bf16 weight or instead of it.
double low_precision_copies(const Context& c, Dtype dtype, const PerParameter& each) noexcept {
  if (dtype == Dtype::bf16) return 0;
  return 2 * operand_bytes(dtype) - (c.software.low_precision_weights ? each.weight : 0);
}

void add_ends(const Context& c, const Block& block, BlockMemory& out) {
  const bool mtp = block.kind == BlockKind::mtp;
  if (block.kind != BlockKind::head && !mtp) return;
  // The head's input and its normed form, in bf16, and the logits.
  out.logits = Bytes(logit_bytes(c));
  out.activation += Bytes(2 * 2 * c.hidden * c.tokens_local) + out.logits;
  out.weight_stash += Bytes(2 * c.tokens * (c.hidden + d(c.model.vocabulary) / c.tp));
  if (!mtp) return;
  // The projection reads the normed hidden state and the next token's embedding, side by side.
  out.activation += Bytes(2 * 2 * c.hidden * c.tokens_local);
  out.weight_stash += Bytes(c.tokens_local * (2 * c.hidden * operand_bytes(c.dense_dtype) + 2 * c.hidden));
}

}  // namespace

BlockMemory block_memory(const Context& c, const Block& block) {
  const Parameters parameters = parameters_on_rank(c, block);
  const PerParameter each(c);
  BlockMemory out;
  out.dense_parameters = parameters.dense;
  out.expert_parameters = parameters.expert;
  out.embedding_parameters = parameters.embedding;
  out.head_parameters = parameters.head;
  const double dense = d(parameters.dense), expert = d(parameters.expert);
  out.weights = Bytes(each.weight * (dense + expert) +
                      low_precision_copies(c, c.dense_dtype, each) * d(parameters.low_precision) +
                      low_precision_copies(c, c.expert_dtype, each) * expert);
  out.gradients = Bytes(each.gradient * (dense + expert));
  out.optimizer = Bytes(each.optimizer * (dense / each.dense_shards + expert / each.expert_shards));
  if (block.type >= 0) {
    const Layer& layer = c.model.layer_of(block);
    const double kept = layer_activation(c, c.again, layer);
    // Hyper-connections keep every stream of the layer's input.
    out.activation = Bytes(kept + 2 * c.hidden * (d(c.model.residual_streams) - 1) * c.tokens_local);
    out.weight_stash = Bytes(layer_stash(c, layer));
    out.dispatch_buffers = Bytes(dispatch_buffers(c, layer));
    out.workspace = out.dispatch_buffers + Bytes(layer_activation(c, Again{}, layer) - kept);
  }
  add_ends(c, block, out);
  return out;
}

}  // namespace pricing

StaticMemory price_static_memory(const CostInput& input, std::span<const BlockMemory* const> blocks,
                                 bool pairs) {
  const pricing::Context c(input);
  const pricing::PerParameter each(c);
  StaticMemory out;
  std::int64_t embeddings = 0, heads = 0, embedding = 0, head = 0;
  Bytes buffers, brought_back;
  for (const BlockMemory* block : blocks) {
    out.dense_parameters += block->dense_parameters;
    out.expert_parameters += block->expert_parameters;
    out.weights += block->weights;
    out.gradients += block->gradients;
    out.optimizer += block->optimizer;
    embeddings += block->embedding_parameters;
    heads += block->head_parameters;
    embedding = std::max(embedding, block->embedding_parameters);
    head = std::max(head, block->head_parameters);
    buffers = std::max(buffers, block->dispatch_buffers);
    brought_back = std::max(brought_back, block->workspace - block->dispatch_buffers);
  }
  if (pairs) out.pair_buffers = buffers;
  out.workspace = buffers + out.pair_buffers + brought_back;
  const std::int64_t twice = (embeddings - embedding) + (heads - head);
  out.dense_parameters -= twice;
  out.weights -= Bytes(each.weight * pricing::d(twice));
  out.gradients -= Bytes(each.gradient * pricing::d(twice));
  out.optimizer -= Bytes(each.optimizer * pricing::d(twice) / each.dense_shards);
  return out;
}

}  // namespace tessera
