// A pair as the exact scheduler sees it: two chains of operations and leaves, in whole ticks.
//
// A leaf is a comp task beside a chain: weight gradient, shared expert, recompute. It is pending from the end
// of the comp operation that releases it (or from the start), and may be required by a later operation. Comp
// is filled without pauses except before chain operations, so a pending leaf can always run when comp is
// free: no release time enters the search.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "flat_graph.h"
#include "tessera/core/base/units.h"
#include "tessera/train/overlap/task_graph.h"

namespace tessera::train {

/// Durations are whole multiples of a power of two of a second, so that sums are exact and equal is equal.
using Ticks = std::int64_t;
using LeafSet = std::uint64_t;
inline constexpr std::size_t kMostLeaves = 64;

struct ChainOp {
  std::int32_t task = 0;
  Ticks duration = 0;
  bool comm = false;
  LeafSet released = 0;  ///< leaves pending from its end on
  LeafSet required = 0;  ///< leaves that must have ended before its start, with what those need
};

struct Leaf {
  std::int32_t task = 0;
  Ticks duration = 0;
  LeafSet needs = 0;     ///< leaves that must have run before
  bool movable = false;  ///< may be left to the pool
  bool has_deadline = false;
  bool free = false;  ///< no deadline, needs nothing, nothing needs it: equal ones are interchangeable
};

struct ChainPair {
  std::vector<ChainOp> chain[2];  ///< forward, backward
  std::vector<Leaf> leaves;       ///< longest first, then by release: bit k of a LeafSet is leaf k
  LeafSet at_start = 0;
  Ticks credit = 0;  ///< movable leaves of at most this much may be left out
  double tick = 1;   ///< seconds
  /// A leaf released or required by a comm operation was tied to the comp operation next to it. Schedules are
  /// legal, but the true optimum may be shorter.
  bool tightened = false;
  std::vector<Ticks> duration;                     ///< per task of the graph
  std::vector<std::vector<std::int32_t>> instant;  ///< per task: leaves of no length to run right after it
  std::vector<std::int32_t> instant_at_start;

  [[nodiscard]] Ticks sum(LeafSet set) const noexcept;
};

/// What becomes of a leaf that a comm operation releases or waits for.
enum class Ties : std::uint8_t {
  tighten,  ///< released later, due earlier: every schedule found is legal
  loosen,   ///< released earlier, due never: bounds hold for the graph; no schedule is meant
};

/// Nothing when the graph is not two chains with leaves, or has more than kMostLeaves of them.
[[nodiscard]] std::optional<ChainPair> chain_pair(const TaskGraph& graph, Seconds pool_credit,
                                                  Ties ties = Ties::tighten);

/// Makespan of an order, in ticks.
[[nodiscard]] Ticks makespan_of(const ChainPair& pair, const FlatGraph& graph,
                                std::span<const std::int32_t> order);

}  // namespace tessera::train
