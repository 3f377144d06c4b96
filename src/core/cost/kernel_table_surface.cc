#include "kernel_table_surface.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nonnegative_fit.h"

namespace tessera::kernel_table {

namespace {

// The covariance of two points a distance of d octaves apart (summed over the axes). The long part carries an
// efficiency from point to point, as linear interpolation would. The short part is the measurement's own
// noise: it lets the surface pass through each point without dragging the neighbours along. The three numbers
// are one choice for the whole table, not per op: leave-one-out errors change by less than a tenth of their
// value for ranges of 3 … 6 octaves and noise shares of 0.05 … 0.2.
constexpr double kRange = 4;
constexpr double kNoiseShare = 0.1;
constexpr int kShortRangeSquarings = 4;  // the short part falls 2⁴ times faster: a range of a quarter octave

// Two measurements of one shape differ by up to 1.6 % in nine cases of ten (the NCCL rows, measured twice);
// no bound is tighter than this.
constexpr double kRepeatability = 0.02;

// The long part alone, and the whole.
struct Covariance {
  double slow, whole;
};
Covariance covariance(double distance) noexcept {
  const double slow = std::exp(-distance / kRange);
  double fast = slow;
  for (int i = 0; i < kShortRangeSquarings; ++i) fast *= fast;
  return {slow, (1 - kNoiseShare) * slow + kNoiseShare * fast};
}

// Cholesky factor and its inverse, both lower triangular in one row-major square.
class Factor {
 public:
  explicit Factor(std::size_t size) : size_(size), entries_(size * size) {}
  [[nodiscard]] double* row(std::size_t i) noexcept { return &entries_[i * size_]; }
  [[nodiscard]] const double* row(std::size_t i) const noexcept { return &entries_[i * size_]; }

  void decompose() noexcept {
    for (std::size_t i = 0; i < size_; ++i) {
      for (std::size_t j = 0; j < i; ++j) row(i)[j] = (row(i)[j] - dot(row(i), row(j), j)) / row(j)[j];
      row(i)[i] = std::sqrt(row(i)[i] - dot(row(i), row(i), i));
    }
  }
  void solve(std::vector<double>& x) const noexcept {
    for (std::size_t i = 0; i < size_; ++i) x[i] = (x[i] - dot(row(i), x.data(), i)) / row(i)[i];
    for (std::size_t i = size_; i-- > 0;) {
      x[i] /= row(i)[i];
      for (std::size_t k = 0; k < i; ++k) x[k] -= row(i)[k] * x[i];
    }
  }
  /// The diagonal of the inverse of the decomposed matrix.
  [[nodiscard]] std::vector<double> inverse_diagonal() const {
    std::vector<double> out(size_), column(size_);
    for (std::size_t c = 0; c < size_; ++c) {
      column[c] = 1 / row(c)[c];
      double sum = column[c] * column[c];
      for (std::size_t i = c + 1; i < size_; ++i) {
        column[i] = -dot(row(i) + c, column.data() + c, i - c) / row(i)[i];
        sum += column[i] * column[i];
      }
      out[c] = sum;
    }
    return out;
  }

 private:
  // Four partial sums, so that the additions need not wait for each other.
  static double dot(const double* a, const double* b, std::size_t n) noexcept {
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4) {
      s0 += a[i] * b[i];
      s1 += a[i + 1] * b[i + 1];
      s2 += a[i + 2] * b[i + 2];
      s3 += a[i + 3] * b[i + 3];
    }
    for (; i < n; ++i) s0 += a[i] * b[i];
    return (s0 + s1) + (s2 + s3);
  }

  std::size_t size_;
  std::vector<double> entries_;
};

}  // namespace

Surface::Surface(const Op& op, double element_bytes, std::span<const Point> points)
    : op_(&op), element_bytes_(element_bytes) {
  for (std::size_t axis = 0; axis < op.axes.size(); ++axis) {
    low_[axis] = std::numeric_limits<double>::infinity();
    high_[axis] = -low_[axis];
    for (const Point& point : points) {
      low_[axis] = std::min(low_[axis], std::log2(point.shape[axis]));
      high_[axis] = std::max(high_[axis], std::log2(point.shape[axis]));
    }
    if (high_[axis] > low_[axis]) axis_[dimensions_++] = axis;
  }
  positions_.resize(points.size() * dimensions_);
  for (std::size_t p = 0; p < points.size(); ++p)
    for (std::size_t d = 0; d < dimensions_; ++d)
      positions_[p * dimensions_ + d] = std::log2(points[p].shape[axis_[d]]);
  fit_trend(points);
  krige(points);
}

