#include "tessera/core/cost/profile_database.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "profile_connection.h"

namespace tessera {
namespace {

constexpr std::string_view kColumns = "mesh, pair, schedule, software, source, median, spread, count, error";

Status check(const ProfileCell& cell, std::size_t index) {
  const auto wrong = [&](std::string message) {
    return std::unexpected(Error{.key = fmt::format("cells[{}]", index), .message = std::move(message)});
  };
  const auto& [key, source, value] = cell;
  for (const auto& [label, text] : {std::pair<std::string_view, const std::string&>{"mesh", key.mesh},
                                    {"pair", key.pair},
                                    {"schedule", key.schedule},
                                    {"software", key.software}})
    if (text.empty()) return wrong(fmt::format("the key's {} is empty", label));
  if (!(value.median.value() > 0) || !std::isfinite(value.median.value()))
    return wrong(
        fmt::format("median {} s; expected a finite number of seconds above 0", value.median.value()));
  if (!(value.spread >= 0) || !std::isfinite(value.spread))
    return wrong(fmt::format("spread {}; expected a finite number, 0 or more", value.spread));
  if (value.count < 0) return wrong(fmt::format("count {}; expected 0 or more", value.count));
  if (!(value.error >= 0 && value.error < 1))
    return wrong(fmt::format("error {}; expected 0 or more and less than 1", value.error));
  return {};
}

// A file may hold what add() would refuse, if another program wrote it.
Result<ProfileCell> read_row(const ProfileStatement& row) {
  ProfileCell cell{.key = {row.text(0), row.text(1), row.text(2), row.text(3)},
                   .value = {.median = Seconds(row.real(5)),
                             .spread = row.real(6),
                             .count = row.integer(7),
                             .error = row.real(8)}};
  const auto source = profile_source_by_name(row.text(4));
  if (!source) return row.damaged(fmt::format("a cell has the unknown source {}", row.text(4)));
  cell.source = *source;
  if (const Status sound = check(cell, 0); !sound)
    return row.damaged(fmt::format("a cell is wrong: {}", sound.error().message));
  return cell;
}

Result<std::vector<ProfileCell>> read_rows(ProfileStatement& statement) {
  std::vector<ProfileCell> out;
  for (;;) {
    TESSERA_TRY(const bool more, statement.step());
    if (!more) return out;
    TESSERA_TRY(ProfileCell cell, read_row(statement));
    out.push_back(std::move(cell));
  }
}

}  // namespace

std::string_view name(ProfileSource source) noexcept {
  switch (source) {
    case ProfileSource::theory:
      return "theory";
    case ProfileSource::primitive:
      return "primitive";
    case ProfileSource::chunk_pair:
      return "chunk_pair";
  }
  return "unknown";
}

std::optional<ProfileSource> profile_source_by_name(std::string_view text) noexcept {
  for (const ProfileSource source :
       {ProfileSource::theory, ProfileSource::primitive, ProfileSource::chunk_pair})
    if (text == name(source)) return source;
  return std::nullopt;
}

double default_error(ProfileSource source) noexcept {
  return source == ProfileSource::chunk_pair ? 0.01 : 0.15;
}

std::optional<ProfileSource> ProfileEntry::best() const noexcept {
  for (const ProfileSource source :
       {ProfileSource::chunk_pair, ProfileSource::primitive, ProfileSource::theory})
    if (of(source)) return source;
  return std::nullopt;
}

class ProfileDatabase::Connection : public ProfileConnection {
  using ProfileConnection::ProfileConnection;
};

ProfileDatabase::ProfileDatabase(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)) {}
ProfileDatabase::ProfileDatabase(ProfileDatabase&&) noexcept = default;
ProfileDatabase& ProfileDatabase::operator=(ProfileDatabase&&) noexcept = default;
ProfileDatabase::~ProfileDatabase() = default;

Result<ProfileDatabase> ProfileDatabase::open(const std::string& path, ProfileAccess access,
                                              Seconds patience) {
  auto connection = std::make_unique<Connection>(path, patience);
  TESSERA_CHECK(connection->open(access));
  return ProfileDatabase(std::move(connection));
}

Result<std::vector<ProfileEntry>> ProfileDatabase::find(std::span<const ProfileKey> keys) const {
  std::vector<ProfileEntry> out(keys.size());
  TESSERA_CHECK(connection_->read([&]() -> Status {
    std::ranges::fill(out, ProfileEntry{});
    TESSERA_TRY(ProfileStatement statement,
                connection_->prepare(fmt::format(
                    "SELECT {} FROM cell WHERE mesh = ?1 AND pair = ?2 AND schedule = ?3 AND software = ?4",
                    kColumns)));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      statement.reset();
      statement.bind(1, keys[i].mesh).bind(2, keys[i].pair);
      statement.bind(3, keys[i].schedule).bind(4, keys[i].software);
      TESSERA_TRY(const std::vector<ProfileCell> cells, read_rows(statement));
      for (const ProfileCell& cell : cells) out[i].values[static_cast<std::size_t>(cell.source)] = cell.value;
    }
    return {};
  }));
  return out;
}

Result<std::vector<ProfileCell>> ProfileDatabase::cells(std::string_view mesh,
                                                        std::string_view software) const {
  std::vector<ProfileCell> out;
  TESSERA_CHECK(connection_->read([&]() -> Status {
    TESSERA_TRY(ProfileStatement statement,
                connection_->prepare(fmt::format("SELECT {0} FROM cell WHERE mesh = ?1 AND software = ?2 "
                                                 "ORDER BY pair, schedule, source",
                                                 kColumns)));
    statement.bind(1, mesh).bind(2, software);
    TESSERA_TRY(out, read_rows(statement));
    return {};
  }));
  std::ranges::sort(out, {}, [](const ProfileCell& cell) { return std::tie(cell.key, cell.source); });
  return out;
}

Result<std::vector<ProfileCell>> ProfileDatabase::cells() const {
  std::vector<ProfileCell> out;
  TESSERA_CHECK(connection_->read([&]() -> Status {
    TESSERA_TRY(ProfileStatement statement,
                connection_->prepare(fmt::format("SELECT {} FROM cell", kColumns)));
    TESSERA_TRY(out, read_rows(statement));
    return {};
  }));
  std::ranges::sort(out, {}, [](const ProfileCell& cell) { return std::tie(cell.key, cell.source); });
  return out;
}

Result<ProfileAdded> ProfileDatabase::add(std::span<const ProfileCell> cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) TESSERA_CHECK(check(cells[i], i));
  ProfileAdded added;
  TESSERA_CHECK(connection_->write([&]() -> Status {
    added = {};
    TESSERA_TRY(const std::int64_t before, connection_->count());
    TESSERA_TRY(
        ProfileStatement statement,
        connection_->prepare(fmt::format(
            "INSERT OR REPLACE INTO cell ({}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)", kColumns)));
    for (const ProfileCell& cell : cells) {
      statement.reset();
      statement.bind(1, cell.key.mesh).bind(2, cell.key.pair);
      statement.bind(3, cell.key.schedule).bind(4, cell.key.software);
      statement.bind(5, name(cell.source));
      statement.bind(6, cell.value.median.value()).bind(7, cell.value.spread);
      statement.bind(8, cell.value.count).bind(9, cell.value.error);
      TESSERA_TRY([[maybe_unused]] const bool row, statement.step());
    }
    TESSERA_TRY(const std::int64_t after, connection_->count());
    added.fresh = after - before;
    added.replaced = static_cast<std::int64_t>(cells.size()) - added.fresh;
    return {};
  }));
  return added;
}

}  // namespace tessera
