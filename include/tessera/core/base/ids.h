// Indices with their meaning in the type, so that a stage is never taken for a rank.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace tessera {

template <class Tag>
class Id {
 public:
  constexpr Id() noexcept = default;
  constexpr explicit Id(std::int64_t value) noexcept : value_(static_cast<std::int32_t>(value)) {}
  [[nodiscard]] constexpr std::int32_t value() const noexcept { return value_; }
  /// For indexing an array.
  [[nodiscard]] constexpr std::size_t index() const noexcept { return static_cast<std::size_t>(value_); }
  friend constexpr auto operator<=>(Id, Id) noexcept = default;

 private:
  std::int32_t value_ = 0;
};

using RankId = Id<struct RankTag>;    ///< a pipeline rank, 0 … pp−1
using StageId = Id<struct StageTag>;  ///< a virtual stage (chunk of the model), 0 … pp·vp−1, in model order
using MicrobatchId = Id<struct MicrobatchTag>;  ///< 0 … microbatches−1
using BlockId = Id<struct BlockTag>;            ///< index into ModelSpec::blocks
using TaskId = Id<struct TaskTag>;              ///< index into a TaskGraph's tasks

}  // namespace tessera

template <class Tag>
struct std::hash<tessera::Id<Tag>> {
  std::size_t operator()(tessera::Id<Tag> id) const noexcept { return std::hash<std::int32_t>{}(id.value()); }
};
