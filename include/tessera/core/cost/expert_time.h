// How long a GPU takes for the experts it holds: not linear in its tokens, because streaming an expert's
// weights costs the same for one token or a hundred.
//
//   t = max(a + b·G + d·(E − G) + b₂·(T − G),  c + β·N)
//
// E = expert slots held, G = those with at least one token, N = tokens, T = Σ ⌈n/tile⌉ row tiles. The first
// branch is weights and tiles, the second compute. Fitted with b ≥ d ≥ 0, b₂ ≥ 0, β ≥ 0. Training's cost
// model and the serving balancer use the same type. All functions are pure; evaluate() is noexcept and
// allocates nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/core/base/units.h"

namespace tessera {

/// What one GPU has to do in one layer.
struct ExpertLoad {
  std::int64_t slots = 0;   ///< E, experts it holds
  std::int64_t active = 0;  ///< G, 0 … E
  double tokens = 0;        ///< N, token copies
  double tiles = 0;         ///< T ≥ G; ignored when tile = 0
};

struct ExpertTimeModel {
  Seconds a;                    ///< launch and permute
  Seconds b;                    ///< per active expert
  Seconds d;                    ///< per idle slot
  Seconds b2;                   ///< per row tile beyond the first of an expert
  Seconds c;                    ///< compute branch's constant
  Seconds beta;                 ///< per token
  std::int64_t tile = 0;        ///< rows a tile holds; 0 = no tile term
  std::optional<Seconds> idle;  ///< time of a GPU without tokens, measured; default a + d·E

  [[nodiscard]] Seconds evaluate(const ExpertLoad& load) const noexcept;
  /// Tokens per expert at which compute overtakes weight streaming, b/β and (b − d)/β; infinite when β = 0.
  [[nodiscard]] double knee() const noexcept;
  [[nodiscard]] double activation_knee() const noexcept;
  /// What the slopes mean on the device: an expert's weights over b, and a token's operations over β;
  /// infinite for a zero slope. A bandwidth far below the memory's says that the flat part is not weight
  /// streaming.
  [[nodiscard]] BytesPerSecond implied_bandwidth(Bytes expert_weights) const noexcept;
  [[nodiscard]] FlopsPerSecond implied_rate(Flops token_operations) const noexcept;
};

struct ExpertSample {
  ExpertLoad load;
  Seconds time;
};

struct ExpertFitOptions {
  std::int64_t tile = 0;     ///< 0 = fit without tile term
  bool idle_slots = true;    ///< fit d; false pins it to 0 (as the published model does)
  int max_iterations = 200;  ///< per start
};

struct ExpertFit {
  ExpertTimeModel model;
  double mean_residual = 0;  ///< mean |relative| residual
  double worst_residual = 0;
  std::vector<double> residuals;  ///< relative, per sample
  bool converged = false;
};

/// Robust fit on relative residuals; all coefficients ≥ 0 and b ≥ d. Deterministic. Samples without tokens
/// give `idle` (their median) and enter nothing else. What the samples cannot tell apart goes to the earlier
/// of a, b, d, b₂ and of β, c: with equal E or without idle slots, d = 0. Errors: fewer than four samples
/// with tokens, a non-positive time, G > E, N < G, or T < G with a tile.
[[nodiscard]] Result<ExpertFit> fit_expert_time(std::span<const ExpertSample> samples,
                                                const ExpertFitOptions& options);

/// The expected largest tokens over `ranks` GPUs when `tokens` choose `top_k` of `experts` at random,
/// balanced; each rank holds experts/ranks of them. Exact to 1 % against simulation. ≥ the mean; equals it
/// for one rank.
[[nodiscard]] double expected_max_rank_tokens(double tokens, std::int64_t top_k, std::int64_t experts,
                                              std::int64_t ranks) noexcept;

/// Expected number of distinct groups a token visits when it chooses k of `groups` equal ones at random:
/// n·(1 − (1 − 1/n)^k).
[[nodiscard]] double expected_distinct(double groups, double k) noexcept;

}  // namespace tessera
