// What the rivals share: blocks in order over stages, with one weight per block and one speed per stage.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/core/base/units.h"
#include "tessera/core/model/model_spec.h"
#include "tessera/train/schedule/partition.h"

namespace tessera::train {

[[nodiscard]] Status check_stages(std::int64_t stages, std::int64_t blocks);

/// Time of blocks [from, to) on a stage, by prefix sums, in a unit of its own.
class StageTimes {
 public:
  /// Errors: other numbers of weights than blocks, or of speeds than stages.
  [[nodiscard]] static Result<StageTimes> build(std::span<const double> weights, std::size_t blocks,
                                                std::int64_t stages, std::span<const double> speed);

  [[nodiscard]] std::size_t blocks() const noexcept { return before_.size() - 1; }
  [[nodiscard]] std::size_t stages() const noexcept { return inverse_speed_.size(); }
  [[nodiscard]] double of(std::size_t stage, std::size_t from, std::size_t to) const noexcept {
    return (before_[to] - before_[from]) * inverse_speed_[stage];
  }
  [[nodiscard]] double longest() const noexcept;
  /// The latest start a stage that ends at `to` may have: the embedding belongs to the first stage and the
  /// head to the last, also where there are more stages than blocks.
  [[nodiscard]] std::size_t latest_start(std::size_t stage, std::size_t to) const noexcept {
    return may_be_empty_ && stage != 0 && stage + 1 != stages() ? to : to - 1;
  }

 private:
  StageTimes(std::span<const double> weights, std::span<const double> speed, std::size_t stages);

  std::vector<double> before_;
  std::vector<double> inverse_speed_;
  bool may_be_empty_;
};

/// The least that the largest stage can be.
[[nodiscard]] double smallest_bottleneck(const StageTimes& times);

enum class Prefer : std::uint8_t {
  squares,          ///< the least sum of squares
  sum_then_squares  ///< the least sum of times, which differs where speeds do; then of squares
};
/// Of the partitions whose stages are all at most `limit` the preferred one, empty when there is none. By
/// dynamic programming over (stages so far, blocks so far). Of equals the one with the longer later stages,
/// so that the early ones, whose activations live longest, stay light.
[[nodiscard]] Partition preferred_within(const StageTimes& times, double limit, Prefer prefer);

/// The least bottleneck; among its partitions the least sum of squares.
[[nodiscard]] Result<Partition> balanced_partition(const ModelSpec& model, std::span<const double> weights,
                                                   std::int64_t stages, std::span<const double> speed = {});

}  // namespace tessera::train
