#include "tessera/core/cost/expert_time.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera {

namespace {

double ratio(double numerator, double slope) noexcept {
  return slope > 0 ? numerator / slope : std::numeric_limits<double>::infinity();
}

}  // namespace

Seconds ExpertTimeModel::evaluate(const ExpertLoad& load) const noexcept {
  const auto slots = static_cast<double>(load.slots);
  const auto active = static_cast<double>(load.active);
  if (load.active == 0 && load.tokens == 0) return idle.value_or(a + d * slots);
  Seconds memory = a + b * active + d * (slots - active);
  if (tile > 0) memory += b2 * (load.tiles - active);
  return std::max(memory, c + beta * load.tokens);
}

double ExpertTimeModel::knee() const noexcept {
  return ratio(b.value(), beta.value());
}
double ExpertTimeModel::activation_knee() const noexcept {
  return ratio((b - d).value(), beta.value());
}

BytesPerSecond ExpertTimeModel::implied_bandwidth(Bytes expert_weights) const noexcept {
  return BytesPerSecond(ratio(expert_weights.value(), b.value()));
}
FlopsPerSecond ExpertTimeModel::implied_rate(Flops token_operations) const noexcept {
  return FlopsPerSecond(ratio(token_operations.value(), beta.value()));
}

}  // namespace tessera
