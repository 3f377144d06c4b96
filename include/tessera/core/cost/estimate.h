// A duration with where it came from and how far it may be off.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tessera/core/base/units.h"

namespace tessera {

/// Best first. A plan counts its time by these.
enum class Provenance : std::uint8_t {
  measured_pair,  ///< the whole overlapped pair on the user's device
  measured_task,  ///< the task on the user's device
  given,          ///< by hand, in the job file
  table,          ///< interpolated in a shipped table of this device
  scaled_table,   ///< a table of a close relative, times a documented ratio; or a documented ratio of a table
                  ///< time
  extended_table,  ///< beyond the table's end, by the efficiency achieved there
  roofline,        ///< operations and bytes over peak times a documented efficiency
  constant,        ///< a documented constant (latencies, host time)
};
inline constexpr std::size_t kProvenances = 8;
[[nodiscard]] std::string_view name(Provenance provenance) noexcept;

/// Adds up: the time and the absolute error, in all and by provenance.
struct Estimate {
  Seconds time;
  Seconds error;  ///< the truth is expected within time ± error, even if everything errs the same way
  std::array<Seconds, kProvenances> by_source{};
  std::array<Seconds, kProvenances> error_by_source{};

  Estimate() = default;
  /// `relative_error` 0.12 = ±12 %.
  Estimate(Seconds t, Provenance source, double relative_error) noexcept
      : time(t), error(t * relative_error) {
    by_source[static_cast<std::size_t>(source)] = t;
    error_by_source[static_cast<std::size_t>(source)] = error;
  }
  /// Errors of one source add up (they share a cause), those of different sources are independent: root of
  /// the sum of squares over the sources. At most `error`.
  [[nodiscard]] Seconds likely_error() const noexcept;
  Estimate& operator+=(const Estimate& other) noexcept;
  Estimate& operator*=(double factor) noexcept;
  friend Estimate operator+(Estimate a, const Estimate& b) noexcept { return a += b; }
  friend Estimate operator*(Estimate a, double factor) noexcept { return a *= factor; }
  friend Estimate operator*(double factor, Estimate a) noexcept { return a *= factor; }
};

}  // namespace tessera
