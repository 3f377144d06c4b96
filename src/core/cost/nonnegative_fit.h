// Weighted least squares with non-negative coefficients, for a handful of columns.
#pragma once

#include <array>
#include <cstddef>

namespace tessera {

/// Gathers Σ w·x·xᵀ and Σ w·x·y row by row, then solves. Exact: with at most four columns every choice of
/// non-zero coefficients is tried, and the best one that needs no negative coefficient is the optimum.
class NonnegativeFit {
 public:
  static constexpr std::size_t kColumns = 4;
  using Row = std::array<double, kColumns>;

  void add(const Row& x, double y, double weight) noexcept;
  /// Columns that others explain get 0, earlier columns winning. All zero when there is no row.
  [[nodiscard]] Row solve() const noexcept;

 private:
  std::array<Row, kColumns> normal_{};
  Row right_{};
};

}  // namespace tessera
