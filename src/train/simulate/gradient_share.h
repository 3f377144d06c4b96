// How a rank's gradient reduction and weight gathering are divided among its stages: by the bytes of their
// gradients.
#pragma once

#include <vector>

#include "tessera/train/execution_plan/execution_plan.h"

namespace tessera::train {

class GradientShare {
 public:
  explicit GradientShare(const ExecutionPlan& plan);
  /// 0 … 1; the shares of a rank's stages add up to 1 (equal shares where no gradients are known).
  [[nodiscard]] double of(std::size_t stage) const noexcept { return share_[stage]; }

 private:
  std::vector<double> share_;
};

}  // namespace tessera::train
