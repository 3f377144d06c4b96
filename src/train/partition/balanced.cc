#include "balanced.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tessera::train {

Status check_stages(std::int64_t stages, std::int64_t blocks) {
  if (stages < 1) return bad_input(fmt::format("a pipeline needs at least one stage, not {}", stages));
  if (stages > 1024) return bad_input(fmt::format("{} stages; at most 1,024 are supported", stages));
  if (blocks < 2) return bad_input("the model has no blocks");
  return {};
}

Result<StageTimes> StageTimes::build(std::span<const double> weights, std::size_t blocks, std::int64_t stages,
                                     std::span<const double> speed) {
  TESSERA_CHECK(check_stages(stages, static_cast<std::int64_t>(blocks)));
  if (weights.size() != blocks)
    return bad_input(fmt::format("{} weights for {} blocks", weights.size(), blocks));
  if (!speed.empty() && std::ssize(speed) != stages)
    return bad_input(fmt::format("{} speeds for {} stages", speed.size(), stages));
  return StageTimes(weights, speed, static_cast<std::size_t>(stages));
}

StageTimes::StageTimes(std::span<const double> weights, std::span<const double> speed, std::size_t stages)
    : before_(weights.size() + 1, 0.0), inverse_speed_(stages, 1.0), may_be_empty_(stages > weights.size()) {
  double total = 0;
  for (const double weight : weights) total += std::max(0.0, weight);
  // A power of two, so that sums and their squares stay exact: equal partitions compare equal.
  const double unit = total > 0 ? std::exp2(std::ceil(std::log2(total)) - 22) : 1;
  for (std::size_t b = 0; b < weights.size(); ++b) {
    // Without any time there is nothing to balance but the number of blocks.
    const double time = total > 0 ? std::round(std::max(0.0, weights[b]) / unit) : 1;
    before_[b + 1] = before_[b] + time;
  }
  for (std::size_t s = 0; s < speed.size(); ++s) inverse_speed_[s] = 1 / speed[s];
}

double StageTimes::longest() const noexcept {
  return before_.back() * *std::ranges::max_element(inverse_speed_);
}

namespace {

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

}  // namespace

// Bisection runs down to neighbouring doubles, so the value is exact.
double smallest_bottleneck(const StageTimes& times) {
  double low = 0;
  double high = times.longest();
  while (true) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return high;
    (feasible(times, middle) ? high : low) = middle;
  }
}

Partition preferred_within(const StageTimes& times, double limit, Prefer prefer) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::size_t blocks = times.blocks(), stages = times.stages();
  using Value = std::pair<double, double>;  // (sum or 0, sum of squares)
  std::vector<std::vector<std::int32_t>> choice(stages, std::vector<std::int32_t>(blocks + 1, 0));
  std::vector<Value> best(blocks + 1, {infinity, infinity});
  best[0] = {0, 0};
  for (std::size_t s = 0; s < stages; ++s) {
    std::vector<Value> next(blocks + 1, {infinity, infinity});
    for (std::size_t to = s + 1 == stages ? blocks : 1; to <= blocks; ++to)
      for (std::size_t from = times.latest_start(s, to);; --from) {
        const double time = times.of(s, from, to);
        if (time > limit) break;
        const Value value{best[from].first + (prefer == Prefer::squares ? 0 : time),
                          best[from].second + time * time};
        // On equal values the longer later stage wins.
        if (value.first < infinity && value <= next[to]) {
          next[to] = value;
          choice[s][to] = static_cast<std::int32_t>(from);
        }
        if (from == 0) break;
      }
    best = std::move(next);
  }
  if (best[blocks].first == infinity) return {};
  Partition partition;
  partition.stages.resize(stages);
  auto to = static_cast<std::int32_t>(blocks);
  for (std::size_t s = stages; s-- > 0;) {
    const std::int32_t from = choice[s][static_cast<std::size_t>(to)];
    partition.stages[s] = {from, to};
    to = from;
  }
  return partition;
}

Result<Partition> balanced_partition(const ModelSpec& model, std::span<const double> weights,
                                     std::int64_t stages, std::span<const double> speed) {
  TESSERA_TRY(const StageTimes times, StageTimes::build(weights, model.blocks.size(), stages, speed));
  // The bottleneck alone leaves the other stages as they fall.
  Partition partition = preferred_within(times, smallest_bottleneck(times), Prefer::squares);
  TESSERA_CHECK(check_partition(model, partition));
  return partition;
}

}  // namespace tessera::train
