#include "tessera/core/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "tessera/core/base/hash.h"

namespace tessera {

namespace {

// What came from a file is shown, but not at any length, and it does not steer the terminal.
std::string printable(std::string_view text) {
  constexpr std::size_t longest = 1000;
  std::string out(text.substr(0, longest));
  // Do not cut a UTF-8 character in two.
  if (text.size() > longest) {
    while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0U) == 0x80U) out.pop_back();
    if (!out.empty() && static_cast<unsigned char>(out.back()) >= 0xC0U) out.pop_back();
    out += "…";
  }
  for (char& c : out)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f) c = '?';
  return out;
}

}  // namespace

std::string Error::text() const {
  std::string out;
  if (!file.empty() || line < 0) {
    // A value that a flag gave has no line in the file.
    out += line < 0 ? std::string("command line") : printable(file);
    if (line > 0) out += fmt::format(":{}", line);
    out += ": ";
  }
  if (!key.empty()) out += printable(key) + ": ";
  out += printable(message);
  const std::string shown_hint = printable(hint);
  std::string_view rest = shown_hint;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    out += "\n  ";
    out += rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  }
  return out;
}

std::unexpected<Error> bad_input(std::string message, std::string hint) {
  return std::unexpected(
      Error{.kind = ErrorKind::bad_input, .message = std::move(message), .hint = std::move(hint)});
}
std::unexpected<Error> infeasible(std::string message, std::string hint) {
  return std::unexpected(
      Error{.kind = ErrorKind::infeasible, .message = std::move(message), .hint = std::move(hint)});
}

std::string with_thousands(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  const std::size_t start = value < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > start + 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

std::string join_words(std::span<const std::string> words, std::string_view last) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? fmt::format(" {} ", last) : std::string(", ");
    out += words[i];
  }
  return out;
}

std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::optional<std::string_view> best;
  std::size_t best_distance = std::clamp<std::size_t>(word.size() / 3, 1, 8) + 1;
  std::vector<std::size_t> row;
  for (const std::string_view candidate : candidates) {
    // The difference in length bounds the distance from below, and keeps a hostile word cheap.
    if (std::max(word.size(), candidate.size()) - std::min(word.size(), candidate.size()) >= best_distance)
      continue;
    row.resize(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j < row.size(); ++j) {
        const std::size_t above = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1)});
        diagonal = above;
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (true) {
    const auto end = text.find(separator);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

std::string_view trim(std::string_view text) noexcept {
  constexpr std::string_view blanks = " \t\r\n";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::optional<std::int64_t> to_integer(std::string_view text) noexcept {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> to_number(std::string_view text) noexcept {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::string exact(double value) {
  return fmt::format("{}", value);
}

std::string fingerprint(std::string_view bytes) {
  return fmt::format("{:016x}", fnv1a(bytes));
}

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  std::error_code failure;
  const auto kind = std::filesystem::status(path, failure).type();
  if (kind == std::filesystem::file_type::not_found) return bad_input(fmt::format("{}: no such file", path));
  if (kind == std::filesystem::file_type::directory)
    return bad_input(fmt::format("{}: expected a file, found a directory", path));
  std::ifstream in(path, std::ios::binary);
  if (!in) return bad_input(fmt::format("{}: cannot be opened for reading", path));
  std::string content;
  // Read in pieces, so that a pipe or an endless device stops at the limit.
  for (std::string piece(std::size_t{1} << 16, '\0'); in;) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    content.append(piece, 0, static_cast<std::size_t>(in.gcount()));
    if (content.size() > limit) return bad_input(fmt::format("{}: larger than {} MiB", path, limit >> 20));
  }
  if (in.bad()) return bad_input(fmt::format("{}: reading failed", path));
  return content;
}

namespace {

// Where the bytes go: through links, and only to a regular file.
Result<std::string> target_of(const std::string& path) {
  namespace fs = std::filesystem;
  if (path.empty()) return bad_input("the name of a file to write is empty");
  std::error_code failure;
  fs::path target = path;
  if (fs::is_symlink(path, failure)) {
    target = fs::weakly_canonical(path, failure);
    if (failure) return bad_input(fmt::format("{}: cannot be followed: {}", path, failure.message()));
  }
  const fs::file_type kind = fs::status(target, failure).type();
  if (kind == fs::file_type::directory)
    return bad_input(fmt::format("{}: expected a file, found a directory", path));
  if (kind != fs::file_type::regular && kind != fs::file_type::not_found)
    return bad_input(fmt::format("{}: is no regular file", path),
                     "Give the name of a file, new or to be replaced.");
  return target.string();
}

Status write_part(const std::string& part, const std::string& path, std::string_view content) {
  std::ofstream out(part, std::ios::binary | std::ios::trunc);
  if (!out) return bad_input(fmt::format("{}: cannot be opened for writing", path));
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out) return bad_input(fmt::format("{}: writing failed; is the disk full?", path));
  return {};
}

}  // namespace

Status write_files(std::span<const FileToWrite> files) {
  std::vector<std::string> targets;
  std::vector<std::string> parts;
  const auto fail = [&](Error error) {
    for (const std::string& part : parts) std::remove(part.c_str());
    return std::unexpected(std::move(error));
  };
  for (const FileToWrite& file : files) {
    auto target = target_of(file.path);
    if (!target) return fail(target.error());
    targets.push_back(*target);
    parts.push_back(*target + ".part");
    if (auto written = write_part(parts.back(), file.path, file.content); !written)
      return fail(written.error());
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::error_code failure;
    std::filesystem::rename(parts[i], targets[i], failure);
    if (failure)
      return fail(
          Error{.message = fmt::format("{}: cannot be replaced: {}", files[i].path, failure.message())});
  }
  return {};
}

}  // namespace tessera
