// The label-setting search over (next forward, next backward operation).
//
// A label is a partial schedule: when comp and comm are free, when each chain's next operation is ready,
// which leaves are pending. Leaves ride in the transitions: "the next chain operation, after this block of
// pending leaves". Which transitions are enough, and when one label makes another useless,
// docs/pair-schedules.md derives; brute force and a MILP hold it to account.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "chain_pair.h"
#include "fluid_bound.h"

namespace tessera::train {

/// What one pass may do.
struct PassLimits {
  Ticks cut = 0;          ///< only schedules that end by then are wanted
  std::size_t width = 0;  ///< labels kept per point
  std::int64_t work = 0;  ///< labels and blocks of leaves tried before it gives up
  std::optional<std::chrono::steady_clock::time_point> until;
};

struct PassOutcome {
  bool complete = false;            ///< nothing was left out but what ends after the cut
  bool exhausted = false;           ///< out of labels or time
  Ticks best = FluidBound::kNever;  ///< shortest schedule found within the cut
  /// No schedule but those found ends before this; above the cut when the pass is complete.
  Ticks bound = FluidBound::kNever;
  std::int64_t work = 0;
};

class LabelSearch {
 public:
  explicit LabelSearch(const ChainPair& pair);

  /// `fluid` may be null: then loads and chains bound a label.
  PassOutcome run(const PassLimits& limits, const FluidBound* fluid);

  /// Of the last pass, at most `count`, shortest first.
  [[nodiscard]] std::vector<LaunchOrder> orders(std::size_t count) const;

 private:
  struct Label {
    Times time{};
    LeafSet pending = 0;
    LeafSet block = 0;     // leaves run before the operation that led here
    LeafSet trailing = 0;  // leaves run after it because nothing else could
    Ticks finish = 0;      // no completion ends before
    std::uint32_t parent = 0;
    std::int8_t side = -1;    // whose operation led here; -1 at the root
    std::int8_t frozen = -1;  // a chain that waits until the other has run leaves before a comp operation
  };
  struct Point {
    std::size_t at[2] = {0, 0};
  };
  // Ticks until a chain can ask for a resource, and what it still needs in all, from each position.
  struct Ahead {
    Ticks to_comp = 0, to_comm = 0, comp = 0, comm = 0, tail = 0;
  };
  struct BlockSearch {  // the blocks of leaves before one comp operation
    const Label* label = nullptr;
    Point point;
    std::size_t side = 0;
    std::uint32_t parent = 0;
    Ticks gap = 0;
    LeafSet urgent = 0;
    bool empty_allowed = true;
  };

  void expand(std::uint32_t index, Point point);
  void take(std::uint32_t index, Point point, std::size_t side, bool empty_allowed = true);
  void take_comm(std::uint32_t index, Point point, std::size_t side, std::int8_t frozen);
  void extend_block(const BlockSearch& search, LeafSet block, Ticks sum, std::size_t from);
  void emit(const BlockSearch& search, LeafSet block, Ticks sum);
  /// Counts a step of work; true when the limit is reached and everything should return.
  [[nodiscard]] bool spent() noexcept;
  void insert(Label label, Point point);
  void settle(Label& label, const Point& point) const noexcept;
  [[nodiscard]] Ticks simple_finish(const Label& label, const Point& point) const noexcept;
  [[nodiscard]] bool dominates(const Label& a, const Label& b) const noexcept;
  void narrow(std::vector<std::uint32_t>& cell);
  void close(std::vector<std::uint32_t>& cell);
  [[nodiscard]] LeafSet most_left(LeafSet pending) const;
  [[nodiscard]] const ChainOp* next(const Point& point, std::size_t side) const noexcept {
    const auto& chain = pair_.chain[side];
    return point.at[side] < chain.size() ? &chain[point.at[side]] : nullptr;
  }
  void append_leaves(LeafSet set, LeafSet first, LaunchOrder& order) const;
  void append_instant(const std::vector<std::int32_t>& tasks, LaunchOrder& order) const;
  [[nodiscard]] LaunchOrder order_of(std::uint32_t label) const;

  const ChainPair& pair_;
  std::vector<Ahead> ahead_[2];
  LeafSet tied_ = 0;           // leaves that no other can stand for: with a deadline, or not for the pool
  LeafSet comm_deadline_ = 0;  // leaves that a comm operation waits for
  std::vector<Label> labels_;
  std::vector<std::vector<std::uint32_t>> current_, next_;  // per next forward operation, one diagonal
  std::vector<std::uint32_t> finals_;
  PassLimits limits_;
  PassOutcome outcome_;
  const FluidBound* fluid_ = nullptr;
  std::int64_t work_ = 0, next_clock_ = 0;
  bool stopped_ = false;
};

}  // namespace tessera::train
