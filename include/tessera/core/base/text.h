// Small helpers for text that people read and write.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/base/result.h"

namespace tessera {

/// 671026419200 → "671,026,419,200".
[[nodiscard]] std::string with_thousands(std::int64_t value);
/// "a, b and c".
[[nodiscard]] std::string join_words(std::span<const std::string> words, std::string_view last = "and");
/// The candidate with the smallest edit distance, when it is near enough to be a slip of the pen.
[[nodiscard]] std::optional<std::string_view> nearest(std::string_view word,
                                                      std::span<const std::string_view> candidates);
/// Splits at every `separator`; keeps empty pieces.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);
[[nodiscard]] std::string_view trim(std::string_view text) noexcept;
/// The whole text as an integer or a finite number, without regard to locale; nullopt otherwise.
[[nodiscard]] std::optional<std::int64_t> to_integer(std::string_view text) noexcept;
[[nodiscard]] std::optional<double> to_number(std::string_view text) noexcept;
/// The shortest decimal that reads back as exactly the same double.
[[nodiscard]] std::string exact(double value);

/// The whole file as bytes; at most `limit` of them.
[[nodiscard]] Result<std::string> read_file(const std::string& path,
                                            std::size_t limit = std::size_t{64} << 20);
struct FileToWrite {
  std::string path;
  std::string_view content;
};
/// Writes each to a temporary beside it, then renames: all are written or none, and a reader sees the old
/// file or the new one, never half. A link's target is replaced, not the link. A directory or a device is
/// refused.
[[nodiscard]] Status write_files(std::span<const FileToWrite> files);

}  // namespace tessera
