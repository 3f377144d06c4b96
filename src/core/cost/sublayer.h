// The work of one sublayer: a mixer, a dense feed-forward, a MoE, or the ends of the model.
#pragma once

#include "pricing.h"

namespace tessera::pricing {

/// Where the work of computing a layer again goes: into tasks of its own, or, where the whole layer is
/// computed again and its dispatch and combine with it, into the backward's. A dispatch done again needs the
/// mixer's output, and the experts need the dispatch: what feeds them is part of the chain.
[[nodiscard]] inline Pass recompute_pass(const Context& context, const Layer& layer) noexcept {
  return context.again.everything && layer.moe ? Pass::backward : Pass::recompute;
}

/// `again` is recompute_pass of the layer, here and below.
[[nodiscard]] Tasks mixer_tasks(const Context& context, const Mixer& mixer, Pass again);

/// A feed-forward part. `before_dispatch` is the task that carries norm and router: attention where the layer
/// has a mixer, else the MLP itself.
[[nodiscard]] Tasks dense_tasks(const Context& context, const DenseFeedForward& dense, Pass again);
[[nodiscard]] Tasks moe_tasks(const Context& context, const MixtureOfExperts& moe, TaskKind before_dispatch);

[[nodiscard]] Tasks embedding_tasks(const Context& context);
[[nodiscard]] Tasks head_tasks(const Context& context);
/// The 2h × h projection in front of an MTP block's layer.
[[nodiscard]] Tasks mtp_projection_tasks(const Context& context, TaskKind kind);

/// Adds what launching the sublayer takes beyond the GPU's own time, to its compute tasks. `local_experts`
/// are launched one by one where the grouped product is not fused.
void add_host_time(const Context& context, double local_experts, Tasks& sublayer) noexcept;

/// TP collectives of one sublayer under sequence parallelism, blocking `kind`: a gather before and a scatter
/// after, and one gather more for the weight gradient.
void add_tensor_parallel(const Context& context, TaskKind kind, Tasks& sublayer) noexcept;

}  // namespace tessera::pricing
