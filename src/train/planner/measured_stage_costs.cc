#include "measured_stage_costs.h"

#include <algorithm>

namespace tessera::train {

MeasuredStageCosts::MeasuredStageCosts(const Job& job, const PricedJob& priced, PlanFrame& frame)
    : ModelStageCosts(
          priced.input, priced.cost,
          {.interference = priced.interference, .stage_speed = stage_speeds(job), .nominal = &frame.pairs}),
      priced_(priced),
      frame_(frame),
      speeds_(stage_speeds(job)) {}

double MeasuredStageCosts::speed(const PairQuery& query) const noexcept {
  return speeds_.empty() ? 1.0 : speeds_[query.forward.index()];
}

std::vector<std::string> MeasuredStageCosts::launch_order(const PairKey& key) {
  // The plan runs the nominal order on every rank.
  frame_.pairs.solve({&key, 1}, 1);
  return names_of(pair_graph(frame_.plan.costs, key), frame_.pairs.at(key).schedule.order);
}

Seconds MeasuredStageCosts::bound(const PairQuery& query) const {
  const Seconds composed = ModelStageCosts::bound(query);
  if (!priced_.profile) return composed;
  const auto [memo, fresh] = fastest_.try_emplace({speed(query), key(query)});
  if (fresh) memo->second = priced_.profile->fastest(memo->first.first, memo->first.second);
  return memo->second ? std::min(composed, *memo->second) : composed;
}

std::optional<ProfileValue> MeasuredStageCosts::measured(const PairQuery& query) {
  if (!priced_.profile) return std::nullopt;
  const auto [memo, fresh] = measured_.try_emplace({speed(query), key(query)});
  const auto& [rank_speed, pair] = memo->first;
  if (fresh && priced_.profile->knows(rank_speed, pair))
    if (const ProfileValue* value = priced_.profile->find(rank_speed, pair, launch_order(pair)))
      memo->second = *value;
  return memo->second;
}

std::vector<Seconds> MeasuredStageCosts::times(std::span<const PairQuery> queries) {
  std::vector<Seconds> out = ModelStageCosts::times(queries);
  if (priced_.profile)
    for (std::size_t i = 0; i < queries.size(); ++i)
      if (const auto value = measured(queries[i])) out[i] = value->median;
  return out;
}

}  // namespace tessera::train
