// Which pairs are worth measuring on the device, before the partition is trusted.
//
//   TESSERA_TRY(const MeasureReport report, pairs_to_measure(job));
//   report.certain      // nothing that could still be measured makes another partition better by 1 %
//   report.next         // else: measure these, in this order
//
// A composed time is taken to be the truth within ±15 %, a measured one within ±1 % (or what the profile says
// of its error, where that is more). The problem is the one that the overlap-aware search solves: the same
// legal places, budgets and window. What is certified is the slowest pair, not the iteration time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/core/base/ids.h"
#include "tessera/core/base/result.h"
#include "tessera/core/base/units.h"
#include "tessera/core/cost/profile_database.h"
#include "tessera/train/planner/job.h"
#include "tessera/train/schedule/partition.h"

namespace tessera::train {

/// A pair, and how to find it again in a profile.
struct PairToProfile {
  StageId forward, backward;  ///< one place where it occurs
  BlockRange forward_blocks, backward_blocks;
  std::string forward_holds, backward_holds;  ///< "GE×3 AE"
  ProfileKey key;
  Seconds composed;
  /// Task names, layers counted from 0 in each chunk: what has to run to measure it.
  std::vector<std::string> launch_order;
};

struct MeasureReport {
  std::string model, device, schedule;
  double composed_error = 0, tolerance = 0;  ///< relative
  double measured_error = 0;  ///< relative; the largest of what is measured, each is taken with its own
  /// The choice is within the tolerance of the best, with what is measured now.
  bool certain = false;
  double regret = 0;  ///< the choice's slowest pair is at most this much above the best one's; relative
  /// The same when `next` is measured, if each measurement confirms the composed time. It may stay uncertain:
  /// stages that overlap with nothing are no pairs and stay composed, and pairs as slow as each other cannot
  /// be told apart any better than they are measured.
  bool certain_then = false;
  double regret_then = 0;
  Partition choice;                 ///< the fastest slowest pair with every pair at its upper end, now
  Seconds upper;                    ///< its slowest pair, upper end, now
  Seconds lower;                    ///< no partition's slowest pair is faster, now
  std::int64_t distinct = 0;        ///< pairs that are different measurements, over all places of the window
  std::int64_t measured = 0;        ///< of those, in the profile already
  std::vector<PairToProfile> next;  ///< most useful first
};

/// Reads the job's profile where it names one; writes nothing. Errors: those of the job, a partition that is
/// given, durations by hand per stage, a template that overlaps nothing, a memory that nothing fits.
[[nodiscard]] Result<MeasureReport> pairs_to_measure(const Job& job);

}  // namespace tessera::train
