// List scheduling under a memory limit: plays a step forward in time; whenever a rank is free it takes the
// most urgent action whose input is there and whose activation fits. What "most urgent" means is a policy,
// and several can be tried. This makes the schedules whose order depends on durations.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tessera/train/schedule/schedule_template.h"

namespace tessera::train {

struct ListProblem {
  std::int32_t chunks = 1;  ///< per rank: 1, or 2 in a V
  std::int32_t ranks = 1;
  std::int32_t microbatches = 1;
  std::int32_t most_live = 1;    ///< chunk activations of a rank, F → W; at least `chunks`
  bool split = true;             ///< I and W apart; else B
  std::vector<StageCost> costs;  ///< per stage
  double transfer = 0;           ///< between ranks

  [[nodiscard]] std::int32_t stage(std::int32_t rank, std::int32_t chunk) const noexcept {
    return chunk == 0 ? rank : 2 * ranks - 1 - rank;
  }
};

struct ListPolicy {
  /// A rank leaves a forward or a W alone when a gradient, already being computed, would have to wait for
  /// more than this share of it.
  double patience_forward = 1;
  double patience_weight = 1;
  bool last_chunk_first = true;       ///< of two forwards
  bool first_gradient_first = false;  ///< of two gradients, that of the rank's first chunk
  bool weight_before_forward = false;
  /// Forwards of the first chunk that may wait for their gradient: base + slope · (ranks − 1 − rank).
  double open_base = 1e9;
  double open_slope = 0;
};

class ListScheduler {
 public:
  explicit ListScheduler(const ListProblem& problem);

  /// Keeps the order when it ends before the best one so far. Returns the makespan.
  double attempt(const ListPolicy& policy);
  [[nodiscard]] double best_makespan() const noexcept { return best_makespan_; }
  [[nodiscard]] ActionList best() const;

 private:
  struct Chunk {
    double forward = 0, gradient = 0, weight = 0;  // durations; the gradient's has W in it unless split
    std::int32_t stage = 0;
    std::int32_t forwards = 0, gradients = 0;  // begun
    std::int32_t known_forwards = 0;           // inputs whose arrival is known
    std::int32_t known_gradients = 0;
    double hop_forward = 0, hop_backward = 0;  // of the outputs
    std::int32_t next = -1, previous = -1;     // chunk index of the stage after and before; −1 = none
  };
  struct Rank {
    double busy_until = 0;
    std::int32_t held = 0;  // activations
    std::int32_t gradients = 0, weights = 0;
    std::int32_t length = 0;  // actions begun
    std::int32_t most_open = 0;
  };
  enum Code : std::uint8_t { kForward = 0, kGradient = 2, kWeight = 4, kNothing = 255 };  // + chunk

  void reset(const ListPolicy& policy);
  [[nodiscard]] std::uint8_t decide(std::int32_t rank, double now, const ListPolicy& policy,
                                    double& wake) const;
  void begin(std::int32_t rank, std::uint8_t code, double now);
  void set_wake(std::int32_t rank, double when) noexcept;

  ListProblem problem_;
  std::size_t per_rank_;
  std::vector<Chunk> chunks_;  // by rank, then chunk
  std::vector<Rank> ranks_;
  std::vector<double> forward_ready_, gradient_ready_;  // by chunk index, then microbatch
  std::vector<std::uint8_t> codes_, best_codes_;        // by rank
  std::vector<std::uint8_t> gradient_chunk_;            // by rank: chunk of its k-th gradient
  std::vector<std::int32_t> weights_of_;                // by chunk index: W begun
  std::size_t leaves_ = 1;
  std::vector<double> wake_;  // a tournament over the ranks: the earliest event is at the root
  double best_makespan_ = 1e300;
};

}  // namespace tessera::train
