#include <cassert>

#include "tessera/core/solver/mip.h"

namespace tessera {

MipColumn MipModel::add_column(const Column& column) {
  cost_.push_back(column.cost);
  lower_.push_back(column.lower);
  upper_.push_back(column.upper);
  integral_.push_back(column.integral ? 1 : 0);
  integral_count_ += column.integral ? 1 : 0;
  place_.push_back(-1);
  return MipColumn(static_cast<std::int64_t>(cost_.size()) - 1);
}

MipRow MipModel::add_row(Bounds bounds, std::span<const MipTerm> terms) {
  const std::int32_t begin = row_start_.back();
  for (const MipTerm& term : terms) {
    assert(term.column.index() < columns());
    if (term.coefficient == 0) continue;
    std::int32_t& place = place_[term.column.index()];
    if (place >= begin) {
      coefficient_[static_cast<std::size_t>(place)] += term.coefficient;
      continue;
    }
    place = static_cast<std::int32_t>(entry_.size());
    entry_.push_back(term.column.value());
    coefficient_.push_back(term.coefficient);
  }
  row_start_.push_back(static_cast<std::int32_t>(entry_.size()));
  row_lower_.push_back(bounds.lower);
  row_upper_.push_back(bounds.upper);
  return MipRow(static_cast<std::int64_t>(row_lower_.size()) - 1);
}

void MipModel::set_bounds(MipColumn column, Bounds bounds) {
  lower_[column.index()] = bounds.lower;
  upper_[column.index()] = bounds.upper;
}

void MipModel::reserve(std::size_t columns, std::size_t rows, std::size_t entries) {
  for (auto* per_column : {&cost_, &lower_, &upper_}) per_column->reserve(columns);
  integral_.reserve(columns);
  place_.reserve(columns);
  row_lower_.reserve(rows);
  row_upper_.reserve(rows);
  row_start_.reserve(rows + 1);
  entry_.reserve(entries);
  coefficient_.reserve(entries);
}

MipModel::View MipModel::view() const noexcept {
  return {.cost = cost_,
          .lower = lower_,
          .upper = upper_,
          .integral = integral_,
          .row_lower = row_lower_,
          .row_upper = row_upper_,
          .row_start = row_start_,
          .column = entry_,
          .coefficient = coefficient_};
}

std::string_view name(MipReason reason) noexcept {
  switch (reason) {
    case MipReason::optimal:
      return "optimal";
    case MipReason::feasible:
      return "stopped at its limit";
    case MipReason::limit:
      return "stopped before any solution";
    case MipReason::infeasible:
      return "infeasible";
    case MipReason::unbounded:
      return "unbounded";
    case MipReason::failed:
      return "failed";
  }
  return "unknown";
}

}  // namespace tessera
