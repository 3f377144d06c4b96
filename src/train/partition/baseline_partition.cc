#include "tessera/train/partition/baseline_partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace tessera::train {

namespace {

Status check_stages(std::int64_t stages, std::int64_t blocks) {
  if (stages < 1) return bad_input(fmt::format("a pipeline needs at least one stage, not {}", stages));
  if (stages > 1024) return bad_input(fmt::format("{} stages; at most 1,024 are supported", stages));
  if (blocks < 2) return bad_input("the model has no blocks");
  return {};
}

}  // namespace

Result<Partition> even_partition(const ModelSpec& model, std::int64_t stages) {
  TESSERA_CHECK(check_stages(stages, static_cast<std::int64_t>(model.blocks.size())));
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

namespace {

// Time of blocks [from, to) on a stage, by prefix sums.
class StageTimes {
 public:
  StageTimes(std::span<const Seconds> weights, std::span<const double> speed, std::size_t stages)
      : before_(weights.size() + 1, 0.0),
        inverse_speed_(stages, 1.0),
        may_be_empty_(stages > weights.size()) {
    double total = 0;
    for (const Seconds weight : weights) total += std::max(0.0, weight.value());
    // A power of two, so that sums and their squares stay exact: equal partitions compare equal.
    const double unit = total > 0 ? std::exp2(std::ceil(std::log2(total)) - 22) : 1;
    for (std::size_t b = 0; b < weights.size(); ++b) {
      // Without any time there is nothing to balance but the number of blocks.
      const double time = total > 0 ? std::round(std::max(0.0, weights[b].value()) / unit) : 1;
      before_[b + 1] = before_[b] + time;
    }
    for (std::size_t s = 0; s < speed.size(); ++s) inverse_speed_[s] = 1 / speed[s];
  }
  [[nodiscard]] std::size_t blocks() const noexcept { return before_.size() - 1; }
  [[nodiscard]] std::size_t stages() const noexcept { return inverse_speed_.size(); }
  [[nodiscard]] double of(std::size_t stage, std::size_t from, std::size_t to) const noexcept {
    return (before_[to] - before_[from]) * inverse_speed_[stage];
  }
  [[nodiscard]] double longest() const noexcept {
    return before_.back() * *std::ranges::max_element(inverse_speed_);
  }
  /// The latest start a stage that ends at `to` may have: the embedding belongs to the first stage and the
  /// head to the last, also where there are more stages than blocks.
  [[nodiscard]] std::size_t latest_start(std::size_t stage, std::size_t to) const noexcept {
    return may_be_empty_ && stage != 0 && stage + 1 != stages() ? to : to - 1;
  }

 private:
  std::vector<double> before_;
  std::vector<double> inverse_speed_;
  bool may_be_empty_;
};

// Can the stages hold all blocks with none above `limit`?
bool feasible(const StageTimes& times, double limit) {
  const std::size_t blocks = times.blocks();
  std::vector<std::size_t> reached_before(blocks + 2,
                                          0);  // how many ends below b the stages so far can reach
  std::vector<char> reach(blocks + 1, 0);
  reach[0] = 1;
  for (std::size_t s = 0; s < times.stages(); ++s) {
    for (std::size_t b = 0; b <= blocks; ++b)
      reached_before[b + 1] = reached_before[b] + static_cast<std::size_t>(reach[b]);
    std::size_t earliest = 0;
    for (std::size_t to = 1; to <= blocks; ++to) {
      while (earliest < to && times.of(s, earliest, to) > limit) ++earliest;
      const std::size_t latest = times.latest_start(s, to);
      reach[to] = earliest <= latest && reached_before[latest + 1] > reached_before[earliest] ? 1 : 0;
    }
    reach[0] = 0;
  }
  return reach[blocks] == 1;
}

// The least reachable largest stage. Bisection runs down to neighbouring doubles, so the value is exact.
double smallest_bottleneck(const StageTimes& times) {
  double low = 0;
  double high = times.longest();
  while (true) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return high;
    (feasible(times, middle) ? high : low) = middle;
  }
}

}  // namespace

Result<Partition> serial_balanced_partition(const ModelSpec& model, std::span<const Seconds> weights,
                                            std::int64_t stages, std::span<const double> speed) {
  const std::size_t blocks = model.blocks.size();
  TESSERA_CHECK(check_stages(stages, static_cast<std::int64_t>(blocks)));
  if (weights.size() != blocks)
    return bad_input(fmt::format("{} weights for {} blocks", weights.size(), blocks));
  if (!speed.empty() && static_cast<std::int64_t>(speed.size()) != stages)
    return bad_input(fmt::format("{} speeds for {} stages", speed.size(), stages));
  const auto n = static_cast<std::size_t>(stages);
  const StageTimes times(weights, speed, n);
  const double bottleneck = smallest_bottleneck(times);

  // The bottleneck alone leaves the other stages as they fall: among its partitions take the least sum of
  // squares, by dynamic programming over (stages so far, blocks so far).
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<std::vector<std::int32_t>> choice(n, std::vector<std::int32_t>(blocks + 1, 0));
  std::vector<double> best(blocks + 1, infinity);
  best[0] = 0;
  for (std::size_t s = 0; s < n; ++s) {
    std::vector<double> next(blocks + 1, infinity);
    for (std::size_t to = s + 1 == n ? blocks : 1; to <= blocks; ++to) {
      for (std::size_t from = times.latest_start(s, to);; --from) {
        const double time = times.of(s, from, to);
        if (time > bottleneck) break;
        // On equal sums the longer later stage wins, so the early ones stay light.
        if (const double value = best[from] + time * time; value <= next[to] && value < infinity) {
          next[to] = value;
          choice[s][to] = static_cast<std::int32_t>(from);
        }
        if (from == 0) break;
      }
    }
    best = std::move(next);
  }

  Partition partition;
  partition.stages.resize(n);
  auto to = static_cast<std::int32_t>(blocks);
  for (std::size_t s = n; s-- > 0;) {
    const std::int32_t from = choice[s][static_cast<std::size_t>(to)];
    partition.stages[s] = {from, to};
    to = from;
  }
  TESSERA_CHECK(check_partition(model, partition));
  return partition;
}

}  // namespace tessera::train
