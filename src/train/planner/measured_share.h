// How much of a plan's time is measured pairs rather than priced tasks.
#pragma once

#include <array>
#include <vector>

#include "tessera/core/cost/estimate.h"
#include "tessera/core/cost/task.h"
#include "tessera/train/execution_plan/execution_plan.h"

namespace tessera::train {

class MeasuredShare {
 public:
  explicit MeasuredShare(const ExecutionPlan& plan);

  /// A task of a block of the stage: as far as it runs in measured pairs, it is measured.
  [[nodiscard]] Estimate of(std::size_t stage, Pass pass, const Estimate& duration) const;
  /// Measured pairs of the plan.
  [[nodiscard]] std::int64_t pairs() const noexcept { return pairs_; }

 private:
  struct Side {
    double runs = 0, measured = 0;  // actions
    double error = 0;               // Σ over the measured ones
  };
  std::array<std::vector<Side>, 2> sides_;  // forward and backward, per stage
  std::int64_t pairs_ = 0;
};

}  // namespace tessera::train
