#include "improve_order.h"

#include <algorithm>

namespace tessera::train {
namespace {

constexpr std::int64_t kReach = 4;  // steps that one move may pass

// SplitMix64, Steele et al., OOPSLA 2014: small, and the same everywhere.
class Draw {
 public:
  std::size_t below(std::size_t bound) noexcept {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return static_cast<std::size_t>((z ^ (z >> 31U)) % bound);
  }

 private:
  std::uint64_t state_ = 1;
};

struct Move {
  std::size_t from, to;
};

void apply(Order& order, Move move) noexcept {
  const auto at = [&](std::size_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
  if (move.from < move.to)
    std::rotate(at(move.from), at(move.from + 1), at(move.to + 1));
  else
    std::rotate(at(move.to), at(move.from), at(move.from + 1));
}

}  // namespace

void improve_order(OrderTimer& timer, const FlexibleProblem& problem, double patience, std::int64_t trials,
                   Order& order) {
  Draw draw;
  const std::size_t each = problem.per_rank();
  OrderTimer::Outcome best = timer.time(order, patience);
  std::vector<std::size_t> chain;
  const double enough = timer.bound() * (1 + 1e-12);  // sums of durations may differ in their last digits
  for (std::int64_t trial = 0; trial < trials && best.makespan > enough; ++trial) {
    Move moves[2];
    const std::size_t count = 1 + draw.below(2);
    // Only what touches a longest chain can shorten it; a second move may make room elsewhere.
    if (chain.empty()) {
      const auto critical = timer.critical_steps(order, patience, draw.below(2) == 0);
      chain.assign(critical.begin(), critical.end());
    }
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t at =
          k == 0 || draw.below(2) == 0 ? chain[draw.below(chain.size())] : draw.below(order.size());
      const std::size_t rank = at / each;
      const auto from = static_cast<std::int64_t>(at % each);
      const std::int64_t to =
          std::clamp<std::int64_t>(from + static_cast<std::int64_t>(draw.below(2 * kReach + 1)) - kReach, 0,
                                   static_cast<std::int64_t>(each) - 1);
      moves[k] = {rank * each + static_cast<std::size_t>(from), rank * each + static_cast<std::size_t>(to)};
      apply(order, moves[k]);
    }
    const OrderTimer::Outcome found = timer.time(order, patience, best.makespan * (1 + 1e-12));
    if (!best.before(found)) {
      best = found;
      chain.clear();
      continue;
    }
    for (std::size_t k = count; k-- > 0;) apply(order, {moves[k].to, moves[k].from});
  }
}

}  // namespace tessera::train
