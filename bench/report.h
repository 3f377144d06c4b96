// What every benchmark prints: a table people read, and one JSON object on the last line.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::bench {

/// Columns as wide as their widest cell; the first `left` of them left-aligned.
class Table {
 public:
  explicit Table(std::vector<std::string> header, std::size_t left = 1) : left_(left) {
    add(std::move(header));
  }
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  void print() const {
    std::vector<std::size_t> width;
    for (const auto& row : rows_) {
      width.resize(std::max(width.size(), row.size()));
      for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
    }
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      std::string line;
      for (std::size_t i = 0; i < rows_[r].size(); ++i)
        line += i < left_ ? fmt::format("{:<{}}  ", rows_[r][i], width[i])
                          : fmt::format("{:>{}}  ", rows_[r][i], width[i]);
      line.erase(line.find_last_not_of(' ') + 1);
      fmt::print("{}\n", line);
      if (r == 0) fmt::print("{}\n", std::string(line.size(), '-'));
    }
  }

 private:
  std::size_t left_;
  std::vector<std::vector<std::string>> rows_;
};

/// One line of JSON with numbers and texts, in the order added. Texts hold no quotes.
class Json {
 public:
  Json& add(std::string_view key, double value) { return raw(key, fmt::format("{:.6g}", value)); }
  Json& add(std::string_view key, std::size_t value) { return raw(key, fmt::format("{}", value)); }
  Json& add(std::string_view key, std::string_view text) { return raw(key, fmt::format("\"{}\"", text)); }
  Json& add_null(std::string_view key) { return raw(key, "null"); }
  void print() const { fmt::print("{{{}}}\n", body_); }

 private:
  Json& raw(std::string_view key, std::string_view value) {
    body_ += fmt::format("{}\"{}\": {}", body_.empty() ? "" : ", ", key, value);
    return *this;
  }
  std::string body_;
};

/// The smallest value that at least `share` of the values do not exceed; 0 without values.
inline double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
}

inline std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

/// A benchmark checks its answers before it reports: one failure ends it.
inline void verify(bool holds, std::string_view what) {
  if (holds) return;
  fmt::print(stderr, "verification failed: {}\n", what);
  std::exit(1);
}

}  // namespace tessera::bench
