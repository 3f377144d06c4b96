// The measured pairs that apply to one job: one consistent view of the profile database, taken when it is
// read, so that a plan does not change while others measure.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/core/base/result.h"
#include "tessera/core/cost/profile_database.h"
#include "tessera/train/execution_plan/execution_plan.h"
#include "tessera/train/overlap/pair_table.h"
#include "tessera/train/planner/job.h"
#include "tessera/train/planner/profile_keys.h"

namespace tessera::train {

class PairProfile {
 public:
  /// The cells of source chunk_pair in `job.profile_file`. Errors: those of the database; durations per stage
  /// by hand, which no measurement can refine.
  [[nodiscard]] static Result<PairProfile> read(const Job& job, const ModelCost& cost);

  [[nodiscard]] const ProfileKeys& keys() const noexcept { return keys_; }
  /// The pair in any launch order. For a cheap no.
  [[nodiscard]] bool knows(double rank_speed, const PairKey& pair) const;
  /// The fastest of all launch orders; nullopt when none was measured.
  [[nodiscard]] std::optional<Seconds> fastest(double rank_speed, const PairKey& pair) const;
  /// In this launch order, given by names that count layers from 0 in each chunk; null when not measured.
  [[nodiscard]] const ProfileValue* find(double rank_speed, const PairKey& pair,
                                         std::span<const std::string> launch_order) const;

 private:
  explicit PairProfile(ProfileKeys keys) : keys_(std::move(keys)) {}
  using Orders = std::map<std::string, ProfileValue, std::less<>>;
  [[nodiscard]] const Orders* orders(double rank_speed, const PairKey& pair) const;

  ProfileKeys keys_;
  std::map<double, std::map<std::string, Orders, std::less<>>> cells_;  // by speed, pair, schedule
};

/// What was measured of a pair of the plan in its sequence; nullopt when nothing was.
[[nodiscard]] std::optional<MeasuredPair> measured_pair(const PairProfile& profile, const ExecutionPlan& plan,
                                                        const PairKey& key, const PairPlan& pair);

/// "3 of the 14 overlapped pairs have a measured time in profile.db." Empty when the job names no profile.
[[nodiscard]] std::string profile_note(const Job& job, const ExecutionPlan& plan);

}  // namespace tessera::train
