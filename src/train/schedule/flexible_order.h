// Orders whose weight gradients are free to move: per rank the sequence of forwards and gradients is fixed,
// and every W goes where the rank would idle, or where its activation's memory is needed.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tessera/train/schedule/schedule_template.h"

namespace tessera::train {

struct FlexibleProblem {
  std::int32_t chunks = 1;  ///< per rank: 1, or 2 in a V
  std::int32_t ranks = 1;
  std::int32_t microbatches = 1;
  std::int32_t most_live = 1;         ///< chunk activations of a rank, F → W; at least `chunks`
  bool split = true;                  ///< gradients are I with W apart; else B
  std::vector<StageCost> costs = {};  ///< per stage
  double transfer = 0;                ///< between ranks

  [[nodiscard]] std::int32_t stage(std::int32_t rank, std::int32_t chunk) const noexcept {
    return chunk == 0 ? rank : 2 * ranks - 1 - rank;
  }
  /// Forwards and gradients of a rank.
  [[nodiscard]] std::size_t per_rank() const noexcept {
    return 2 * static_cast<std::size_t>(chunks) * static_cast<std::size_t>(microbatches);
  }
};

/// A forward or gradient of one of the rank's chunks; its microbatch is the number of such steps before it.
using Step = std::uint8_t;
[[nodiscard]] constexpr Step forward_step(std::int32_t chunk) noexcept {
  return static_cast<Step>(chunk);
}
[[nodiscard]] constexpr Step gradient_step(std::int32_t chunk) noexcept {
  return static_cast<Step>(2 + chunk);
}
[[nodiscard]] constexpr bool is_forward(Step step) noexcept {
  return step < 2;
}

/// All ranks' sequences, one after another, per_rank() each.
using Order = std::vector<Step>;

/// Times orders of one problem. Allocates when built only.
class OrderTimer {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  explicit OrderTimer(const FlexibleProblem& problem);

  struct Outcome {
    double makespan = kNever;  ///< kNever when the order deadlocks, holds too much, or takes beyond `limit`
    double finish = 0;         ///< sum over ranks of their last end
    [[nodiscard]] bool before(const Outcome& other) const noexcept {
      return makespan != other.makespan ? makespan < other.makespan : finish < other.finish;
    }
  };
  /// A W may make the next step late by at most `patience` of its own duration.
  Outcome time(const Order& order, double patience, double limit = kNever) noexcept;
  /// No order ends earlier: a rank waits for its first input, then has all its work to do.
  [[nodiscard]] double bound() const noexcept;
  /// The steps of a longest chain: each starts when the one before it ends, on its rank or at its input.
  /// Where both do, `by_rank` decides. Positions in the order, last first; valid until the next call.
  std::span<const std::size_t> critical_steps(const Order& order, double patience, bool by_rank) noexcept;
  /// The order with its W in place; it must have an outcome.
  ActionList actions(const Order& order, double patience, ActionList empty);

 private:
  struct Chunk {
    double duration[2] = {0, 0};  // forward, gradient
    double weight = 0;
    double hop[2] = {0, 0};         // of what they send
    std::int32_t to[2] = {-1, -1};  // chunk that gets it; −1 = none
    std::int32_t from[2] = {-1,
                            -1};     // chunk of the input; −1 = none, the last one's gradient its own forward
    std::int32_t done[2] = {0, 0};   // steps timed
    std::int32_t known[2] = {0, 0};  // inputs timed
  };
  struct Rank {
    double free = 0;
    double idle = 0;
    double work = 0;
    std::size_t next = 0;         // step
    std::size_t next_weight = 0;  // step whose W is next: the first gradient from here on
    std::int32_t held = 0;        // activations
    std::int32_t owed = 0;        // W
  };
  template <class Emit>
  Outcome run(const Order& order, double patience, double limit, Emit&& emit);
  template <class Emit>
  bool advance(std::size_t rank, std::span<const Step> steps, double patience, double limit, Emit& emit);
  template <class Emit>
  void run_weight(std::size_t rank, std::span<const Step> steps, Emit& emit);

  FlexibleProblem problem_;
  std::vector<Chunk> chunks_;  // by rank, then chunk
  std::vector<Rank> ranks_;
  std::vector<double> arrival_[2];  // of a chunk's inputs, by chunk and microbatch
  // Of the order whose longest chain was asked for.
  std::vector<double> end_;               // by position
  std::vector<std::int32_t> microbatch_;  // by position
  std::vector<std::size_t> position_[2];  // of a chunk's steps, by chunk and microbatch
  std::vector<std::size_t> chain_;
};

}  // namespace tessera::train
