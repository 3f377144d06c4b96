// The CSV of measured kernels, read into groups of equal op, device, dtype, source and variant.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernel_table_ops.h"
#include "kernel_table_surface.h"
#include "tessera/core/base/result.h"

namespace tessera::kernel_table {

struct Row {
  std::uint32_t group;
  std::uint32_t point;  ///< in Group::points
  double seconds;
};

/// Views point into the CSV text.
struct Group {
  const Op* op;
  std::string_view device, dtype, source, variant;
  std::vector<Point> points;  ///< different shapes; seconds = geometric mean over repeats
};

struct Rows {
  std::vector<Row> rows;
  std::vector<Group> groups;
};

[[nodiscard]] Result<Rows> read_rows(std::string_view csv, const std::string& file);

}  // namespace tessera::kernel_table
