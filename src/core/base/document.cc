#include "tessera/core/base/document.h"

#include <fmt/format.h>
#include <json/json.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "tessera/core/base/text.h"

namespace tessera {

// Values lie in one array, each list's or map's children side by side, so a Cursor is an index.
struct Cursor::Values {
  struct Value {
    ValueKind kind = ValueKind::null;
    bool truth = false;
    std::int64_t integer = 0;
    double real = 0;
    std::string text;  // strings, and numbers as written
    std::string key;   // the key under which a map's child stands
    std::uint32_t parent = 0;
    std::uint32_t first_child = 0;
    std::uint32_t children = 0;
    int line = 0;
    int column = 0;
  };
  std::string file;
  std::vector<Value> values;
};

namespace {

Error at(const std::string& file, int line, std::string key, std::string message, std::string hint = {}) {
  return Error{.kind = ErrorKind::bad_input,
               .file = file,
               .line = line,
               .key = std::move(key),
               .message = std::move(message),
               .hint = std::move(hint)};
}

// The YAML 1.2 core schema for plain scalars; also what JSON numbers come out as.
void classify_plain(const std::string& text, ValueKind& kind, bool& truth, std::int64_t& integer,
                    double& real) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    kind = ValueKind::null;
    return;
  }
  if (text == "true" || text == "True" || text == "TRUE" || text == "false" || text == "False" ||
      text == "FALSE") {
    kind = ValueKind::boolean;
    truth = text[0] == 't' || text[0] == 'T';
    return;
  }
  const std::string_view unsigned_text =
      text[0] == '-' || text[0] == '+' ? std::string_view(text).substr(1) : std::string_view(text);
  if (unsigned_text == ".inf" || unsigned_text == "Infinity") {
    kind = ValueKind::real;
    real =
        text[0] == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    return;
  }
  if (text == ".nan" || text == "NaN") {
    kind = ValueKind::real;
    real = std::numeric_limits<double>::quiet_NaN();
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
    integer = *whole;
    real = static_cast<double>(*whole);
    return;
  }
  if (const auto value = to_number(number)) {
    kind = ValueKind::real;
    real = *value;
    return;
  }
  kind = ValueKind::string;
}

}  // namespace

namespace detail {

// Turns a library's tree into Values. The two readers differ only in what they ask of the library.
class DocumentBuilder {
 public:
  using Value = Cursor::Values::Value;
  DocumentBuilder(std::string file, const Document::Limits& limits) : limits_(limits) {
    out_.file = std::move(file);
    out_.values.emplace_back();
  }

  Status add_json(const Json::Value& json, std::uint32_t index, std::size_t depth) {
    TESSERA_CHECK(check_depth(index, depth));
    place(index, line_of(json.getOffsetStart()));
    Value& value = out_.values[index];
    switch (json.type()) {
      case Json::nullValue:
        return {};
      case Json::booleanValue:
        value.kind = ValueKind::boolean;
        value.truth = json.asBool();
        return {};
      case Json::stringValue:
        value.kind = ValueKind::string;
        value.text = json.asString();
        return {};
      case Json::intValue:
      case Json::uintValue:
      case Json::realValue: {
        // The number as it was written: the library's own double would turn a large integer around.
        const auto begin = static_cast<std::size_t>(json.getOffsetStart());
        const auto end = std::min(static_cast<std::size_t>(json.getOffsetLimit()), text_.size());
        value.text = begin < end ? std::string(trim(text_.substr(begin, end - begin))) : json.asString();
        classify_plain(value.text, value.kind, value.truth, value.integer, value.real);
        if (value.kind == ValueKind::string) {  // such as 1e400, beyond a double
          value.kind = ValueKind::real;
          value.real = std::numeric_limits<double>::infinity();
        }
        return {};
      }
      case Json::arrayValue: {
        value.kind = ValueKind::list;
        TESSERA_TRY(const std::uint32_t first, children_of(index, json.size()));
        for (Json::ArrayIndex i = 0; i < json.size(); ++i)
          TESSERA_CHECK(add_json(json[i], first + i, depth + 1));
        return {};
      }
      case Json::objectValue: {
        value.kind = ValueKind::map;
        std::vector<std::string> names = json.getMemberNames();
        // The library sorts keys; the order of the text is the order a reader of messages expects.
        std::ranges::stable_sort(names, {},
                                 [&](const std::string& name) { return json[name].getOffsetStart(); });
        TESSERA_TRY(const std::uint32_t first, children_of(index, names.size()));
        for (std::size_t i = 0; i < names.size(); ++i) {
          const auto child = first + static_cast<std::uint32_t>(i);
          out_.values[child].key = names[i];
          TESSERA_CHECK(add_json(json[names[i]], child, depth + 1));
        }
        return {};
      }
    }
    return {};
  }

  Status add_yaml(const YAML::Node& node, std::uint32_t index, std::size_t depth) {
    TESSERA_CHECK(check_depth(index, depth));
    place(index, {node.Mark().line + 1, node.Mark().column + 1});
    Value& value = out_.values[index];
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return {};
      case YAML::NodeType::Scalar:
        value.text = node.Scalar();
        // "!" marks a quoted scalar.
        if (node.Tag() == "!") {
          value.kind = ValueKind::string;
        } else {
          classify_plain(value.text, value.kind, value.truth, value.integer, value.real);
        }
        return {};
      case YAML::NodeType::Sequence: {
        value.kind = ValueKind::list;
        TESSERA_TRY(std::uint32_t child, children_of(index, node.size()));
        for (const auto& item : node) TESSERA_CHECK(add_yaml(item, child++, depth + 1));
        return {};
      }
      case YAML::NodeType::Map: {
        value.kind = ValueKind::map;
        TESSERA_TRY(std::uint32_t child, children_of(index, node.size()));
        std::unordered_set<std::string> seen;
        for (const auto& entry : node) {
          const YAML::Mark mark = entry.first.Mark();
          if (!entry.first.IsScalar())
            return std::unexpected(at(out_.file, mark.line + 1, path(index), "a key must be plain text"));
          const std::string& key = entry.first.Scalar();
          if (!seen.insert(key).second)
            return std::unexpected(at(out_.file, mark.line + 1, path(index),
                                      fmt::format("key {} occurs twice", key), "Keep one of the two."));
          out_.values[child].key = key;
          TESSERA_CHECK(add_yaml(entry.second, child++, depth + 1));
        }
        return {};
      }
    }
    return {};
  }

