#include "balanced.h"
#include "tessera/core/model/count.h"
#include "tessera/train/partition/rivals.h"

namespace tessera::train {

Result<Partition> parameter_balanced_partition(const ModelSpec& model, std::int64_t stages) {
  std::vector<double> weights;
  for (const Block& block : model.blocks) {
    std::int64_t count = count_parameters(model, block).total();
    // A tied head is no parameter of its own, but the stage that computes it holds the matrix.
    if (block.kind == BlockKind::head && model.tied_embeddings) count += model.vocabulary * model.hidden;
    weights.push_back(static_cast<double>(count));
  }
  return balanced_partition(model, weights, stages);
}

}  // namespace tessera::train
