// The time of one training step by closed form: what a framework's own pipeline takes, without our overlap.
#pragma once

#include "tessera/core/cost/block_cost.h"

namespace tessera::bench {

struct StepTime {
  Seconds total;
  Seconds slowest_stage;  ///< forward and backward of one microbatch
  Seconds bubble;
  Seconds reduction;
  Seconds optimizer;
  Seconds host;        ///< part of the slowest stage's time that launching adds
  Seconds all_to_all;  ///< part of the slowest stage's time
};

/// M · slowest stage + (pp − 1)/vp · mean stage + transfers + exposed reduction + optimizer.
[[nodiscard]] StepTime step_time(const CostInput& input, const ModelCost& cost);

/// How the published recipes cut a model into stages: blocks of each virtual stage, in order.
[[nodiscard]] std::vector<std::vector<BlockId>> published_stages(const ModelSpec& model, std::int64_t stages);

}  // namespace tessera::bench
