// The profile database: what was measured, in one SQLite file that several processes may use at once.
//
//   TESSERA_TRY(auto database, ProfileDatabase::open("profile.db", ProfileAccess::write));
//   TESSERA_CHECK(database.add(cells));                        // one transaction: all of them or none
//   TESSERA_TRY(const auto entries, database.find(keys));      // one transaction: a consistent view
//   if (const auto source = entries[0].best()) use(entries[0].of(*source)->median);
//
// A cell is one value of one key from one source. The values of several sources stand side by side; a new
// value takes the place of the old one of the same key and source. Keys are four opaque strings made above
// this room (train/planner/profile_keys.h); nothing here looks into them.
//
// The file is an ordinary SQLite database with a rollback journal, because write-ahead logging needs memory
// that all processes share, and profiles often lie on a network file system. It carries an application id and
// a version. What is no profile, is damaged, or is of a newer version is refused and stays as it is.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/core/base/units.h"

namespace tessera {

/// What a measurement is of. Equal keys are the same measurement, on whichever rank, replica or plan.
struct ProfileKey {
  std::string mesh;      ///< class of the device mesh
  std::string pair;      ///< what the two chunks hold
  std::string schedule;  ///< the launch order
  std::string software;  ///< fingerprint of what ran it
  auto operator<=>(const ProfileKey&) const = default;
};

/// Worst first.
enum class ProfileSource : std::uint8_t {
  theory,      ///< predicted from tables and rooflines
  primitive,   ///< composed from durations measured task by task
  chunk_pair,  ///< the whole pair, measured on a device group
};
inline constexpr std::size_t kProfileSources = 3;
/// "theory", "primitive", "chunk_pair".
[[nodiscard]] std::string_view name(ProfileSource source) noexcept;
/// The inverse of name; nullopt for anything else.
[[nodiscard]] std::optional<ProfileSource> profile_source_by_name(std::string_view text) noexcept;
/// Relative error of a value that comes without one: 0.01 for a measured pair, and 0.15 for what is composed,
/// where the Tessera paper (OSDI '26) reports tails of 15 %.
[[nodiscard]] double default_error(ProfileSource source) noexcept;

struct ProfileValue {
  Seconds median;          ///< above 0
  double spread = 0;       ///< of the repetitions, relative to the median
  std::int64_t count = 1;  ///< repetitions; 0 for a prediction
  double error = 0;        ///< the truth lies within median · (1 ± error); below 1
  bool operator==(const ProfileValue&) const = default;
};

struct ProfileCell {
  ProfileKey key;
  ProfileSource source = ProfileSource::chunk_pair;
  ProfileValue value;
  bool operator==(const ProfileCell&) const = default;
};

/// All that is known of one key, by source.
struct ProfileEntry {
  std::array<std::optional<ProfileValue>, kProfileSources> values;

  [[nodiscard]] const std::optional<ProfileValue>& of(ProfileSource source) const noexcept {
    return values[static_cast<std::size_t>(source)];
  }
  /// A measured pair before composed primitives before theory; nullopt when nothing is known.
  [[nodiscard]] std::optional<ProfileSource> best() const noexcept;
};

/// What add() did.
struct ProfileAdded {
  std::int64_t fresh = 0;     ///< cells that were not there
  std::int64_t replaced = 0;  ///< cells that had a value
};

enum class ProfileAccess : std::uint8_t {
  read,   ///< the file must be there
  write,  ///< it is made when it is not there; its folder must be
};

/// Used by one thread at a time, and not across a fork; any number of objects and processes may have the same
/// file open. Every error names the file.
class ProfileDatabase {
 public:
  /// `patience`: how long a call waits for other processes before it gives up, in all.
  [[nodiscard]] static Result<ProfileDatabase> open(const std::string& path, ProfileAccess access,
                                                    Seconds patience = Seconds(30));
  ProfileDatabase(ProfileDatabase&&) noexcept;
  ProfileDatabase& operator=(ProfileDatabase&&) noexcept;
  ~ProfileDatabase();

  /// One entry per key, in the order asked; an unknown key has an empty one.
  [[nodiscard]] Result<std::vector<ProfileEntry>> find(std::span<const ProfileKey> keys) const;
  /// Every cell of these mesh and software strings, by key and source.
  [[nodiscard]] Result<std::vector<ProfileCell>> cells(std::string_view mesh,
                                                       std::string_view software) const;
  /// Every cell, by key and source.
  [[nodiscard]] Result<std::vector<ProfileCell>> cells() const;

  /// All or none. Refuses an empty key string and a value out of its range; of two cells of one key and
  /// source the later counts.
  [[nodiscard]] Result<ProfileAdded> add(std::span<const ProfileCell> cells);

 private:
  class Connection;
  explicit ProfileDatabase(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace tessera
