#include "nonnegative_fit.h"

#include <cmath>

namespace tessera {

void NonnegativeFit::add(const Row& x, double y, double weight) noexcept {
  for (std::size_t i = 0; i < kColumns; ++i) {
    for (std::size_t j = 0; j <= i; ++j) normal_[i][j] += weight * x[i] * x[j];
    right_[i] += weight * x[i] * y;
  }
}

NonnegativeFit::Row NonnegativeFit::solve() const noexcept {
  // Columns differ by many orders of magnitude; scaled to unit length, their Gram matrix is a correlation.
  Row scale{};
  for (std::size_t i = 0; i < kColumns; ++i) scale[i] = normal_[i][i] > 0 ? 1 / std::sqrt(normal_[i][i]) : 0;

  constexpr double kCollinear = 1e-10;  // of a column's squared length, left when the others are taken out
  Row best{};
  double best_gain = 0;
  for (unsigned chosen = 1; chosen < 1U << kColumns; ++chosen) {
    std::array<std::size_t, kColumns> column{};
    std::size_t count = 0;
    bool usable = true;
    for (std::size_t i = 0; i < kColumns; ++i) {
      if ((chosen >> i & 1U) == 0) continue;
      usable = usable && scale[i] > 0;
      column[count++] = i;
    }
    std::array<Row, kColumns> lower{};
    Row x{};
    for (std::size_t i = 0; i < count && usable; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        double sum = normal_[column[i]][column[j]] * scale[column[i]] * scale[column[j]];
        for (std::size_t k = 0; k < j; ++k) sum -= lower[i][k] * lower[j][k];
        if (i == j) {
          usable = sum > kCollinear;
          lower[i][i] = usable ? std::sqrt(sum) : 1;
        } else {
          lower[i][j] = sum / lower[j][j];
        }
      }
    }
    if (!usable) continue;
    double gain = 0;  // how much of Σ w·y² this choice explains
    for (std::size_t i = 0; i < count; ++i) {
      double sum = right_[column[i]] * scale[column[i]];
      for (std::size_t k = 0; k < i; ++k) sum -= lower[i][k] * x[k];
      x[i] = sum / lower[i][i];
      gain += x[i] * x[i];
    }
    for (std::size_t i = count; i-- > 0;) {
      for (std::size_t k = i + 1; k < count; ++k) x[i] -= lower[k][i] * x[k];
      x[i] /= lower[i][i];
      usable = usable && x[i] >= 0;
    }
    if (!usable || gain <= best_gain * (1 + 1e-12)) continue;
    best_gain = gain;
    best = {};
    for (std::size_t i = 0; i < count; ++i) best[column[i]] = x[i] * scale[column[i]];
  }
  return best;
}

}  // namespace tessera
