// What the parts of block pricing share: the sizes on one rank, and work added up task by task.
#pragma once

#include <algorithm>

#include "tessera/core/cost/block_cost.h"

namespace tessera::pricing {

/// What of each layer is computed again in backward, and so not kept: the one answer that durations and bytes
/// both read. Units inside one that is computed again as a whole are off. The time goes into R tasks but for
/// `moe`, and `everything` of a layer with a MoE: their dispatch and combine are done again in B_COMB, and
/// what is around them in the chain's other tasks.
///
///   unit            time added to R, or to B                       bytes not kept from F to B
///   everything      the whole forward                              all but the layer's input
///   up_projection   MLA's products from the latents                queries, keys and values of the heads
///   core            the core, with its exchange                    its output, what is convolved for it, its
///   states norm            the norm's traffic, each sublayer              the normed input of each sublayer
///   moe             all of the sublayer but norm and residual      all but the sublayer's input and normed
///   input moe_activation  the routed experts' activation traffic         the activation's output
///   shared_expert   the shared expert                              its activation's inputs and output
struct Again {
  bool everything = false;
  bool up_projection = false;
  bool core = false;
  bool norm = false;
  bool moe = false;
  bool moe_activation = false;
  bool shared_expert = false;
};
[[nodiscard]] Again computed_again(const Recompute& units) noexcept;

/// Everything a formula asks about the run. Token counts are per microbatch and rank.
struct Context {
  explicit Context(const CostInput& input) noexcept;

  const CostInput& input;
  const ModelSpec& model;
  const Cluster& cluster;
  const Gpu& gpu;
  const Layout& layout;
  const SoftwareProfile& software;
  const CostConstants& constants;
  const KernelTable* table;

  double tp, cp, ep, etp;
  double hidden;
  double tokens;        ///< of a context parallel rank; what a TP-cut product works on
  double tokens_local;  ///< of one rank where sequence parallelism cuts them
  Dtype dense_dtype;    ///< NVFP4 recipes keep dense projections at 8 bits (Megatron-Bridge)
  Dtype expert_dtype;
  Again again;
};

/// Heads (or groups) over all TP ranks, copies counted: fewer than ranks are repeated, one on each rank.
[[nodiscard]] inline double repeated(const Context& context, std::int64_t heads) noexcept {
  return std::max(static_cast<double>(heads), context.tp);
}

/// What the weight gradient of a product in `dtype` is computed in, and so what its input is kept in: NVFP4
/// recipes stay at 8 bits there (Megatron-Bridge).
[[nodiscard]] constexpr Dtype weight_gradient_dtype(Dtype dtype) noexcept {
  return dtype == Dtype::nvfp4 ? Dtype::mxfp8 : dtype;
}

/// Duration of a task as it is put together.
struct Work {
  Estimate time;
  Seconds compute_bound;  ///< the part of it that SMs bound
  Bytes communicated;
  bool exists = false;

  void add(const Estimate& part, double compute_share) noexcept {
    time += part;
    compute_bound += part.time * compute_share;
    exists = true;
  }
  void add(const Work& part) noexcept {
    time += part.time;
    compute_bound += part.compute_bound;
    communicated += part.communicated;
    exists = exists || part.exists;
  }
};

/// The work of a sublayer, or of a whole block.
struct Tasks {
  std::array<std::array<Work, kTaskKinds>, kPasses> work;

  [[nodiscard]] Work& at(Pass pass, TaskKind kind) noexcept {
    return work[static_cast<std::size_t>(pass)][static_cast<std::size_t>(kind)];
  }
  void add(const Tasks& other) noexcept;
};

/// Forward, input gradient and weight gradient of something with parameters.
struct ThreePass {
  Work forward, input_gradient, weight_gradient;
  void add(const ThreePass& other) noexcept {
    forward.add(other.forward);
    input_gradient.add(other.input_gradient);
    weight_gradient.add(other.weight_gradient);
  }
  void add_to(Tasks& tasks, TaskKind kind) const noexcept {
    tasks.at(Pass::forward, kind).add(forward);
    tasks.at(Pass::backward, kind).add(input_gradient);
    tasks.at(Pass::weight, kind).add(weight_gradient);
  }
};

}  // namespace tessera::pricing
