#include <fmt/format.h>

#include "balanced.h"
#include "tessera/core/model/count.h"
#include "tessera/train/partition/rivals.h"

namespace tessera::train {

Result<Partition> flop_balanced_partition(const ModelSpec& model, std::int64_t stages,
                                          std::int64_t sequence) {
  if (sequence < 1) return bad_input(fmt::format("a sequence has at least one token, not {}", sequence));
  std::vector<double> weights;
  // Training takes three times forward of every block, so forward alone balances the same.
  for (const Block& block : model.blocks)
    weights.push_back(forward_flops(model, block, sequence).total().value());
  return balanced_partition(model, weights, stages);
}

}  // namespace tessera::train
