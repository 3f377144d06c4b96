// Decision-directed profiling: which pairs are worth measuring, and when the choice is certain.
//
// A composed time is the truth within ± composed_error, a measured one within ± its own error. The choice is
// the partition whose slowest pair is fastest with every pair at its upper end. It is certain when no truth
// within the errors makes another partition faster by more than the tolerance. Until then the pair is
// measured that stands most in the way.
//
//   MeasurePlan plan = plan_measurements(problem, costs, known, {});
//   plan.certain, plan.next[0]    // measure this, add it to `known`, ask again
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "tessera/train/partition/solve_partition.h"

namespace tessera::train {

/// A pair as the profile knows it: equal signatures share one measurement.
using PairSignature = std::vector<std::int32_t>;

struct PairMeasurement {
  Seconds time;
  double error = 0.01;  ///< relative: the truth is within ± this
};
/// What was measured, by signature.
using MeasuredPairs = std::map<PairSignature, PairMeasurement>;

struct MeasureOptions {
  double composed_error = 0.15;  ///< hard bound on composed times (Tessera paper: tails to 15 %)
  double measured_error = 0.01;  ///< of the measurements planned
  double tolerance = 0.01;       ///< of the slowest pair
  std::int32_t most = 10'000;    ///< measurements planned ahead
};

struct PairToMeasure {
  PairQuery pair;  ///< one place where it occurs
  PairSignature signature;
  Seconds composed;
};

struct MeasurePlan {
  bool certain = false;  ///< `choice` is within the tolerance of the best, whatever else is measured
  Partition choice;      ///< the fastest slowest pair with every pair at its upper end
  Seconds upper;         ///< its slowest pair, upper end
  Seconds lower;         ///< no partition is faster than this
  std::string obstacle;  ///< when no partition satisfies the problem, or none was found
  /// What to measure, most useful first, if every measurement confirms the composed time; with `measure`
  /// given, what was measured. It may end before the choice is certain: serial times are not measured here,
  /// and two measured pairs as slow as each other may be apart by their errors, which can be more than the
  /// tolerance.
  std::vector<PairToMeasure> next;
};

/// Every entry of T that a solver may ask for over the problem's places, edge by edge.
[[nodiscard]] std::vector<PairQuery> possible_pairs(const PartitionProblem& problem);

/// Signature of a query; equal ones must have equal times.
using SignatureOf = std::function<PairSignature(const PairQuery&)>;
/// Measures a pair; nullopt = not now (planning goes on as if it confirmed the composed time).
using Measure = std::function<std::optional<Seconds>(const PairToMeasure&)>;

/// `costs` are composed times. Deterministic.
[[nodiscard]] MeasurePlan plan_measurements(const PartitionProblem& problem, StageCosts& costs,
                                            const SignatureOf& signature, MeasuredPairs known,
                                            const MeasureOptions& options = {}, const Measure& measure = {});

}  // namespace tessera::train
