// A parsed JSON or YAML file whose every value knows its line, its column and its key path.
//
// All readers of the house (config.json, job, plan, presets) stand on it, so that each of their errors can
// name file, line and key. The text is untrusted: depth, size and number of values are bounded, duplicate
// keys are refused, nothing throws.
//
//   TESSERA_TRY(auto document, Document::parse(text, "job.yaml", DocumentFormat::yaml));
//   Cursor root = document.root();
//   TESSERA_CHECK(root.only_keys({"model", "layout"}));
//   TESSERA_TRY(auto layout, root.required("layout"));
//   TESSERA_TRY(auto pp, layout.required_integer("pp", 1, 4096));
//
// JSON is read by jsoncpp and accepts the bare numbers Infinity, -Infinity and NaN that real config.json
// files hold; the numeric getters refuse a non-finite value, so it hurts only where it is used.
// YAML is read by yaml-cpp; plain scalars get the types of the YAML 1.2 core schema.
//
// A Cursor points into its Document, which must outlive it. Reading is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/base/result.h"

namespace tessera {

enum class DocumentFormat { json, yaml };
enum class ValueKind { null, boolean, integer, real, string, list, map };

/// "null", "a boolean", "an integer", … for messages.
[[nodiscard]] std::string_view describe(ValueKind kind) noexcept;

class Document;

/// One value of a document: a cheap copyable pointer.
class Cursor {
 public:
  struct Values;  ///< how a document keeps its values; opaque

  [[nodiscard]] ValueKind kind() const noexcept;
  [[nodiscard]] bool is_null() const noexcept { return kind() == ValueKind::null; }
  [[nodiscard]] bool is_map() const noexcept { return kind() == ValueKind::map; }
  [[nodiscard]] bool is_list() const noexcept { return kind() == ValueKind::list; }
  [[nodiscard]] bool is_string() const noexcept { return kind() == ValueKind::string; }
  [[nodiscard]] bool is_integer() const noexcept { return kind() == ValueKind::integer; }
  [[nodiscard]] bool is_boolean() const noexcept { return kind() == ValueKind::boolean; }
  [[nodiscard]] bool is_number() const noexcept;

  [[nodiscard]] int line() const noexcept;    ///< 1-based
  [[nodiscard]] int column() const noexcept;  ///< 1-based
  [[nodiscard]] std::string path() const;     ///< "layout.stages[2]"; empty at the root
  [[nodiscard]] const std::string& file() const noexcept;

  /// Number of entries of a list or map; 0 for a scalar.
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] Cursor item(std::size_t index) const;           ///< of a list or map; index < size()
  [[nodiscard]] std::string_view key(std::size_t index) const;  ///< of a map; index < size()
  [[nodiscard]] std::optional<Cursor> find(
      std::string_view key) const;  ///< absent → nullopt; null → the null
  [[nodiscard]] std::optional<Cursor> present(std::string_view key) const;  ///< absent or null → nullopt

  // The value itself, checked. Bounds are inclusive.
  [[nodiscard]] Result<std::int64_t> integer(std::int64_t low, std::int64_t high) const;  ///< 4.0 counts as 4
  [[nodiscard]] Result<double> number(double low, double high) const;                     ///< finite
  [[nodiscard]] Result<std::string> string() const;
  [[nodiscard]] Result<bool> boolean() const;
  /// The text of a string, or of a number as it was written; for keys that may be either.
  [[nodiscard]] Result<std::string> scalar_text() const;

  // A key of a map. `required_…` refuses absence and null; `…_or` gives the default for both.
  [[nodiscard]] Result<Cursor> required(std::string_view key) const;
  [[nodiscard]] Result<Cursor> required_map(std::string_view key) const;
  [[nodiscard]] Result<Cursor> required_list(std::string_view key) const;
  [[nodiscard]] Result<std::int64_t> required_integer(std::string_view key, std::int64_t low,
                                                      std::int64_t high) const;
  [[nodiscard]] Result<double> required_number(std::string_view key, double low, double high) const;
  [[nodiscard]] Result<std::string> required_string(std::string_view key) const;
  [[nodiscard]] Result<bool> required_boolean(std::string_view key) const;
  [[nodiscard]] Result<std::int64_t> integer_or(std::string_view key, std::int64_t low, std::int64_t high,
                                                std::int64_t fallback) const;
  [[nodiscard]] Result<double> number_or(std::string_view key, double low, double high,
                                         double fallback) const;
  [[nodiscard]] Result<std::string> string_or(std::string_view key, std::string fallback) const;
  [[nodiscard]] Result<bool> boolean_or(std::string_view key, bool fallback) const;

  /// Refuses a key that is not in the list, and names the nearest one that is. Also refuses a non-map.
  [[nodiscard]] Status only_keys(std::initializer_list<std::string_view> keys) const;

  /// A bad-input error at this value, for checks of the caller's own.
  [[nodiscard]] std::unexpected<Error> error(std::string message, std::string hint = {}) const;

 private:
  friend class Document;
  Cursor(const Values* values, std::uint32_t index) noexcept : values_(values), index_(index) {}
  const Values* values_;
  std::uint32_t index_;
};

class Document {
 public:
  /// Bounds on what is read; a text beyond them is refused.
  struct Limits {
    std::size_t bytes = std::size_t{64} << 20;
    std::size_t values = 1'000'000;
    std::size_t depth = 64;
  };

  /// `file` is only a name, for messages.
  [[nodiscard]] static Result<Document> parse(std::string_view text, std::string file, DocumentFormat format,
                                              const Limits& limits);
  [[nodiscard]] static Result<Document> parse(std::string_view text, std::string file,
                                              DocumentFormat format) {
    return parse(text, std::move(file), format, Limits{});
  }
  /// Reads a file; `.json` is JSON, anything else YAML.
  [[nodiscard]] static Result<Document> read(const std::string& path);

  [[nodiscard]] Cursor root() const noexcept;

  /// A copy in which the value at `path` ("layout.pp") is `text`, read as YAML ("8", "[moe, norm]"); maps on
  /// the way are made where they are missing. For flags that override a file; such a value has line −1. Lists
  /// are not entered.
  [[nodiscard]] Result<Document> with(std::string_view path, std::string_view text) const;

 private:
  explicit Document(std::shared_ptr<const Cursor::Values> values) : values_(std::move(values)) {}
  std::shared_ptr<const Cursor::Values> values_;
};

}  // namespace tessera
