// How every fallible call of the house answers: a value, or one Error a person can act on.
//
//   Result<Layout> read_layout(Cursor node) {
//     TESSERA_TRY(auto ranks, node.required_integer("pp", 1, 1 << 16));   // returns the error upwards
//     ...
//   }
//
// Nothing here throws, prints or exits. An Error is for the user's input and for questions that have no
// answer; a broken invariant of our own code is an assert.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace tessera {

enum class ErrorKind {
  bad_input,   ///< the user gave something wrong; the command line exits with 2
  infeasible,  ///< the input is sound, but no plan meets it, or a check failed; exits with 1
};

/// One message: where, which key, what is wrong and was expected, and what to do.
struct Error {
  ErrorKind kind = ErrorKind::bad_input;
  std::string file;     ///< empty when the input came from no file
  int line = 0;         ///< 1-based; 0 when unknown; negative when a flag gave the value
  std::string key;      ///< dotted path, such as `layout.ep` or `layer_types[3]`; may be empty
  std::string message;  ///< one sentence: what is wrong and what was expected, with the numbers
  std::string hint;     ///< what to do; may hold several lines; may be empty

  /// "job.yaml:14: layout.ep: 48 does not divide ...\n  EP can be 1, 2, 4."
  [[nodiscard]] std::string text() const;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

/// A bad-input error that belongs to no file.
[[nodiscard]] std::unexpected<Error> bad_input(std::string message, std::string hint = {});
/// A sound question without an answer.
[[nodiscard]] std::unexpected<Error> infeasible(std::string message, std::string hint = {});

}  // namespace tessera

#define TESSERA_CONCAT_INNER(a, b) a##b
#define TESSERA_CONCAT(a, b) TESSERA_CONCAT_INNER(a, b)

/// `TESSERA_TRY(auto x, call());` declares x from the value, or returns the error to the caller.
#define TESSERA_TRY(declaration, expression)                                   \
  auto TESSERA_CONCAT(try_, __LINE__) = (expression);                          \
  if (!TESSERA_CONCAT(try_, __LINE__))                                         \
    return std::unexpected(std::move(TESSERA_CONCAT(try_, __LINE__)).error()); \
  declaration = *std::move(TESSERA_CONCAT(try_, __LINE__))

/// `TESSERA_CHECK(call());` for a call that gives no value.
#define TESSERA_CHECK(expression)                                                                           \
  do {                                                                                                      \
    if (auto try_status = (expression); !try_status) return std::unexpected(std::move(try_status).error()); \
  } while (false)
