// A lower bound on what is left of a pair, from every point of the search.
//
// With divisible leaves the recursion is max-plus: a partial schedule is five times, and it can be finished
// by T when, for some way to order the rest, each of the five is at most T plus an offset. Backward over
// (next forward, next backward operation) the Pareto-maximal offsets are kept.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "chain_pair.h"

namespace tessera::train {

/// Comp free for a chain operation, comm free, next forward ready, next backward ready, end of all released
/// comp work.
using Times = std::array<Ticks, 5>;
inline constexpr std::size_t kComp = 0, kComm = 1, kReady = 2, kWork = 4;  ///< kReady + side

class FluidBound {
 public:
  /// Offsets that no schedule shorter than `horizon` can use are left out: what finish() says is exact below
  /// it, and at least `horizon` otherwise. More than `keep` ways per point are merged, which weakens the
  /// bound.
  void build(const ChainPair& pair, Ticks horizon, std::size_t keep);

  /// No way to go on from `times` at (forward, backward) ends before this.
  [[nodiscard]] Ticks finish(std::size_t forward, std::size_t backward, const Times& times) const noexcept {
    Ticks best = kNever;
    for (const Times& way : ways(forward, backward)) {
      Ticks end = times[0] - way[0];
      for (std::size_t k = 1; k < way.size(); ++k) end = std::max(end, times[k] - way[k]);
      best = std::min(best, end);
    }
    return best;
  }
  [[nodiscard]] std::size_t size() const noexcept { return ways_.size(); }

  static constexpr Ticks kNever = Ticks{1} << 60;

 private:
  [[nodiscard]] std::size_t cell(std::size_t forward, std::size_t backward) const noexcept {
    return forward * columns_ + backward;
  }
  [[nodiscard]] std::span<const Times> ways(std::size_t forward, std::size_t backward) const noexcept {
    const Range& range = ranges_[cell(forward, backward)];
    return {ways_.data() + range.begin, ways_.data() + range.end};
  }

  struct Range {
    std::size_t begin = 0, end = 0;
  };
  std::size_t columns_ = 0;
  std::vector<Range> ranges_;
  std::vector<Times> ways_;
  std::vector<Times> cell_ways_;
};

}  // namespace tessera::train
