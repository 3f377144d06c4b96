// Linear programmes and mixed-integer linear programmes, solved by HiGHS.
//
//   MipModel model;                                                    // always a minimum
//   const MipColumn x = model.add_column({.upper = 10, .cost = -3, .integral = true});
//   const MipColumn y = model.add_column({.upper = 1.5, .cost = -2});
//   model.add_row({.upper = 12}, {{x, 2}, {y, 3}});                    // 2x + 3y ≤ 12
//   MipResult result = solve(model);
//   if (result.reason == MipReason::optimal) use(result.value(x));
//
// min Σ cost·x subject to lower ≤ x ≤ upper, row lower ≤ Σ coefficient·x ≤ row upper, some x whole numbers.
// Without an integral column it is solved as an LP. To maximise, negate the costs.
//
// HiGHS works with absolute tolerances (MipOptions::tolerance): choose units so that values are near 1. A
// row may be off by the tolerance, and a 0-1 column that switches a term of size M by M times it.
//
// Its word is not quite a proof: on well-scaled models of a hundred columns tied together by big-M rows,
// HiGHS 1.15.1 called a solution up to 1.3 % too long optimal in about one solve in a thousand (5 of 5,600,
// at tolerances of 1e-9 to 1e-6, with presolve and without). Where that matters, solve again from the result
// with another seed.
//
// One model may be solved from several threads at once, and several models too: solve() only reads its
// arguments. Nothing is printed. Without a time limit the result is the same in every run on one machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/base/ids.h"
#include "tessera/core/base/units.h"

namespace tessera {

using MipColumn = Id<struct MipColumnTag>;  ///< a variable; counts from 0 in the order added
using MipRow = Id<struct MipRowTag>;        ///< a constraint; counts from 0 in the order added

/// No bound. A bound of 1e20 and more counts as none too.
inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

struct MipTerm {
  MipColumn column;
  double coefficient = 0;
};

class MipModel {
 public:
  struct Column {
    double lower = 0;
    double upper = kUnbounded;
    double cost = 0;
    bool integral = false;
  };
  /// Equal bounds make an equation.
  struct Bounds {
    double lower = -kUnbounded;
    double upper = kUnbounded;
  };

  MipColumn add_column(const Column& column);
  /// A whole number, 0 or 1.
  MipColumn add_binary(double cost = 0) { return add_column({.upper = 1, .cost = cost, .integral = true}); }
  /// A column named twice counts with the sum; a coefficient of 0 is left out.
  MipRow add_row(Bounds bounds, std::span<const MipTerm> terms);
  MipRow add_row(Bounds bounds, std::initializer_list<MipTerm> terms) {
    return add_row(bounds, std::span(terms.begin(), terms.size()));
  }
  /// Narrows or widens a column that is there already.
  void set_bounds(MipColumn column, Bounds bounds);

  /// Room for so many, for models whose size is known.
  void reserve(std::size_t columns, std::size_t rows, std::size_t entries);

  [[nodiscard]] std::size_t columns() const noexcept { return cost_.size(); }
  [[nodiscard]] std::size_t rows() const noexcept { return row_lower_.size(); }
  [[nodiscard]] std::size_t entries() const noexcept { return entry_.size(); }
  [[nodiscard]] std::size_t integral_columns() const noexcept { return integral_count_; }

  /// The matrix as a solver takes it: row r has the entries [row_start[r], row_start[r + 1]).
  struct View {
    std::span<const double> cost, lower, upper;
    std::span<const std::int32_t> integral;  ///< per column 0 or 1
    std::span<const double> row_lower, row_upper;
    std::span<const std::int32_t> row_start;  ///< rows + 1
    std::span<const std::int32_t> column;     ///< per entry
    std::span<const double> coefficient;      ///< per entry
  };
  [[nodiscard]] View view() const noexcept;

 private:
  std::vector<double> cost_, lower_, upper_, row_lower_, row_upper_, coefficient_;
  std::vector<std::int32_t> integral_, row_start_{0}, entry_;
  std::vector<std::int32_t> place_;  // per column: its entry in the row being added, if at or after its start
  std::size_t integral_count_ = 0;
};

struct MipOptions {
  /// Wall clock; with it a result may depend on the machine.
  std::optional<Seconds> time_limit;
  /// Nodes of the branch-and-bound tree; the root is the first. No matter for an LP.
  std::optional<std::int64_t> node_limit;
  /// Stop once (objective − bound) / |objective| is at most this, or objective − bound at most absolute_gap.
  double relative_gap = 0;
  double absolute_gap = 1e-9;
  /// How far a row or a bound may be off, and an integral value from a whole number: 1e-10 … 1e-2.
  double tolerance = 1e-6;
  std::int32_t threads = 1;
  /// Another seed takes another way to the same optimum.
  std::int32_t seed = 0;
  /// A value per column, or empty. Their integral part is what counts: the rest is completed by an LP when it
  /// does not fit. Values that lead nowhere are ignored. No matter for an LP.
  std::span<const double> warm_start;
};

enum class MipReason : std::uint8_t {
  optimal,     ///< within the gap asked for
  feasible,    ///< stopped at a limit; see bound and gap
  limit,       ///< stopped at a limit, before any solution was found
  infeasible,  ///< no solution
  unbounded,   ///< the objective falls without end
  failed,      ///< the model is malformed, or HiGHS gave up; see error
};
[[nodiscard]] std::string_view name(MipReason reason) noexcept;

struct MipResult {
  MipReason reason = MipReason::failed;
  std::vector<double> values;     ///< per column when optimal or feasible, else empty; integral ones whole
  double objective = kUnbounded;  ///< Σ cost·values
  double bound = -kUnbounded;     ///< no solution is below it, up to the tolerance
  double gap = kUnbounded;        ///< (objective − bound) / |objective|; 0 when both are 0
  std::int64_t nodes = 0;         ///< of the branch-and-bound tree; 0 for an LP
  std::int64_t iterations = 0;    ///< of the simplex algorithm
  Seconds solve_time;             ///< wall clock
  std::string error;              ///< when failed: which number of the model, or HiGHS' own words

  [[nodiscard]] bool solved() const noexcept {
    return reason == MipReason::optimal || reason == MipReason::feasible;
  }
  [[nodiscard]] double value(MipColumn column) const { return values[column.index()]; }
};
[[nodiscard]] MipResult solve(const MipModel& model, const MipOptions& options = {});

}  // namespace tessera
