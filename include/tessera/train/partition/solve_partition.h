// The overlap-aware partition: the boundaries for which the slowest pair is fastest, and the best after it.
//
//   PartitionResult r = solve_partition(problem, costs, {.keep = 50});
//   r.best[0].partition       // least slowest pair; among those the least Σ multiplicity · T
//   r.bound                   // no partition within the places has a faster slowest pair
//
// One face for the sweep, the MILP and brute force.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/train/partition/partition_problem.h"

namespace tessera::train {

enum class PartitionMethod : std::uint8_t {
  sweep,        ///< exact: propagation for the slowest pair, then a walk over the ranks for the k best
  milp,         ///< the Tessera paper's formulation on HiGHS: the reference; returns one partition
  brute_force,  ///< every partition; refuses more than its work limit
};

struct PartitionOptions {
  PartitionMethod method = PartitionMethod::sweep;
  std::int32_t keep = 1;  ///< how many of the best are wanted
  /// An incumbent: pairs above its slowest are pruned (equal ones kept). Must satisfy the problem.
  std::optional<Partition> incumbent;
  /// No partition of the problem has a faster slowest pair: proved before. An incumbent that has it ends the
  /// sweep's search for it.
  std::optional<Seconds> floor;
  /// Partitions whose slowest pair is up to this factor above the optimum may be among the best, when fewer
  /// have the optimum itself.
  double widest = 1.1;
  /// States looked at, before Σ gets a stated gap, or the slowest pair where even that is not found sooner.
  std::int64_t work_limit = 50'000'000;
  std::optional<Seconds> time_limit;  ///< milp only
  bool least_work = true;  ///< milp only: also the least Σ at the least slowest pair, by a second programme
  // Shortcuts of the sweep; the answer is the same without them.
  std::int64_t search_nodes = 200;  ///< of a depth-first search before the walk decides
  bool walk = true;                 ///< false: branch and bound in its place
  std::int32_t price_steps = 16;    ///< subgradient steps on the walk's stitches
};

enum class PartitionReason : std::uint8_t {
  optimal,     ///< the slowest pair is proved; best[0] has the least Σ at it
  work_gap,    ///< the slowest pair is proved; Σ only within work_gap, or what comes after best[0] not at all
  limit,       ///< stopped; see bound and gap. `best` is empty when nothing was found, nor ruled out
  infeasible,  ///< proved; see `obstacle`
  too_big,     ///< brute force on too many partitions; the sweep on more than 64 places of a boundary, or on
               ///< more pairs of ranges than it keeps in memory
};
[[nodiscard]] std::string_view name(PartitionReason reason) noexcept;

struct PartitionChoice {
  Partition partition;
  PartitionValue value;
};

struct PartitionResult {
  PartitionReason reason = PartitionReason::infeasible;
  /// First the optimum: the least slowest pair, of those the least Σ. Then, by Σ, the `keep` partitions of
  /// least Σ whose slowest pair is at most `reach`, the optimum left out where it is one of them. Of those
  /// with equal Σ, also at the end of the `keep`, brute force takes the first boundaries and the sweep any,
  /// but always the same. The MILP returns the first alone, and of equal ones any.
  std::vector<PartitionChoice> best;
  /// The least value that the slowest pairs of `keep` partitions stay within, but at most widest · optimum.
  Seconds reach;
  Seconds bound;        ///< no partition has a faster slowest pair
  double gap = 0;       ///< best[0] slowest / bound − 1
  double work_gap = 0;  ///< of Σ at the optimal slowest pair
  /// Why `best` is empty: the constraint that cannot be met, and by how much; or what was too much to look
  /// at.
  std::string obstacle;
  // What it took.
  std::int64_t variables = 0;         ///< y and z of the MILP over these places
  std::int64_t variables_pruned = 0;  ///< milp only: the same after pruning by the incumbent
  std::int64_t pairs_timed = 0;       ///< entries of T asked for
  std::int64_t work = 0;              ///< states, nodes or partitions looked at
  Seconds solve_time;                 ///< wall clock
};
[[nodiscard]] PartitionResult solve_partition(const PartitionProblem& problem, StageCosts& costs,
                                              const PartitionOptions& options = {});

/// Variables of the MILP over the problem's places: y per stage and range, z per pair of ranges of two
/// overlapped stages (both directions share theirs; neighbouring stages only where they tile).
[[nodiscard]] std::int64_t count_variables(const PartitionProblem& problem);
/// The same without the cells above `most`, the ranges left without a partner or without a neighbour that
/// tiles, and so on to the end. Times every pair that bound() does not already exclude.
[[nodiscard]] std::int64_t count_variables(const PartitionProblem& problem, StageCosts& costs, Seconds most);

/// Solves around a center, and again around the result while that touches the rim of the window. The center
/// is first moved to the nearest legal partition. Where nothing in a window fits the memory, or nothing is
/// found that does, the next center is what exceeds it least. An incumbent counts in windows that hold it.
/// What one window has found is not lost to a later one that finds nothing.
struct WindowOptions {
  PartitionOptions solve;
  std::int32_t window = 2;   ///< blocks to each side
  std::int32_t widened = 0;  ///< the first so many boundaries get one block more to each side
  std::int32_t most_moves = 16;
};
struct WindowResult {
  PartitionResult result;  ///< of the last window
  Partition center;        ///< of the last window
  std::int32_t moves = 0;
  Seconds solve_time;            ///< all windows together
  std::int64_t pairs_timed = 0;  ///< all windows together
};
/// `legal` as legal_places gives. The problem's own places are ignored.
[[nodiscard]] WindowResult solve_in_window(const PartitionProblem& problem,
                                           std::span<const std::vector<std::int32_t>> legal,
                                           StageCosts& costs, const Partition& center,
                                           const WindowOptions& options);

/// The front of slowest pair against Σ: for each, no other has both smaller. By slowest pair.
[[nodiscard]] std::vector<PartitionChoice> front(std::vector<PartitionChoice> choices);

}  // namespace tessera::train
