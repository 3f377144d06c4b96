// The time of one op on one device in one dtype, as a function of its shape, from measurements on a grid with
// holes: a physical trend times an interpolated correction.
//
//   time(shape) = Σ cᵢ·workᵢ(shape) · exp(r(shape)),   cᵢ ≥ 0 fitted to the table
//
// Latencies span five decades, but against the trend they stay within some ten percent, so what is
// interpolated is small: the logarithm r of measured over trend, that is, of the efficiency. It is
// interpolated over the logarithms of all axes at once by kriging (the best linear predictor under a
// covariance that falls with the distance), which needs no full grid and goes through every measured point.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernel_table_ops.h"

namespace tessera::kernel_table {

/// A measured point: equal shapes are merged into one before.
struct Point {
  Shape shape;
  double seconds;
};

struct Prediction {
  double seconds;
  double relative_error;  ///< exceeded by about one left-out point in ten
  double octaves_beyond;  ///< how far outside the measured ranges, summed over the axes; 0 = inside
};

class Surface {
 public:
  Surface() = default;
  /// At least one point, all shapes different.
  Surface(const Op& op, double element_bytes, std::span<const Point> points);

  /// Allocates nothing.
  [[nodiscard]] Prediction predict(const Shape& shape) const noexcept;

 private:
  void fit_trend(std::span<const Point> points);
  void krige(std::span<const Point> points);
  [[nodiscard]] double trend(const Shape& shape) const noexcept;
  [[nodiscard]] const double* position(std::size_t point) const noexcept {
    return &positions_[point * dimensions_];
  }

  const Op* op_ = nullptr;
  double element_bytes_ = 2;
  WorkTerms coefficients_{};
  std::size_t dimensions_ = 0;                   ///< axes that vary in this table
  std::array<std::size_t, kMaxAxes> axis_{};     ///< of each dimension
  std::array<double, kMaxAxes> low_{}, high_{};  ///< log2, of every axis
  std::vector<double> positions_;                ///< points × dimensions, log2
  std::vector<double> weights_;
  std::vector<double> squared_errors_;  ///< per point, of its prediction from the other points
};

/// Per point: has neighbours on both sides of an axis, all other axes equal.
[[nodiscard]] std::vector<bool> interior(std::span<const Point> points);

}  // namespace tessera::kernel_table
