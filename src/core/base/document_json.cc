// JSON by jsoncpp, which knows the offset of every value and takes bare Infinity and NaN.
#include <fmt/format.h>
#include <json/json.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <sstream>
#include <utility>

#include "document_values.h"
#include "tessera/core/base/text.h"

namespace tessera::detail {

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
  return error_at(file, line, "", "not valid JSON: " + message);
}

// The library builds its whole tree before we see it, so the values are counted in the text first: each but
// the first follows a comma or opens a container.
std::size_t count_values(std::string_view text) {
  std::size_t count = 1;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == ',' || c == '[' || c == '{') {
      ++count;
    }
  }
  return count;
}

class JsonTree {
 public:
  JsonTree(std::string_view text, const std::string& file, const Document::Limits& limits)
      : text_(text), file_(file), limits_(limits) {
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n') line_starts_.push_back(i + 1);
  }

  Status add(const Json::Value& json, Tree& tree, std::size_t depth) {
    auto& value = tree.value;
    place(json.getOffsetStart(), value);
    if (depth > limits_.depth) return std::unexpected(too_deep(file_, value.line, limits_));
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
      case Json::realValue:
        add_number(json, value);
        return {};
      case Json::arrayValue:
        value.kind = ValueKind::list;
        tree.children.resize(json.size());
        for (Json::ArrayIndex i = 0; i < json.size(); ++i)
          TESSERA_CHECK(add(json[i], tree.children[i], depth + 1));
        return {};
      case Json::objectValue: {
        value.kind = ValueKind::map;
        std::vector<std::pair<std::ptrdiff_t, std::string>> names;
        for (const std::string& name : json.getMemberNames())
          names.emplace_back(json[name].getOffsetStart(), name);
        // The library sorts keys; the order of the text is what a reader of messages expects.
        std::ranges::sort(names);
        tree.children.resize(names.size());
        for (std::size_t i = 0; i < names.size(); ++i) {
          tree.children[i].value.key = names[i].second;
          TESSERA_CHECK(add(json[names[i].second], tree.children[i], depth + 1));
        }
        return {};
      }
    }
    return {};
  }

 private:
  // The number as it was written: the library's own double would turn a large integer around.
  void add_number(const Json::Value& json, Cursor::Values::Value& value) const {
    const auto begin = static_cast<std::size_t>(json.getOffsetStart());
    const auto end = std::min(static_cast<std::size_t>(json.getOffsetLimit()), text_.size());
    value.text = begin < end ? std::string(trim(text_.substr(begin, end - begin))) : json.asString();
    classify_plain(value);
    if (value.kind == ValueKind::string) {  // such as 1e400, beyond a double
      value.kind = ValueKind::real;
      value.real = std::numeric_limits<double>::infinity();
    }
  }

  void place(std::ptrdiff_t offset, Cursor::Values::Value& value) const {
    const auto position = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, offset));
    const auto line =
        static_cast<std::size_t>(std::ranges::upper_bound(line_starts_, position) - line_starts_.begin());
    value.line = static_cast<int>(line);
    value.column = static_cast<int>(position - line_starts_[line - 1]) + 1;
  }

  std::string_view text_;
  const std::string& file_;
  const Document::Limits& limits_;
  std::vector<std::size_t> line_starts_{0};
};

}  // namespace

Result<Tree> parse_json_tree(std::string_view text, const std::string& file, const Document::Limits& limits) {
  if (count_values(text) > limits.values) return std::unexpected(too_many_values(file, 0, limits));
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
    Tree tree;
    TESSERA_CHECK(JsonTree(text, file, limits).add(root, tree, 0));
    return tree;
  } catch (const std::exception&) {  // the library throws when nesting passes stackLimit
    return std::unexpected(too_deep(file, 0, limits));
  }
}

}  // namespace tessera::detail
