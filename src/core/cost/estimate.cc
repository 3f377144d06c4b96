#include "tessera/core/cost/estimate.h"

#include <cmath>

namespace tessera {

std::string_view name(Provenance provenance) noexcept {
  switch (provenance) {
    case Provenance::measured_pair:
      return "measured pair";
    case Provenance::measured_task:
      return "measured task";
    case Provenance::given:
      return "given";
    case Provenance::table:
      return "table";
    case Provenance::scaled_table:
      return "scaled table";
    case Provenance::extended_table:
      return "extended table";
    case Provenance::roofline:
      return "roofline";
    case Provenance::constant:
      return "constant";
  }
  return "unknown";
}

Estimate& Estimate::operator+=(const Estimate& other) noexcept {
  time += other.time;
  error += other.error;
  for (std::size_t i = 0; i < kProvenances; ++i) {
    by_source[i] += other.by_source[i];
    error_by_source[i] += other.error_by_source[i];
  }
  return *this;
}

Estimate& Estimate::operator*=(double factor) noexcept {
  time *= factor;
  error *= factor;
  for (Seconds& part : by_source) part *= factor;
  for (Seconds& part : error_by_source) part *= factor;
  return *this;
}

Seconds Estimate::likely_error() const noexcept {
  double squares = 0;
  for (const Seconds part : error_by_source) squares += part.value() * part.value();
  return Seconds(std::sqrt(squares));
}

}  // namespace tessera
