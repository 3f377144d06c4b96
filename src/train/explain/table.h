// Right-aligned columns under a first, left-aligned one; a last column of words may be left-aligned too.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::train {

/// Characters as a terminal counts them: a UTF-8 continuation byte takes no column.
inline std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

class Table {
 public:
  /// `words` is the column that holds text rather than figures.
  explicit Table(std::size_t words = static_cast<std::size_t>(-1)) : words_(words) {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] std::string text(std::string_view indent = "") const {
    std::vector<std::size_t> width;
    for (const auto& row : rows_) {
      width.resize(std::max(width.size(), row.size()));
      for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], display_width(row[c]));
    }
    std::string out;
    for (const auto& row : rows_) {
      std::string line(indent);
      for (std::size_t c = 0; c < row.size(); ++c) {
        const std::string padding(width[c] - display_width(row[c]), ' ');
        if (c > 0) line += "   ";
        line += c == 0 || c == words_ ? row[c] + padding : padding + row[c];
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + '\n';
    }
    return out;
  }

 private:
  std::size_t words_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tessera::train
