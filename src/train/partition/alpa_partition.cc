#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "balanced.h"
#include "tessera/train/partition/rivals.h"

namespace tessera::train {

// The objective falls with the slowest stage and with the sum, so only partitions count that nothing beats in
// both. They come out one by one: the least sum, then the least sum among those with a faster slowest stage,
// until no faster one exists.
Result<Partition> alpa_partition(const ModelSpec& model, std::span<const Seconds> weights,
                                 std::int64_t stages, std::int64_t microbatches,
                                 std::span<const double> speed) {
  if (microbatches < 1)
    return bad_input(fmt::format("a step has at least one microbatch, not {}", microbatches));
  std::vector<double> seconds;
  for (const Seconds weight : weights) seconds.push_back(weight.value());
  TESSERA_TRY(const StageTimes times, StageTimes::build(seconds, model.blocks.size(), stages, speed));

  Partition best;
  double least = std::numeric_limits<double>::infinity();
  for (double limit = times.longest();;) {
    Partition partition = preferred_within(times, limit, Prefer::sum_then_squares);
    if (partition.stages.empty()) break;
    double sum = 0, slowest = 0;
    for (std::size_t s = 0; s < partition.stages.size(); ++s) {
      const double time = times.of(s, static_cast<std::size_t>(partition.stages[s].begin),
                                   static_cast<std::size_t>(partition.stages[s].end));
      sum += time;
      slowest = std::max(slowest, time);
    }
    if (const double objective = sum + static_cast<double>(microbatches - 1) * slowest; objective < least) {
      least = objective;
      best = std::move(partition);
    }
    limit = std::nextafter(slowest, 0.0);
    if (slowest <= 0) break;
  }
  TESSERA_CHECK(check_partition(model, best));
  return best;
}

}  // namespace tessera::train
