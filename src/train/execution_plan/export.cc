#include "tessera/train/execution_plan/export.h"

namespace tessera::train {

Result<std::string> megatron_layout(const ExecutionPlan& plan, const MegatronTarget& target) {
  // The string tells kinds of blocks apart, not kinds of layers.
  ModelSpec model;
  for (const PlanBlock& block : plan.blocks)
    model.blocks.push_back({.kind = block.kind, .layer = block.layer});
  return write_megatron_layout(model, plan.partition, plan.layout.pp, target);
}

}  // namespace tessera::train
