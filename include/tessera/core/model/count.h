// Parameters and floating-point operations of a model, straight from its description.
//
// Formulas: reference list in docs/formulas.md (per mixer and feed-forward, with the published totals they
// were checked against). Norms, biases, routers and balancing biases are counted; a buffer that is no
// parameter (rotary tables) is not. Nothing here depends on a parallel layout.
#pragma once

#include <cstdint>

#include "tessera/core/base/units.h"
#include "tessera/core/model/model_spec.h"

namespace tessera {

/// Parameters of one layer, of an MTP block, or of a whole model.
struct ParameterCount {
  std::int64_t embedding = 0;  ///< input embedding
  std::int64_t head = 0;       ///< output projection; 0 when tied
  std::int64_t mixer = 0;
  std::int64_t dense = 0;
  std::int64_t shared = 0;         ///< shared experts and their gate
  std::int64_t router = 0;         ///< router weights and balancing biases
  std::int64_t latent = 0;         ///< projections into and out of a latent MoE
  std::int64_t routed = 0;         ///< all routed experts
  std::int64_t routed_active = 0;  ///< the top-k of them
  std::int64_t norms = 0;       ///< norms of the residual stream, and the mixing weights of hyper-connections
  std::int64_t projection = 0;  ///< MTP: 2h·h and its own norms
  /// Norm weights, biases and per-head scalars; they are *part of the fields above*, not added to them.
  std::int64_t vectors = 0;

  [[nodiscard]] std::int64_t total() const noexcept;
  [[nodiscard]] std::int64_t matrices()
      const noexcept;  ///< total − vectors: what most published formulas count
  [[nodiscard]] std::int64_t active() const noexcept;  ///< total − routed + routed_active
  ParameterCount& operator+=(const ParameterCount& other) noexcept;
  bool operator==(const ParameterCount&) const = default;
};

[[nodiscard]] ParameterCount count_parameters(const ModelSpec& model, const Layer& layer);
[[nodiscard]] ParameterCount count_parameters(const ModelSpec& model, const Block& block);

struct ModelParameters {
  ParameterCount model;  ///< without MTP, as model cards count
  ParameterCount mtp;    ///< all MTP blocks
};
[[nodiscard]] ModelParameters count_parameters(const ModelSpec& model);

/// Forward operations per token, averaged over a sequence, of a block at this sequence length, causal
/// attention counted once.
struct ForwardFlops {
  Flops mixer_projections;
  Flops mixer_core;  ///< QKᵀ and PV, the delta rule, the scan; what has no parameters
  Flops dense;
  Flops shared;
  Flops router;
  Flops latent;
  Flops routed;      ///< top-k experts
  Flops projection;  ///< MTP's 2h·h
  Flops head;
  [[nodiscard]] Flops total() const noexcept;
};
[[nodiscard]] ForwardFlops forward_flops(const ModelSpec& model, const Block& block, std::int64_t sequence);

/// Three times forward, over all blocks (MTP with its head included): what MFU is measured against.
[[nodiscard]] Flops training_flops_per_token(const ModelSpec& model, std::int64_t sequence);

}  // namespace tessera
