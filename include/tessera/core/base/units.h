// Quantities with their unit in the type: seconds, bytes, floating-point operations, and their rates.
//
// A quantity is a double, so nothing is paid at run time; what is gained is that bytes for seconds does
// not compile (tests/must_not_compile). Going in or out of a plain number is always explicit.
#pragma once

#include <compare>

namespace tessera {

template <class Unit>
class Quantity {
 public:
  constexpr Quantity() noexcept = default;
  constexpr explicit Quantity(double value) noexcept : value_(value) {}

  [[nodiscard]] constexpr double value() const noexcept { return value_; }

  constexpr Quantity& operator+=(Quantity other) noexcept { return value_ += other.value_, *this; }
  constexpr Quantity& operator-=(Quantity other) noexcept { return value_ -= other.value_, *this; }
  constexpr Quantity& operator*=(double factor) noexcept { return value_ *= factor, *this; }
  constexpr Quantity& operator/=(double factor) noexcept { return value_ /= factor, *this; }

  friend constexpr Quantity operator+(Quantity a, Quantity b) noexcept { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) noexcept { return a -= b; }
  friend constexpr Quantity operator-(Quantity a) noexcept { return Quantity(-a.value_); }
  friend constexpr Quantity operator*(Quantity a, double factor) noexcept { return a *= factor; }
  friend constexpr Quantity operator*(double factor, Quantity a) noexcept { return a *= factor; }
  friend constexpr Quantity operator/(Quantity a, double factor) noexcept { return a /= factor; }
  friend constexpr double operator/(Quantity a, Quantity b) noexcept { return a.value_ / b.value_; }
  friend constexpr auto operator<=>(Quantity a, Quantity b) noexcept = default;

 private:
  double value_ = 0;
};

using Seconds = Quantity<struct SecondsUnit>;
using Bytes = Quantity<struct BytesUnit>;
using Flops = Quantity<struct FlopsUnit>;  ///< a count of operations, not a rate
using BytesPerSecond = Quantity<struct BytesPerSecondUnit>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondUnit>;

constexpr Seconds operator/(Bytes bytes, BytesPerSecond rate) noexcept {
  return Seconds(bytes.value() / rate.value());
}
constexpr Seconds operator/(Flops flops, FlopsPerSecond rate) noexcept {
  return Seconds(flops.value() / rate.value());
}

namespace units {
constexpr Seconds operator""_s(long double v) noexcept {
  return Seconds(static_cast<double>(v));
}
constexpr Seconds operator""_ms(long double v) noexcept {
  return Seconds(static_cast<double>(v) * 1e-3);
}
constexpr Seconds operator""_us(long double v) noexcept {
  return Seconds(static_cast<double>(v) * 1e-6);
}
constexpr Bytes operator""_GiB(long double v) noexcept {
  return Bytes(static_cast<double>(v) * 1024 * 1024 * 1024);
}
}  // namespace units

[[nodiscard]] constexpr double milliseconds(Seconds time) noexcept {
  return time.value() * 1e3;
}
[[nodiscard]] constexpr double microseconds(Seconds time) noexcept {
  return time.value() * 1e6;
}
[[nodiscard]] constexpr double gibibytes(Bytes size) noexcept {
  return size.value() / (1024.0 * 1024 * 1024);
}

}  // namespace tessera
