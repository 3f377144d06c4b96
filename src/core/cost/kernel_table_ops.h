// What the rows of the kernel table are: the axes of each op's shape, and the work each shape means.
//
// The work terms are what makes interpolation physical: a kernel's time is close to a sum of a launch time,
// operations over a rate and bytes over a bandwidth. The rates are fitted per table; only the terms are here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tessera::kernel_table {

inline constexpr std::size_t kMaxAxes = 6;
inline constexpr std::size_t kWorkTerms = 4;

using Shape = std::array<double, kMaxAxes>;        ///< in the order of Op::axes; unused places are 1
using WorkTerms = std::array<double, kWorkTerms>;  ///< the first is the launch, 1; unused places are 0

/// Which rows say something about training.
enum class Use : std::uint8_t { training, serving };

struct Op {
  std::string_view name;
  std::span<const std::string_view> axes;
  std::size_t tokens_axis;  ///< index of the axis that grows with tokens
  Use use;
  /// `element_bytes` are those of a matrix operand.
  WorkTerms (*work)(const Shape& shape, double element_bytes) noexcept;
};

[[nodiscard]] std::span<const Op> ops() noexcept;
[[nodiscard]] std::optional<std::uint16_t> find_op(std::string_view name) noexcept;

/// Keys of a shape that do not enter the kernel; a row may hold them, they are not read.
[[nodiscard]] bool is_comment_key(std::string_view key) noexcept;
/// The key whose values name different experiments, never interpolated between: the load distribution.
inline constexpr std::string_view kVariantKey = "dist";

/// Tokens a shape stands for. A collective's elements count as activations of the table's smallest hidden
/// size.
[[nodiscard]] double tokens_of(const Op& op, const Shape& shape) noexcept;

/// Bytes of a matrix operand of the table's dtype names.
[[nodiscard]] double element_bytes_of(std::string_view dtype) noexcept;

}  // namespace tessera::kernel_table
