#include "kernel_table_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>

#include "tessera/core/base/text.h"

namespace tessera::kernel_table {

namespace {

constexpr std::string_view kHeader = "op,device,dtype,shape,latency_us,source";
constexpr std::size_t kColumns = 6;
// Preparing a group takes the cube of its size: at this one, about a second.
constexpr std::size_t kMostShapes = 1000;

std::string_view cut(std::string_view& rest, char separator) noexcept {
  const std::size_t end = rest.find(separator);
  const std::string_view piece = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return piece;
}

class Reader {
 public:
  Reader(std::string_view csv, const std::string& file) : rest_(csv), file_(file) {}

  Result<Rows> read() {
    if (next_line() != kHeader)
      return error("", "the first line is not the header of a kernel table",
                   fmt::format("Expected {}", kHeader));
    out_.rows.reserve(rest_.size() / 100);
    while (!rest_.empty())
      if (const std::string_view line = next_line(); !line.empty()) TESSERA_CHECK(add(line));
    if (out_.rows.empty()) return error("", "the table holds no row");
    merge_repeats();
    return std::move(out_);
  }

 private:
  std::string_view next_line() noexcept {
    ++line_;
    std::string_view line = cut(rest_, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

  [[nodiscard]] std::unexpected<Error> error(std::string key, std::string message,
                                             std::string hint = {}) const {
    return std::unexpected(Error{.file = file_,
                                 .line = line_,
                                 .key = std::move(key),
                                 .message = std::move(message),
                                 .hint = std::move(hint)});
  }

  Status add(std::string_view line) {
    std::array<std::string_view, kColumns> cells;
    const auto separators = static_cast<std::size_t>(std::ranges::count(line, ','));
    if (separators != kColumns - 1)
      return error("", fmt::format("{} columns, expected {} ({})", separators + 1, kColumns, kHeader));
    for (std::string_view& cell : cells) cell = cut(line, ',');
    const auto& [op_name, device, dtype, shape_text, latency_text, source] = cells;

    const auto op = find_op(op_name);
    if (!op) {
      std::vector<std::string_view> known;
      for (const Op& candidate : ops()) known.push_back(candidate.name);
      const auto guess = nearest(op_name, known);
      return error("op", fmt::format("unknown op {}", op_name),
                   guess ? fmt::format("Did you mean {}?", *guess) : "data/kernels/README.md lists the ops.");
    }
    if (device.empty() || dtype.empty()) return error(device.empty() ? "device" : "dtype", "is empty");
    const auto latency = to_number(latency_text);
    if (!latency || *latency <= 0)
      return error("latency_us", fmt::format("'{}' is not a positive number of microseconds", latency_text));

    Point point{.shape = {}, .seconds = *latency * 1e-6};
    std::string_view variant;
    TESSERA_CHECK(read_shape(ops()[*op], shape_text, point.shape, variant));
    const std::uint32_t group = group_of(ops()[*op], device, dtype, source, variant);
    auto& points = out_.groups[group].points;
    if (points.size() == kMostShapes)
      return error("",
                   fmt::format("more than {} rows of {} on {} in {} from {}", kMostShapes, op_name, device,
                               dtype, source),
                   "Keep a coarser grid of shapes.");
    out_.rows.push_back({group, static_cast<std::uint32_t>(points.size()), point.seconds});
    points.push_back(point);
    return {};
  }

  Status read_shape(const Op& op, std::string_view text, Shape& shape, std::string_view& variant) const {
    shape.fill(1);
    unsigned seen = 0;
    while (!text.empty()) {
      std::string_view value = cut(text, ';');
      const std::string_view key = cut(value, '=');
      if (key == kVariantKey) {
        variant = value;
        continue;
      }
      const auto found = std::ranges::find(op.axes, key);
      if (found == op.axes.end()) {
        if (is_comment_key(key)) continue;
        const std::vector<std::string> names(op.axes.begin(), op.axes.end());
        return error("shape",
                     fmt::format("{} has no axis '{}'; its axes are {}", op.name, key, join_words(names)));
      }
      const auto axis = static_cast<std::size_t>(found - op.axes.begin());
      const auto number = to_number(value);
      if (!number || *number <= 0)
        return error("shape", fmt::format("{} is '{}', expected a positive number", key, value));
      if ((seen >> axis & 1U) != 0) return error("shape", fmt::format("{} is given twice", key));
      shape[axis] = *number;
      seen |= 1U << axis;
    }
    for (std::size_t axis = 0; axis < op.axes.size(); ++axis)
      if ((seen >> axis & 1U) == 0)
        return error("shape", fmt::format("{} lacks axis {}", op.name, op.axes[axis]));
    return {};
  }

  std::uint32_t group_of(const Op& op, std::string_view device, std::string_view dtype,
                         std::string_view source, std::string_view variant) {
    const auto same = [&](const Group& group) {
      return group.op == &op && group.device == device && group.dtype == dtype && group.source == source &&
             group.variant == variant;
    };
    // Rows of a group mostly follow each other.
    if (last_ < out_.groups.size() && same(out_.groups[last_])) return last_;
    const auto found = std::ranges::find_if(out_.groups, same);
    last_ = static_cast<std::uint32_t>(found - out_.groups.begin());
    if (found == out_.groups.end()) out_.groups.push_back({&op, device, dtype, source, variant, {}});
    return last_;
  }

  // Several rows may hold the same shape: measured twice, or once per hidden size, which is no axis of a
  // mixer. They are one point, their geometric mean.
  void merge_repeats() {
    std::vector<std::vector<std::uint32_t>> place(out_.groups.size());
    std::vector<std::uint32_t> order;
    for (std::size_t g = 0; g < out_.groups.size(); ++g) {
      std::vector<Point>& points = out_.groups[g].points;
      order.resize(points.size());
      std::iota(order.begin(), order.end(), 0U);
      std::ranges::sort(order, [&](std::uint32_t i, std::uint32_t j) {
        return std::tie(points[i].shape, i) < std::tie(points[j].shape, j);
      });
      place[g].resize(points.size());
      std::vector<Point> merged;
      for (std::size_t first = 0; first < order.size();) {
        double sum = 0;
        std::size_t next = first;
        for (; next < order.size() && points[order[next]].shape == points[order[first]].shape; ++next) {
          sum += std::log(points[order[next]].seconds);
          place[g][order[next]] = static_cast<std::uint32_t>(merged.size());
        }
        const auto repeats = static_cast<double>(next - first);
        const double mean = repeats == 1 ? points[order[first]].seconds : std::exp(sum / repeats);
        merged.push_back({points[order[first]].shape, mean});
        first = next;
      }
      points = std::move(merged);
    }
    for (Row& row : out_.rows) row.point = place[row.group][row.point];
  }

  std::string_view rest_;
  const std::string& file_;
  int line_ = 0;
  std::uint32_t last_ = 0;
  Rows out_;
};

}  // namespace

Result<Rows> read_rows(std::string_view csv, const std::string& file) {
  return Reader(csv, file).read();
}

}  // namespace tessera::kernel_table
