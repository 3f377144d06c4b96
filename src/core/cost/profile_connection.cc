#include "profile_connection.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

namespace tessera {
namespace {

// "Tess": tells a profile from any other SQLite database.
constexpr std::int64_t kApplication = 0x54657373;
constexpr std::int64_t kVersion = 1;

constexpr std::string_view kTables =
    "CREATE TABLE cell("
    "mesh TEXT NOT NULL, pair TEXT NOT NULL, schedule TEXT NOT NULL, software TEXT NOT NULL, "
    "source TEXT NOT NULL, median REAL NOT NULL, spread REAL NOT NULL, count INTEGER NOT NULL, "
    "error REAL NOT NULL, PRIMARY KEY(mesh, software, pair, schedule, source)) STRICT, WITHOUT ROWID";

// A wait of its own for each try, so that one call is several tries.
constexpr double kTries = 4;

}  // namespace

// ------------------------------------------------------------------------------------------- statements

ProfileStatement::ProfileStatement(ProfileConnection& connection, sqlite3_stmt* statement) noexcept
    : connection_(&connection), statement_(statement) {}

void ProfileStatement::Finalize::operator()(sqlite3_stmt* statement) const noexcept {
  sqlite3_finalize(statement);
}

void ProfileStatement::reset() noexcept {
  sqlite3_reset(statement_.get());
}

// Binding fails only for a wrong index or without memory; the step that follows then fails too.
ProfileStatement& ProfileStatement::bind(int index, std::string_view text) noexcept {
  sqlite3_bind_text64(statement_.get(), index, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}
ProfileStatement& ProfileStatement::bind(int index, double value) noexcept {
  sqlite3_bind_double(statement_.get(), index, value);
  return *this;
}
ProfileStatement& ProfileStatement::bind(int index, std::int64_t value) noexcept {
  sqlite3_bind_int64(statement_.get(), index, value);
  return *this;
}

Result<bool> ProfileStatement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return connection_->failed(code);
}

std::string ProfileStatement::text(int column) const {
  const auto* bytes = sqlite3_column_text(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return bytes == nullptr ? std::string()
                          : std::string(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
}
double ProfileStatement::real(int column) const noexcept {
  return sqlite3_column_double(statement_.get(), column);
}
std::int64_t ProfileStatement::integer(int column) const noexcept {
  return sqlite3_column_int64(statement_.get(), column);
}
std::unexpected<Error> ProfileStatement::damaged(std::string what) const {
  return connection_->damaged(std::move(what));
}

// ------------------------------------------------------------------------------------------- connection

ProfileConnection::ProfileConnection(std::string path, Seconds patience)
    : path_(std::move(path)), patience_(patience) {}

void ProfileConnection::Close::operator()(sqlite3* database) const noexcept {
  sqlite3_close_v2(database);
}

std::unexpected<Error> ProfileConnection::damaged(std::string what) const {
  return std::unexpected(
      Error{.file = path_,
            .message = "this profile database is damaged: " + std::move(what),
            .hint = "Nothing was changed. Restore a copy, or delete it and measure again."});
}

std::unexpected<Error> ProfileConnection::failed(int code) {
  const std::string words = database_ ? sqlite3_errmsg(database_.get()) : sqlite3_errstr(code);
  const int system = database_ ? sqlite3_system_errno(database_.get()) : 0;
  const std::string cause = system != 0 ? fmt::format("{} ({})", words, std::strerror(system)) : words;
  const auto error = [&](std::string message, std::string hint = {}) {
    return std::unexpected(Error{.file = path_, .message = std::move(message), .hint = std::move(hint)});
  };
  busy_ = false;
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      busy_ = true;
      return std::unexpected(Error{
          .kind = ErrorKind::infeasible,
          .file = path_,
          .message =
              fmt::format("other processes kept this profile database locked for {} s", patience_.value()),
          .hint = "Nothing was changed. Try again when they are done."});
    case SQLITE_NOTADB:
      return error("this is no profile database: it is no SQLite file",
                   "Give the file that tessera profile add wrote, or a new name.");
    case SQLITE_CORRUPT:
      return damaged(words);
    case SQLITE_READONLY:
      return error(fmt::format("cannot be written: {}", cause),
                   "A profile database and its folder must be writable, the folder for the journal.");
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return error(fmt::format("cannot be opened: {}", cause),
                   "A profile database needs a folder that can be written, for its journal.");
    case SQLITE_FULL:
      return error("writing failed; is the disk full?", "Nothing was changed.");
    case SQLITE_IOERR:
      return error(fmt::format("reading or writing failed: {}", cause));
    default:
      return damaged(words);
  }
}

Result<ProfileStatement> ProfileConnection::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  // A file that was blank when it was opened has got its table since, or it has no cell.
  const int code =
      sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) return failed(code);
  return ProfileStatement(*this, statement);
}

Result<std::int64_t> ProfileConnection::number(std::string_view sql) {
  TESSERA_TRY(ProfileStatement statement, prepare(sql));
  TESSERA_TRY(const bool row, statement.step());
  return row ? statement.integer(0) : 0;
}

Result<std::int64_t> ProfileConnection::count() {
  return number("SELECT count(*) FROM cell");
}

Status ProfileConnection::run(const char* sql) {
  const int code = sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return failed(code);
  return {};
}

