#include "tessera/core/base/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>
#include <utility>

#include "document_values.h"
#include "tessera/core/base/text.h"

namespace tessera {

namespace detail {

// The YAML 1.2 core schema for plain scalars; also what JSON numbers come out as.
void classify_plain(Cursor::Values::Value& value) {
  const std::string& text = value.text;
  ValueKind& kind = value.kind;
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    kind = ValueKind::null;
    return;
  }
  if (text == "true" || text == "True" || text == "TRUE" || text == "false" || text == "False" ||
      text == "FALSE") {
    kind = ValueKind::boolean;
    value.truth = text[0] == 't' || text[0] == 'T';
    return;
  }
  const std::string_view unsigned_text =
      text[0] == '-' || text[0] == '+' ? std::string_view(text).substr(1) : std::string_view(text);
  if (unsigned_text == ".inf" || unsigned_text == "Infinity") {
    kind = ValueKind::real;
    value.real =
        text[0] == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    return;
  }
  if (text == ".nan" || text == "NaN") {
    kind = ValueKind::real;
    value.real = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  if (unsigned_text.empty() ||
      !((unsigned_text[0] >= '0' && unsigned_text[0] <= '9') || unsigned_text[0] == '.')) {
    kind = ValueKind::string;
    return;
  }
  // A plus sign is legal YAML, and std::from_chars does not take it.
  const std::string_view number = text[0] == '+' ? unsigned_text : std::string_view(text);
  if (const auto whole = to_integer(number)) {
    kind = ValueKind::integer;
    value.integer = *whole;
    value.real = static_cast<double>(*whole);
    return;
  }
  if (const auto real = to_number(number)) {
    kind = ValueKind::real;
    value.real = *real;
    return;
  }
  kind = ValueKind::string;
}

Error error_at(const std::string& file, int line, std::string key, std::string message, std::string hint) {
  return Error{.kind = ErrorKind::bad_input,
               .file = file,
               .line = line,
               .key = std::move(key),
               .message = std::move(message),
               .hint = std::move(hint)};
}

Error too_many_values(const std::string& file, int line, const Document::Limits& limits) {
  return error_at(file, line, "", fmt::format("the file holds more than {} values", limits.values));
}

Error too_deep(const std::string& file, int line, const Document::Limits& limits) {
  return error_at(file, line, "", fmt::format("values are nested deeper than {} levels", limits.depth));
}

}  // namespace detail

std::string_view describe(ValueKind kind) noexcept {
  switch (kind) {
    case ValueKind::null:
      return "null";
    case ValueKind::boolean:
      return "a boolean";
    case ValueKind::integer:
      return "an integer";
    case ValueKind::real:
      return "a number";
    case ValueKind::string:
      return "a string";
    case ValueKind::list:
      return "a list";
    case ValueKind::map:
      return "a map";
  }
  return "a value";
}

namespace {

// What a flag gave has no place in the file.
void mark_as_given(detail::Tree& tree) {
  tree.value.line = -1;
  tree.value.column = 0;
  for (detail::Tree& child : tree.children) mark_as_given(child);
}

// Children side by side, each knowing its parent.
void lay_out(detail::Tree&& tree, std::uint32_t index, std::vector<Cursor::Values::Value>& values) {
  const auto first = static_cast<std::uint32_t>(values.size());
  values[index].first_child = first;
  values[index].children = static_cast<std::uint32_t>(tree.children.size());
  for (detail::Tree& child : tree.children) {
    values.push_back(std::move(child.value));
    values.back().parent = index;
  }
  for (std::size_t i = 0; i < tree.children.size(); ++i)
    lay_out(std::move(tree.children[i]), first + static_cast<std::uint32_t>(i), values);
}

}  // namespace

Result<Document> Document::parse(std::string_view text, std::string file, DocumentFormat format,
                                 const Limits& limits) {
  if (text.size() > limits.bytes)
    return std::unexpected(
        detail::error_at(file, 0, "", fmt::format("the file is larger than {} MiB", limits.bytes >> 20)));
  TESSERA_TRY(detail::Tree tree, format == DocumentFormat::json
                                     ? detail::parse_json_tree(text, file, limits)
                                     : detail::parse_yaml_tree(text, file, limits));
  auto values = std::make_shared<Cursor::Values>();
  values->file = std::move(file);
  values->values.push_back(std::move(tree.value));
  lay_out(std::move(tree), 0, values->values);
  return Document(std::move(values));
}

Result<Document> Document::read(const std::string& path) {
  TESSERA_TRY(const std::string text, read_file(path));
  return parse(text, path, path.ends_with(".json") ? DocumentFormat::json : DocumentFormat::yaml);
}

Cursor Document::root() const noexcept {
  return {values_.get(), 0};
}

Result<Document> Document::with(std::string_view path, std::string_view text) const {
  auto copy = std::make_shared<Cursor::Values>(*values_);
  auto& values = copy->values;
  std::uint32_t at_index = 0;
  for (const std::string_view key : split(path, '.')) {
    if (key.empty()) return bad_input(fmt::format("\"{}\" is no key", path), "A key is like layout.pp.");
    if (values[at_index].kind == ValueKind::null) values[at_index].kind = ValueKind::map;
    if (values[at_index].kind != ValueKind::map)
      return bad_input(fmt::format("{}: cannot be set, {} is {}", path, values[at_index].key,
                                   describe(values[at_index].kind)));
    std::uint32_t child = values[at_index].first_child;
    const std::uint32_t end = child + values[at_index].children;
    while (child < end && values[child].key != key) ++child;
    if (child == end) {
      // Children lie side by side, so a map that gains one moves all of them to the end of the array.
      const auto first = static_cast<std::uint32_t>(values.size());
      const std::uint32_t old = values[at_index].first_child;
      for (std::uint32_t i = 0; i < values[at_index].children; ++i) {
        auto moved = values[old + i];
        for (std::uint32_t k = 0; k < moved.children; ++k) values[moved.first_child + k].parent = first + i;
        values.push_back(std::move(moved));
      }
      values.emplace_back();
      values.back().parent = at_index;
      values.back().key = std::string(key);
      values[at_index].first_child = first;
      child = first + values[at_index].children++;
    }
    at_index = child;
  }
  TESSERA_TRY(detail::Tree tree, detail::parse_yaml_tree(text, "command line", Limits{}));
  mark_as_given(tree);
  tree.value.key = std::move(values[at_index].key);
  tree.value.parent = values[at_index].parent;
  values[at_index] = std::move(tree.value);
  lay_out(std::move(tree), at_index, values);
  return Document(std::move(copy));
}

// ------------------------------------------------------------------------------------------- Cursor

ValueKind Cursor::kind() const noexcept {
  return values_->values[index_].kind;
}
bool Cursor::is_number() const noexcept {
  return kind() == ValueKind::integer || kind() == ValueKind::real;
}
int Cursor::line() const noexcept {
  return values_->values[index_].line;
}
int Cursor::column() const noexcept {
  return values_->values[index_].column;
}
const std::string& Cursor::file() const noexcept {
  return values_->file;
}
std::size_t Cursor::size() const noexcept {
  return values_->values[index_].children;
}

std::string Cursor::path() const {
  std::vector<std::uint32_t> chain;
  for (std::uint32_t i = index_; i != 0; i = values_->values[i].parent) chain.push_back(i);
  std::string out;
  for (const std::uint32_t i : chain | std::views::reverse) {
    const auto& value = values_->values[i];
    const auto& parent = values_->values[value.parent];
    if (parent.kind == ValueKind::list) {
      out += fmt::format("[{}]", i - parent.first_child);
    } else {
      if (!out.empty()) out += '.';
      out += value.key;
    }
  }
  return out;
}

Cursor Cursor::item(std::size_t index) const {
  return {values_, values_->values[index_].first_child + static_cast<std::uint32_t>(index)};
}
std::string_view Cursor::key(std::size_t index) const {
  return values_->values[values_->values[index_].first_child + index].key;
}
std::optional<Cursor> Cursor::find(std::string_view key) const {
  if (!is_map()) return std::nullopt;
  for (std::size_t i = 0; i < size(); ++i)
    if (this->key(i) == key) return item(i);
  return std::nullopt;
}
std::optional<Cursor> Cursor::present(std::string_view key) const {
  auto found = find(key);
  if (found && found->is_null()) return std::nullopt;
  return found;
}

std::unexpected<Error> Cursor::error(std::string message, std::string hint) const {
  return std::unexpected(detail::error_at(file(), line(), path(), std::move(message), std::move(hint)));
}

Result<std::int64_t> Cursor::integer(std::int64_t low, std::int64_t high) const {
  const auto& value = values_->values[index_];
  std::int64_t whole = value.integer;
  if (value.kind == ValueKind::real && std::isfinite(value.real) && value.real == std::floor(value.real) &&
      std::abs(value.real) < 9e15) {
    whole = static_cast<std::int64_t>(value.real);
  } else if (value.kind != ValueKind::integer) {
    return error(
        fmt::format("expected an integer, found {}", is_number() ? value.text : describe(value.kind)));
  }
  if (whole < low || whole > high)
    return error(low == high ? fmt::format("{} is not {}", whole, low)
                             : fmt::format("{} is outside {} … {}", whole, low, high));
  return whole;
}

Result<double> Cursor::number(double low, double high) const {
  const auto& value = values_->values[index_];
  if (!is_number()) return error(fmt::format("expected a number, found {}", describe(value.kind)));
  if (!std::isfinite(value.real)) return error(fmt::format("expected a finite number, found {}", value.text));
  if (value.real < low || value.real > high)
    return error(fmt::format("{} is outside {} … {}", value.text, low, high));
  return value.real;
}

Result<std::string> Cursor::string() const {
  if (kind() != ValueKind::string) return error(fmt::format("expected a string, found {}", describe(kind())));
  return values_->values[index_].text;
}

Result<bool> Cursor::boolean() const {
  if (kind() != ValueKind::boolean)
    return error(fmt::format("expected true or false, found {}", describe(kind())));
  return values_->values[index_].truth;
}

Result<std::string> Cursor::scalar_text() const {
  if (kind() != ValueKind::string && !is_number())
    return error(fmt::format("expected text or a number, found {}", describe(kind())));
  return values_->values[index_].text;
}

Result<Cursor> Cursor::required(std::string_view key) const {
  if (!is_map()) return error(fmt::format("expected a map with key {}, found {}", key, describe(kind())));
  auto found = find(key);
  if (!found) return error(fmt::format("key {} is missing", key));
  if (found->is_null()) return found->error("a value is needed here, found null");
  return *found;
}
Result<Cursor> Cursor::required_map(std::string_view key) const {
  TESSERA_TRY(Cursor found, required(key));
  if (!found.is_map()) return found.error(fmt::format("expected a map, found {}", describe(found.kind())));
  return found;
}
Result<Cursor> Cursor::required_list(std::string_view key) const {
  TESSERA_TRY(Cursor found, required(key));
  if (!found.is_list()) return found.error(fmt::format("expected a list, found {}", describe(found.kind())));
  return found;
}
Result<std::int64_t> Cursor::required_integer(std::string_view key, std::int64_t low,
                                              std::int64_t high) const {
  TESSERA_TRY(Cursor found, required(key));
  return found.integer(low, high);
}
Result<double> Cursor::required_number(std::string_view key, double low, double high) const {
  TESSERA_TRY(Cursor found, required(key));
  return found.number(low, high);
}
Result<std::string> Cursor::required_string(std::string_view key) const {
  TESSERA_TRY(Cursor found, required(key));
  return found.string();
}
Result<bool> Cursor::required_boolean(std::string_view key) const {
  TESSERA_TRY(Cursor found, required(key));
  return found.boolean();
}
Result<std::int64_t> Cursor::integer_or(std::string_view key, std::int64_t low, std::int64_t high,
                                        std::int64_t fallback) const {
  const auto found = present(key);
  return found ? found->integer(low, high) : Result<std::int64_t>(fallback);
}
Result<double> Cursor::number_or(std::string_view key, double low, double high, double fallback) const {
  const auto found = present(key);
  return found ? found->number(low, high) : Result<double>(fallback);
}
Result<std::string> Cursor::string_or(std::string_view key, std::string fallback) const {
  const auto found = present(key);
  return found ? found->string() : Result<std::string>(std::move(fallback));
}
Result<bool> Cursor::boolean_or(std::string_view key, bool fallback) const {
  const auto found = present(key);
  return found ? found->boolean() : Result<bool>(fallback);
}

Status Cursor::only_keys(std::initializer_list<std::string_view> keys) const {
  if (!is_map()) return error(fmt::format("expected a map, found {}", describe(kind())));
  for (std::size_t i = 0; i < size(); ++i) {
    if (std::ranges::find(keys, key(i)) != keys.end()) continue;
    const auto guess = nearest(key(i), {keys.begin(), keys.size()});
    std::vector<std::string> names(keys.begin(), keys.end());
    return item(i).error("unknown key", guess ? fmt::format("Did you mean {}?", *guess)
                                              : fmt::format("Keys here are {}.", join_words(names)));
  }
  return {};
}

}  // namespace tessera
