#include "gradient_share.h"

namespace tessera::train {

GradientShare::GradientShare(const ExecutionPlan& plan) : share_(plan.actions.stages(), 0.0) {
  std::vector<double> of_rank(plan.actions.ranks.size(), 0.0);
  std::vector<double> stages(plan.actions.ranks.size(), 0.0);
  for (std::size_t s = 0; s < share_.size(); ++s) {
    const BlockRange range = plan.partition.stages[s];
    for (std::int32_t b = range.begin; b < range.end; ++b)
      share_[s] += plan.costs[static_cast<std::size_t>(plan.blocks[static_cast<std::size_t>(b)].cost)]
                       .memory.gradients.value();
    const std::size_t rank = plan.actions.rank_of_stage[s].index();
    of_rank[rank] += share_[s];
    stages[rank] += 1;
  }
  for (std::size_t s = 0; s < share_.size(); ++s) {
    const std::size_t rank = plan.actions.rank_of_stage[s].index();
    share_[s] = of_rank[rank] > 0 ? share_[s] / of_rank[rank] : 1 / stages[rank];
  }
}

}  // namespace tessera::train