Status ProfileConnection::transaction(const char* begin, const std::function<Status()>& body) {
  for (double tries = 1;; ++tries) {
    busy_ = false;
    Status status = run(begin);
    if (status) status = body();
    if (status) status = run("COMMIT");
    if (status) return {};
    Error error = std::move(status).error();
    const bool again = busy_ && tries < kTries;
    // SQLite may have rolled back by itself, and then this is an error of no interest.
    if (sqlite3_get_autocommit(database_.get()) == 0)
      sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    if (!again) return std::unexpected(std::move(error));
  }
}

Status ProfileConnection::write(const std::function<Status()>& body) {
  // The write lock from the start: a reader that became a writer could wait for another one for ever.
  return transaction("BEGIN IMMEDIATE", body);
}

Status ProfileConnection::read(const std::function<Status()>& body) {
  return transaction("BEGIN", [&]() -> Status {
    if (blank_) {
      TESSERA_TRY(const std::int64_t tables, number("SELECT count(*) FROM sqlite_schema"));
      if (tables == 0) return {};
      blank_ = false;
    }
    return body();
  });
}

// ---------------------------------------------------------------------------------------------- opening

// What SQLite would make of these is not what is meant: a folder, a device, or a database in memory.
Status ProfileConnection::check_place(ProfileAccess access) const {
  namespace fs = std::filesystem;
  const auto refuse = [&](std::string message, std::string hint = {}) {
    return std::unexpected(Error{.file = path_, .message = std::move(message), .hint = std::move(hint)});
  };
  if (path_.empty()) return bad_input("the name of the profile database is empty");
  if (path_.find('\0') != std::string::npos) return bad_input("a file name holds no NUL character");
  std::error_code failure;
  const fs::file_type kind = fs::status(path_, failure).type();
  if (kind == fs::file_type::regular) return {};
  if (kind == fs::file_type::directory) return refuse("expected a file, found a directory");
  if (kind != fs::file_type::not_found) {
    if (failure) return refuse(fmt::format("cannot be opened: {}", failure.message()));
    return refuse("is no regular file");
  }
  if (access == ProfileAccess::read)
    return refuse("no such file", "Make a profile database with: tessera profile add DB FILE");
  const fs::path folder = fs::absolute(path_, failure).parent_path();
  if (!fs::is_directory(folder, failure))
    return refuse(fmt::format("cannot be made: there is no folder {}", folder.string()));
  return {};
}

Status ProfileConnection::check_file() {
  TESSERA_TRY(const std::int64_t application, number("PRAGMA application_id"));
  TESSERA_TRY(const std::int64_t version, number("PRAGMA user_version"));
  TESSERA_TRY(const std::int64_t tables, number("SELECT count(*) FROM sqlite_schema"));
  blank_ = application == 0 && version == 0 && tables == 0;
  if (blank_) return {};
  if (application != kApplication)
    return std::unexpected(Error{.file = path_,
                                 .message = "this is no profile database: another program made it",
                                 .hint = "Give the file that tessera profile add wrote, or a new name."});
  if (version > kVersion)
    return std::unexpected(Error{
        .file = path_,
        .message = fmt::format("profile version {} is newer than this program reads ({})", version, kVersion),
        .hint = "Use a newer tessera, or another file."});
  TESSERA_TRY(ProfileStatement check, prepare("PRAGMA quick_check(1)"));
  TESSERA_TRY(const bool row, check.step());
  if (row && check.text(0) != "ok") return damaged(check.text(0));
  TESSERA_TRY(
      [[maybe_unused]] const ProfileStatement columns,
      prepare("SELECT mesh, pair, schedule, software, source, median, spread, count, error FROM cell"));
  return {};
}

Status ProfileConnection::make_tables() {
  return write([&]() -> Status {
    // Another process may have been first.
    TESSERA_TRY(const std::int64_t tables, number("SELECT count(*) FROM sqlite_schema"));
    if (tables > 0) return {};
    TESSERA_CHECK(run(std::string(kTables).c_str()));
    TESSERA_CHECK(run(fmt::format("PRAGMA application_id = {}", kApplication).c_str()));
    return run(fmt::format("PRAGMA user_version = {}", kVersion).c_str());
  });
}

Status ProfileConnection::open(ProfileAccess access) {
  TESSERA_CHECK(check_place(access));
  // An absolute path is never taken for a name with a meaning, such as ":memory:". A reader may have to undo
  // what a process that died left half done, so it opens for writing too, where it may.
  std::error_code failure;
  const std::string path = std::filesystem::absolute(path_, failure).string();
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
  if (access == ProfileAccess::write) flags |= SQLITE_OPEN_CREATE;
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &database, flags, nullptr);
  database_.reset(database);  // SQLite gives a handle for its message even when it fails
  if (code != SQLITE_OK) return failed(code);
  sqlite3_extended_result_codes(database, 1);
  sqlite3_busy_timeout(database, static_cast<int>(std::max(1.0, milliseconds(patience_) / kTries)));
  TESSERA_CHECK(transaction("BEGIN", [&] { return check_file(); }));
  if (access == ProfileAccess::read || !blank_) return {};
  TESSERA_CHECK(make_tables());
  return transaction("BEGIN", [&] { return check_file(); });
}

}  // namespace tessera
