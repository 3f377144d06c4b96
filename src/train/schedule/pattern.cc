#include "pattern.h"

#include <algorithm>
#include <cmath>

namespace tessera::train {
namespace {

constexpr std::int32_t kPeriod = 6;

// The four steps of one microbatch on one rank: slot of each Step.
using Block = std::array<std::int32_t, 4>;

// The slots of a rank, once per period.
class Slots {
 public:
  // The first place from `slot` on; with no room left, `slot` itself: the order is then less regular.
  std::int32_t place(std::int32_t slot, std::int32_t length) noexcept {
    for (std::int32_t at = slot; at < slot + kPeriod; ++at) {
      if (!is_free(at, length)) continue;
      for (std::int32_t k = 0; k < length; ++k) taken_[static_cast<std::size_t>((at + k) % kPeriod)] = true;
      return at;
    }
    return slot;
  }

 private:
  [[nodiscard]] bool is_free(std::int32_t at, std::int32_t length) const noexcept {
    for (std::int32_t k = 0; k < length; ++k)
      if (taken_[static_cast<std::size_t>((at + k) % kPeriod)]) return false;
    return true;
  }
  std::array<bool, kPeriod> taken_{};
};

std::vector<Block> blocks(const FlexibleProblem& problem, const Pattern& pattern) {
  const std::int32_t ranks = problem.ranks;
  std::vector<Block> out(static_cast<std::size_t>(ranks));
  std::vector<Slots> slots(static_cast<std::size_t>(ranks));
  constexpr std::array<Step, 4> kSteps{forward_step(0), forward_step(1), gradient_step(1), gradient_step(0)};
  std::int32_t now = 0;
  for (std::size_t phase = 0; phase < 4; ++phase) {
    if (phase > 0) now += pattern.turn[phase - 1];
    const std::int32_t length = phase < 2 || problem.split ? 1 : 2;
    for (std::int32_t k = 0; k < ranks; ++k) {
      if (k > 0) now += pattern.hop[phase];
      const auto rank = static_cast<std::size_t>(phase % 2 == 0 ? k : ranks - 1 - k);
      now = slots[rank].place(now, length);
      out[rank][kSteps[phase]] = now;
      now += length;
    }
  }
  return out;
}

}  // namespace

Order pattern_order(const FlexibleProblem& problem, const Pattern& pattern) {
  Order order;
  order.reserve(static_cast<std::size_t>(problem.ranks) * problem.per_rank());
  for (const Block& block : blocks(problem, pattern)) {
    Block next = block;
    Block left;
    left.fill(problem.microbatches);
    for (std::size_t k = 0; k < problem.per_rank(); ++k) {
      std::size_t first = 4;
      for (std::size_t step = 4; step-- > 0;)
        if (left[step] > 0 && (first == 4 || next[step] < next[first])) first = step;
      order.push_back(static_cast<Step>(first));
      next[first] += kPeriod;
      --left[first];
    }
  }
  return order;
}

Order one_chunk_order(const FlexibleProblem& problem, double slope) {
  Order order;
  order.reserve(static_cast<std::size_t>(problem.ranks) * problem.per_rank());
  for (std::int32_t r = 0; r < problem.ranks; ++r) {
    const auto begin = 1 + static_cast<std::int32_t>(std::floor(slope * (problem.ranks - 1 - r) + 1e-9));
    const std::int32_t ahead = std::min({begin, problem.most_live, problem.microbatches});
    order.insert(order.end(), static_cast<std::size_t>(ahead), forward_step(0));
    for (std::int32_t k = ahead; k < problem.microbatches; ++k) {
      order.push_back(gradient_step(0));
      order.push_back(forward_step(0));
    }
    order.insert(order.end(), static_cast<std::size_t>(ahead), gradient_step(0));
  }
  return order;
}

Order serial_order(const FlexibleProblem& problem) {
  Order order;
  order.reserve(static_cast<std::size_t>(problem.ranks) * problem.per_rank());
  for (std::int32_t k = 0; k < problem.ranks * problem.microbatches; ++k)
    for (const Step step : {forward_step(0), forward_step(1), gradient_step(1), gradient_step(0)})
      order.push_back(step);
  return order;
}

}  // namespace tessera::train