  void set_text(std::string_view text) {
    text_ = text;
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n') line_starts_.push_back(i + 1);
  }
  [[nodiscard]] std::pair<int, int> line_of(std::ptrdiff_t offset) const {
    const auto position = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, offset));
    const auto next = std::ranges::upper_bound(line_starts_, position);
    const auto line = next - line_starts_.begin();
    return {static_cast<int>(line),
            static_cast<int>(position - line_starts_[static_cast<std::size_t>(line) - 1]) + 1};
  }
  Cursor::Values take() { return std::move(out_); }

 private:
  void place(std::uint32_t index, std::pair<int, int> where) {
    out_.values[index].line = where.first;
    out_.values[index].column = where.second;
  }

  Status check_depth(std::uint32_t index, std::size_t depth) const {
    if (depth <= limits_.depth) return {};
    return std::unexpected(at(out_.file, out_.values[out_.values[index].parent].line, "",
                              fmt::format("values are nested deeper than {} levels", limits_.depth)));
  }

  Result<std::uint32_t> children_of(std::uint32_t index, std::size_t count) {
    if (out_.values.size() + count > limits_.values)
      return std::unexpected(at(out_.file, out_.values[index].line, path(index),
                                fmt::format("the file holds more than {} values", limits_.values)));
    const auto first = static_cast<std::uint32_t>(out_.values.size());
    out_.values[index].first_child = first;
    out_.values[index].children = static_cast<std::uint32_t>(count);
    out_.values.resize(out_.values.size() + count);
    for (std::size_t i = 0; i < count; ++i) out_.values[first + i].parent = index;
    return first;
  }

  [[nodiscard]] std::string path(std::uint32_t index) const {
    std::string out = out_.values[index].key;
    while (index != 0 && out_.values[index].parent != 0) {
      index = out_.values[index].parent;
      out = out_.values[index].key + "." + out;
    }
    return out;
  }

  Document::Limits limits_;
  std::string_view text_;
  std::vector<std::size_t> line_starts_{0};
  Cursor::Values out_;
};

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

// jsoncpp reports "* Line 3, Column 7\n  Message\n"; only the first one is of use.
Error json_error(const std::string& file, const std::string& report) {
  int line = 0;
  std::string message = report;
  if (const auto mark = report.find("Line "); mark != std::string::npos) {
    std::istringstream in(report.substr(mark + 5));
    in >> line;
    const auto begin = report.find('\n', mark);
    if (begin != std::string::npos) {
      const auto end = report.find('\n', begin + 1);
      message = std::string(trim(std::string_view(report).substr(begin + 1, end - begin - 1)));
    }
  }
  return at(file, line, "", "not valid JSON: " + message);
}

}  // namespace

Result<Document> Document::parse(std::string_view text, std::string file, DocumentFormat format,
                                 const Limits& limits) {
  if (text.size() > limits.bytes)
    return std::unexpected(
        at(file, 0, "", fmt::format("the file is larger than {} MiB", limits.bytes >> 20)));
  detail::DocumentBuilder builder(file, limits);
  builder.set_text(text);
  if (format == DocumentFormat::json) {
    Json::CharReaderBuilder options;
    options["allowSpecialFloats"] = true;
    options["rejectDupKeys"] = true;
    options["failIfExtra"] = true;
    options["allowTrailingCommas"] = false;
    options["allowComments"] = false;
    options["collectComments"] = false;
    options["stackLimit"] = static_cast<int>(limits.depth) + 2;
    const std::unique_ptr<Json::CharReader> reader(options.newCharReader());
    Json::Value root;
    std::string report;
    try {
      if (!reader->parse(text.data(), text.data() + text.size(), &root, &report))
        return std::unexpected(json_error(file, report));
      TESSERA_CHECK(builder.add_json(root, 0, 0));
    } catch (const std::exception& failure) {  // the library throws when nesting passes stackLimit
      return std::unexpected(at(file, 0, "", fmt::format("not readable as JSON: {}", failure.what()),
                                fmt::format("Values may be nested {} levels deep.", limits.depth)));
    }
  } else {
    try {
      const YAML::Node root = YAML::Load(std::string(text));
      TESSERA_CHECK(builder.add_yaml(root, 0, 0));
    } catch (const YAML::Exception& failure) {
      return std::unexpected(
          at(file, failure.mark.line + 1, "", "not valid YAML: " + failure.msg,
             text.find("\n\t") == std::string_view::npos ? "" : "YAML is indented by blanks, not tabs."));
    } catch (const std::exception& failure) {
      return std::unexpected(at(file, 0, "", fmt::format("not readable as YAML: {}", failure.what())));
    }
  }
  return Document(std::make_shared<const Cursor::Values>(builder.take()));
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
  auto& value = values[at_index];
  value.children = 0;
  value.line = 0;
  value.column = 0;
  value.text = std::string(text);
  classify_plain(value.text, value.kind, value.truth, value.integer, value.real);
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
  return std::unexpected(at(file(), line(), path(), std::move(message), std::move(hint)));
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
