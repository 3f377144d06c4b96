#include "balanced.h"
#include "tessera/train/partition/rivals.h"

namespace tessera::train {

Result<Partition> serial_balanced_partition(const ModelSpec& model, std::span<const Seconds> weights,
                                            std::int64_t stages, std::span<const double> speed) {
  std::vector<double> seconds;
  for (const Seconds weight : weights) seconds.push_back(weight.value());
  return balanced_partition(model, seconds, stages, speed);
}

}  // namespace tessera::train
