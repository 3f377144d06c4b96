#include "balanced.h"
#include "tessera/train/partition/rivals.h"

namespace tessera::train {

Result<Partition> even_partition(const ModelSpec& model, std::int64_t stages) {
  TESSERA_CHECK(check_stages(stages, std::ssize(model.blocks)));
  const std::int64_t layers = model.layers();
  const std::int64_t each = layers / stages;
  const std::int64_t larger = layers % stages;
  // The remainder goes to the middle: the ends already hold the embedding and the head.
  const std::int64_t first_larger = (stages - larger) / 2;
  Partition partition;
  std::int32_t next = 0;
  for (std::int64_t s = 0; s < stages; ++s) {
    const std::int32_t begin = next;
    next += static_cast<std::int32_t>(each + (s >= first_larger && s < first_larger + larger ? 1 : 0));
    if (s == 0) next += 1;                                                       // embedding
    if (s + 1 == stages) next = static_cast<std::int32_t>(model.blocks.size());  // MTP and head
    partition.stages.push_back({begin, next});
  }
  TESSERA_CHECK(check_partition(model, partition));
  return partition;
}

}  // namespace tessera::train
