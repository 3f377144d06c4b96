#include "tessera/train/partition/baseline_partition.h"

#include <fmt/format.h>

#include <algorithm>
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

// Time of blocks [from, to) by prefix sums.
class PrefixTimes {
 public:
  explicit PrefixTimes(std::span<const Seconds> weights) : before_(weights.size() + 1, 0.0) {
    for (std::size_t b = 0; b < weights.size(); ++b)
      before_[b + 1] = before_[b] + std::max(0.0, weights[b].value());
    if (before_.back() == 0)  // nothing to balance: count blocks instead
      for (std::size_t b = 0; b < before_.size(); ++b) before_[b] = static_cast<double>(b);
  }
  [[nodiscard]] std::size_t blocks() const noexcept { return before_.size() - 1; }
  [[nodiscard]] double total() const noexcept { return before_.back(); }
  [[nodiscard]] double between(std::size_t from, std::size_t to) const noexcept {
    return before_[to] - before_[from];
  }

 private:
  std::vector<double> before_;
};

// Fills stage after stage up to `limit`; the largest stage if `stages` suffice, else infinity.
double largest_when_filled(const PrefixTimes& times, std::size_t stages, double limit) {
  double largest = 0;
  std::size_t from = 0;
  for (std::size_t s = 0; s < stages && from < times.blocks(); ++s) {
    std::size_t to = from + 1;
    while (to < times.blocks() && times.between(from, to + 1) <= limit) ++to;
    largest = std::max(largest, times.between(from, to));
    from = to;
  }
  return from == times.blocks() && largest <= limit ? largest : std::numeric_limits<double>::infinity();
}

// The least reachable largest stage. Bisection runs down to neighbouring doubles, so the value is exact.
double smallest_bottleneck(const PrefixTimes& times, std::size_t stages) {
  double low = 0;
  double high = times.total();
  while (true) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return high;
    if (const double reached = largest_when_filled(times, stages, middle); reached <= middle) {
      high = reached;
    } else {
      low = middle;
    }
  }
}

}  // namespace

Result<Partition> serial_balanced_partition(const ModelSpec& model, std::span<const Seconds> weights,
                                            std::int64_t stages) {
  const std::size_t blocks = model.blocks.size();
  TESSERA_CHECK(check_stages(stages, static_cast<std::int64_t>(blocks)));
  if (weights.size() != blocks)
    return bad_input(fmt::format("{} weights for {} blocks", weights.size(), blocks));
  const PrefixTimes times(weights);
  const auto n = static_cast<std::size_t>(stages);
  const double bottleneck = smallest_bottleneck(times, n);

  // The bottleneck alone leaves the other stages as they fall: among its partitions take the least sum of
  // squares, by dynamic programming over (stages so far, blocks so far).
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const bool may_be_empty = n > blocks;
  std::vector<std::vector<std::int32_t>> choice(n + 1, std::vector<std::int32_t>(blocks + 1, 0));
  std::vector<double> best(blocks + 1, infinity);
  best[0] = 0;
  for (std::size_t s = 1; s <= n; ++s) {
    std::vector<double> next(blocks + 1, infinity);
    // The embedding belongs to the first stage and the head to the last, also where stages stay empty.
    for (std::size_t to = s == n ? blocks : 1; to <= blocks; ++to) {
      for (std::size_t from = may_be_empty && s != 1 && s != n ? to : to - 1;; --from) {
        const double time = times.between(from, to);
        if (time > bottleneck) break;
        if (const double value = best[from] + time * time; value < next[to]) {
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
  for (std::size_t s = n; s >= 1; --s) {
    const std::int32_t from = choice[s][static_cast<std::size_t>(to)];
    partition.stages[s - 1] = {from, to};
    to = from;
  }
  TESSERA_CHECK(check_partition(model, partition));
  return partition;
}

}  // namespace tessera::train
