// How a Document keeps its values, shared by its parser and its cursors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/base/document.h"

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

namespace detail {

/// A value with its children, as the parsers build it; parse() lays it out side by side.
struct Tree {
  Cursor::Values::Value value;
  std::vector<Tree> children;
};

/// Both keep the limits while they read, and leave `value.key` to name a map's child.
[[nodiscard]] Result<Tree> parse_json_tree(std::string_view text, const std::string& file,
                                           const Document::Limits& limits);
[[nodiscard]] Result<Tree> parse_yaml_tree(std::string_view text, const std::string& file,
                                           const Document::Limits& limits);

/// "the file holds more than … values".
[[nodiscard]] Error too_many_values(const std::string& file, int line, const Document::Limits& limits);
/// "values are nested deeper than … levels".
[[nodiscard]] Error too_deep(const std::string& file, int line, const Document::Limits& limits);

/// Gives a value whose `text` is a plain scalar its kind, by the YAML 1.2 core schema; JSON numbers too.
void classify_plain(Cursor::Values::Value& value);

/// A bad-input error at a line of a file.
[[nodiscard]] Error error_at(const std::string& file, int line, std::string key, std::string message,
                             std::string hint = {});

}  // namespace detail

}  // namespace tessera