double Surface::trend(const Shape& shape) const noexcept {
  const WorkTerms work = op_->work(shape, element_bytes_);
  double sum = 0;
  for (std::size_t i = 0; i < kWorkTerms; ++i) sum += coefficients_[i] * work[i];
  return sum;
}

// Least squares of the relative residuals, so that a microsecond counts as much in a short kernel as a
// millisecond in a long one.
void Surface::fit_trend(std::span<const Point> points) {
  NonnegativeFit fit;
  for (const Point& point : points)
    fit.add(op_->work(point.shape, element_bytes_), point.seconds, 1 / (point.seconds * point.seconds));
  coefficients_ = fit.solve();
}

void Surface::krige(std::span<const Point> points) {
  const std::size_t count = points.size();
  Factor factor(count);
  weights_.resize(count);
  for (std::size_t p = 0; p < count; ++p) {
    for (std::size_t q = 0; q <= p; ++q) {
      double distance = 0;
      for (std::size_t d = 0; d < dimensions_; ++d) distance += std::abs(position(p)[d] - position(q)[d]);
      factor.row(p)[q] = covariance(distance).whole;
    }
    weights_[p] = std::log(points[p].seconds / trend(points[p].shape));
  }
  factor.decompose();
  factor.solve(weights_);

  // What kriging would say of point p without it is wrong by its weight over the inverse's diagonal.
  squared_errors_ = factor.inverse_diagonal();
  for (std::size_t p = 0; p < count; ++p) {
    const double error = std::expm1(-weights_[p] / squared_errors_[p]);
    squared_errors_[p] = error * error;
  }
}

std::vector<bool> interior(std::span<const Point> points) {
  std::vector<bool> out(points.size(), false);
  for (std::size_t p = 0; p < points.size(); ++p) {
    std::array<bool, kMaxAxes> below{}, above{};
    for (const Point& other : points) {
      std::size_t differing = 0, which = 0;
      for (std::size_t axis = 0; axis < kMaxAxes && differing < 2; ++axis) {
        if (other.shape[axis] == points[p].shape[axis]) continue;
        ++differing;
        which = axis;
      }
      if (differing == 1) (other.shape[which] < points[p].shape[which] ? below : above)[which] = true;
    }
    for (std::size_t axis = 0; axis < kMaxAxes; ++axis) out[p] = out[p] || (below[axis] && above[axis]);
  }
  return out;
}

Prediction Surface::predict(const Shape& shape) const noexcept {
  // Beyond an end the correction stays what it is at the end: the efficiency achieved there.
  double beyond = 0;
  std::array<double, kMaxAxes> at{};
  for (std::size_t axis = 0, d = 0; axis < op_->axes.size(); ++axis) {
    const double wanted = std::log2(shape[axis]);
    const double inside = std::clamp(wanted, low_[axis], high_[axis]);
    beyond += std::abs(wanted - inside);
    if (d < dimensions_ && axis_[d] == axis) at[d++] = inside;
  }
  double correction = 0, error = 0, total = 0;
  for (std::size_t p = 0; p < weights_.size(); ++p) {
    double distance = 0;
    for (std::size_t d = 0; d < dimensions_; ++d) distance += std::abs(position(p)[d] - at[d]);
    const auto [slow, whole] = covariance(distance);
    correction += weights_[p] * whole;
    const double near = slow * slow;
    error += near * squared_errors_[p];
    total += near;
  }
  // Root mean square of the left-out errors nearby, times 1.645 for nine in ten. They are those of points
  // about an octave from their neighbours; further outside the error grows with the distance.
  constexpr double kNineInTen = 1.645;
  const double bound = std::max(kRepeatability, kNineInTen * std::sqrt(error / total)) * (1 + beyond);
  return {trend(shape) * std::exp(correction), bound, beyond};
}

}  // namespace tessera::kernel_table
