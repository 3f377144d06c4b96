// All the SQL plumbing of the profile database: an open file, transactions that wait for other processes, and
// statements.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tessera/core/base/result.h"
#include "tessera/core/base/units.h"
#include "tessera/core/cost/profile_database.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tessera {

class ProfileConnection;

/// A prepared statement. Must not outlive its connection.
class ProfileStatement {
 public:
  void reset() noexcept;
  ProfileStatement& bind(int index, std::string_view text) noexcept;
  ProfileStatement& bind(int index, double value) noexcept;
  ProfileStatement& bind(int index, std::int64_t value) noexcept;
  /// True when it stands on a row.
  [[nodiscard]] Result<bool> step();
  // Of that row, by column.
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] double real(int column) const noexcept;
  [[nodiscard]] std::int64_t integer(int column) const noexcept;
  /// The error of a file that holds this.
  [[nodiscard]] std::unexpected<Error> damaged(std::string what) const;

 private:
  friend class ProfileConnection;
  ProfileStatement(ProfileConnection& connection, sqlite3_stmt* statement) noexcept;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept;
  };
  ProfileConnection* connection_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class ProfileConnection {
 public:
  ProfileConnection(std::string path, Seconds patience);

  /// Opens and checks the file; with write access an absent or empty one becomes a profile.
  [[nodiscard]] Status open(ProfileAccess access);
  /// Runs the body in a transaction. When another process is in the way, the body may run again.
  [[nodiscard]] Status read(const std::function<Status()>& body);
  [[nodiscard]] Status write(const std::function<Status()>& body);

  [[nodiscard]] Result<ProfileStatement> prepare(std::string_view sql);
  [[nodiscard]] Result<std::int64_t> count();  ///< cells
  /// The error of what SQLite said last.
  [[nodiscard]] std::unexpected<Error> failed(int code);
  [[nodiscard]] std::unexpected<Error> damaged(std::string what) const;

 private:
  struct Close {
    void operator()(sqlite3* database) const noexcept;
  };
  [[nodiscard]] Status check_place(ProfileAccess access) const;
  [[nodiscard]] Status check_file();
  [[nodiscard]] Status make_tables();
  [[nodiscard]] Result<std::int64_t> number(std::string_view sql);
  [[nodiscard]] Status run(const char* sql);
  [[nodiscard]] Status transaction(const char* begin, const std::function<Status()>& body);

  std::string path_;
  Seconds patience_;
  bool busy_ = false;   // the last failure was another process's lock
  bool blank_ = false;  // nothing was in the file when it was opened for reading
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace tessera
