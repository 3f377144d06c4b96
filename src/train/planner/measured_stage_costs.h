// Stage costs of a job in which what was measured stands in the place of what was composed.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "assemble.h"
#include "pair_profile.h"
#include "tessera/train/partition/model_costs.h"

namespace tessera::train {

class MeasuredStageCosts : public ModelStageCosts {
 public:
  /// All three must outlive it. A measurement is of the order that the frame's plan runs.
  MeasuredStageCosts(const Job& job, const PricedJob& priced, PlanFrame& frame);

  [[nodiscard]] Seconds bound(const PairQuery& query) const override;
  [[nodiscard]] std::vector<Seconds> times(std::span<const PairQuery> queries) override;

  /// Of the pair in the order that the plan runs; nullopt when it was not measured.
  [[nodiscard]] std::optional<ProfileValue> measured(const PairQuery& query);
  /// Of the rank that the stages of the query lie on.
  [[nodiscard]] double speed(const PairQuery& query) const noexcept;
  /// Task names of the pair in launch order, layers counted from 0 in each chunk.
  [[nodiscard]] std::vector<std::string> launch_order(const PairKey& key);

 private:
  using Memo = std::pair<double, PairKey>;
  const PricedJob& priced_;
  PlanFrame& frame_;
  std::vector<double> speeds_;  // per stage; empty = all 1
  std::map<Memo, std::optional<ProfileValue>> measured_;
  mutable std::map<Memo, std::optional<Seconds>> fastest_;
};

}  // namespace tessera::train
