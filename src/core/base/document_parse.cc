// Text to Values: jsoncpp and yaml-cpp do the parsing, the builder keeps the bounds and the places.
#include <fmt/format.h>
#include <json/json.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "document_values.h"
#include "tessera/core/base/text.h"

namespace tessera {

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
        classify_plain(value);
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
          classify_plain(value);
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
            return std::unexpected(
                error_at(out_.file, mark.line + 1, path(index), "a key must be plain text"));
          const std::string& key = entry.first.Scalar();
          if (!seen.insert(key).second)
            return std::unexpected(error_at(out_.file, mark.line + 1, path(index),
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
    return std::unexpected(error_at(out_.file, out_.values[out_.values[index].parent].line, "",
                                    fmt::format("values are nested deeper than {} levels", limits_.depth)));
  }

  Result<std::uint32_t> children_of(std::uint32_t index, std::size_t count) {
    if (out_.values.size() + count > limits_.values)
      return std::unexpected(error_at(out_.file, out_.values[index].line, path(index),
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
  return detail::error_at(file, line, "", "not valid JSON: " + message);
}

}  // namespace

Result<Document> Document::parse(std::string_view text, std::string file, DocumentFormat format,
                                 const Limits& limits) {
  if (text.size() > limits.bytes)
    return std::unexpected(
        detail::error_at(file, 0, "", fmt::format("the file is larger than {} MiB", limits.bytes >> 20)));
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
      return std::unexpected(
          detail::error_at(file, 0, "", fmt::format("not readable as JSON: {}", failure.what()),
                           fmt::format("Values may be nested {} levels deep.", limits.depth)));
    }
  } else {
    try {
      const YAML::Node root = YAML::Load(std::string(text));
      TESSERA_CHECK(builder.add_yaml(root, 0, 0));
    } catch (const YAML::Exception& failure) {
      return std::unexpected(detail::error_at(
          file, failure.mark.line + 1, "", "not valid YAML: " + failure.msg,
          text.find("\n\t") == std::string_view::npos ? "" : "YAML is indented by blanks, not tabs."));
    } catch (const std::exception& failure) {
      return std::unexpected(
          detail::error_at(file, 0, "", fmt::format("not readable as YAML: {}", failure.what())));
    }
  }
  return Document(std::make_shared<const Cursor::Values>(builder.take()));
}

Result<Document> Document::read(const std::string& path) {
  TESSERA_TRY(const std::string text, read_file(path));
  return parse(text, path, path.ends_with(".json") ? DocumentFormat::json : DocumentFormat::yaml);
}

}  // namespace tessera
