// The profile database: what goes in comes out, from many processes at once, and no foreign file is touched.
#include "tessera/core/cost/profile_database.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tessera/core/base/text.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

class ProfileFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              fmt::format("tessera-profile-{}-{}", test->name(), getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
    std::filesystem::remove_all(folder_);
  }
  [[nodiscard]] std::string path(const std::string& name = "profile.db") const {
    return (folder_ / name).string();
  }
  std::string written(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  static std::string refusal(const std::string& file, ProfileAccess access) {
    const auto database = ProfileDatabase::open(file, access);
    if (database) return "no error";
    EXPECT_EQ(database.error().kind, ErrorKind::bad_input);
    return database.error().text();
  }
  void sql(const std::string& file, const std::string& text) const {
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(file.c_str(), &handle), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(handle, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(handle);
    sqlite3_close(handle);
  }
  std::filesystem::path folder_;
};

ProfileCell cell(int pair, ProfileSource source, double median) {
  return {.key = {"mesh", fmt::format("pair {}", pair), "order", "software"},
          .source = source,
          .value = {.median = Seconds(median), .spread = 0.25, .count = 50, .error = 0.01}};
}

TEST_F(ProfileFile, SourcesStandSideBySideAndTheBestWins) {
  auto database = ProfileDatabase::open(path(), ProfileAccess::write);
  ASSERT_TRUE(database) << database.error().text();
  const std::vector<ProfileCell> cells{
      cell(1, ProfileSource::theory, 0.5),      cell(1, ProfileSource::chunk_pair, 0.25),
      cell(1, ProfileSource::primitive, 0.375), cell(2, ProfileSource::theory, 1),
      cell(3, ProfileSource::primitive, 2),     cell(3, ProfileSource::theory, 3)};
  const auto added = database->add(cells);
  ASSERT_TRUE(added) << added.error().text();
  EXPECT_EQ(added->fresh, 6);
  EXPECT_EQ(added->replaced, 0);

  const auto found = database->find(std::vector<ProfileKey>{
      cells[3].key, {"mesh", "pair 9", "order", "software"}, cells[0].key, cells[4].key, cells[0].key});
  ASSERT_TRUE(found) << found.error().text();
  ASSERT_EQ(found->size(), 5U);
  EXPECT_EQ((*found)[0].best(), ProfileSource::theory);
  EXPECT_EQ((*found)[1].best(), std::nullopt);
  EXPECT_EQ((*found)[2].best(), ProfileSource::chunk_pair);
  EXPECT_EQ((*found)[2].of(ProfileSource::theory), cells[0].value);
  EXPECT_EQ((*found)[2].of(ProfileSource::primitive), cells[2].value);
  EXPECT_EQ((*found)[2].of(ProfileSource::chunk_pair), cells[1].value);
  EXPECT_EQ((*found)[3].best(), ProfileSource::primitive);
  EXPECT_EQ((*found)[4].best(), ProfileSource::chunk_pair);
}

TEST_F(ProfileFile, ANewValueTakesThePlaceOfTheOld) {
  auto database = ProfileDatabase::open(path(), ProfileAccess::write);
  ASSERT_TRUE(database);
  ASSERT_TRUE(database->add(std::vector{cell(1, ProfileSource::chunk_pair, 1)}));
  const auto added = database->add(
      std::vector{cell(1, ProfileSource::chunk_pair, 2), cell(2, ProfileSource::chunk_pair, 3)});
  ASSERT_TRUE(added);
  EXPECT_EQ(added->fresh, 1);
  EXPECT_EQ(added->replaced, 1);
  // Another process sees it.
  const auto other = ProfileDatabase::open(path(), ProfileAccess::read);
  ASSERT_TRUE(other) << other.error().text();
  const auto all = other->cells();
  ASSERT_TRUE(all);
  EXPECT_EQ(*all,
            (std::vector{cell(1, ProfileSource::chunk_pair, 2), cell(2, ProfileSource::chunk_pair, 3)}));
}

TEST_F(ProfileFile, KeysAreOpaque) {
  auto database = ProfileDatabase::open(path(), ProfileAccess::write);
  ASSERT_TRUE(database);
  std::vector<ProfileCell> cells(3, cell(1, ProfileSource::chunk_pair, 1));
  cells[0].key = {"'; DROP TABLE cell; --", "%", "_", "\"α\""};
  cells[1].key = {std::string("a\0b", 3), std::string(10'000, 'x'), " ", "\n"};
  cells[2].key = {"a", "b", "c", "d"};
  ASSERT_TRUE(database->add(cells));
  for (const ProfileCell& each : cells) {
    const auto some = database->cells(each.key.mesh, each.key.software);
    ASSERT_TRUE(some) << some.error().text();
    EXPECT_EQ(*some, std::vector{each});
  }
  EXPECT_EQ(database->cells("a", "b")->size(), 0U);
}

TEST_F(ProfileFile, ABadCellLeavesTheOthersOutToo) {
  auto database = ProfileDatabase::open(path(), ProfileAccess::write);
  ASSERT_TRUE(database);
  const auto refused = [&](auto change) {
    std::vector<ProfileCell> cells{cell(1, ProfileSource::chunk_pair, 1),
                                   cell(2, ProfileSource::chunk_pair, 1)};
    change(cells[1]);
    const auto added = database->add(cells);
    return added ? std::string("no error") : added.error().text();
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(refused([](ProfileCell& c) { c.key.pair = ""; }), "cells[1]: the key's pair is empty");
  EXPECT_THAT(refused([](ProfileCell& c) { c.value.median = Seconds(0); }), HasSubstr("median 0 s"));
  EXPECT_THAT(refused([&](ProfileCell& c) { c.value.median = Seconds(nan); }), HasSubstr("median nan s"));
  EXPECT_THAT(refused([](ProfileCell& c) { c.value.spread = -1; }), HasSubstr("spread -1"));
  EXPECT_THAT(refused([](ProfileCell& c) { c.value.count = -1; }), HasSubstr("count -1"));
  EXPECT_THAT(refused([](ProfileCell& c) { c.value.error = 1; }), HasSubstr("error 1"));
  EXPECT_EQ(database->cells()->size(), 0U);
}

// Each process writes its own cells and one that all share, in transactions of several cells, and reads while
// the others write: a reader never sees half a transaction, and nothing is lost.
TEST_F(ProfileFile, ProcessesShareAFile) {
  constexpr int kProcesses = 6, kRounds = 25;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    // Also the making of the file is a race.
    auto database = ProfileDatabase::open(path(), ProfileAccess::write);
    if (!database) _exit(1);
    for (int round = 0; round < kRounds; ++round) {
      const int own = 1000 * (p + 1) + 2 * round;
      const double time = 1 + p + kProcesses * round;
      if (!database->add(std::vector{
              cell(own, ProfileSource::chunk_pair, time), cell(0, ProfileSource::primitive, time),
              cell(0, ProfileSource::chunk_pair, time), cell(own + 1, ProfileSource::theory, time)}))
        _exit(2);
      const auto shared = database->find(std::vector{cell(0, ProfileSource::theory, 1).key});
      if (!shared || shared->front().of(ProfileSource::primitive)->median !=
                         shared->front().of(ProfileSource::chunk_pair)->median)
        _exit(3);
    }
    _exit(0);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  const auto database = ProfileDatabase::open(path(), ProfileAccess::read);
  ASSERT_TRUE(database) << database.error().text();
  const auto all = database->cells();
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), static_cast<std::size_t>(2 * kProcesses * kRounds + 2));
}

TEST_F(ProfileFile, ALockThatStaysIsToldAndChangesNothing) {
  auto database = ProfileDatabase::open(path(), ProfileAccess::write, Seconds(0.2));
  ASSERT_TRUE(database);
  ASSERT_TRUE(database->add(std::vector{cell(1, ProfileSource::chunk_pair, 1)}));
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  const auto blocked = database->add(std::vector{cell(2, ProfileSource::chunk_pair, 1)});
  ASSERT_FALSE(blocked);
  EXPECT_EQ(blocked.error().kind, ErrorKind::infeasible);
  EXPECT_THAT(blocked.error().text(), HasSubstr("other processes kept this profile database locked"));
  EXPECT_EQ(database->cells()->size(), 1U);  // readers go on
  sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr);
  sqlite3_close(other);
  EXPECT_TRUE(database->add(std::vector{cell(2, ProfileSource::chunk_pair, 1)}));
}

TEST_F(ProfileFile, ABlankFileIsAnEmptyProfile) {
  const std::string file = written("blank.db", "");
  auto reader = ProfileDatabase::open(file, ProfileAccess::read);
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_EQ(reader->cells()->size(), 0U);
  EXPECT_EQ(std::filesystem::file_size(file), 0U);  // to read is not to make
  auto writer = ProfileDatabase::open(file, ProfileAccess::write);
  ASSERT_TRUE(writer) << writer.error().text();
  ASSERT_TRUE(writer->add(std::vector{cell(1, ProfileSource::chunk_pair, 1)}));
  EXPECT_EQ(reader->cells()->size(), 1U);
}

TEST_F(ProfileFile, ForeignFilesAreRefusedAndStayAsTheyAre) {
  const std::string other = path("other.db");
  sql(other, "CREATE TABLE thing(a); INSERT INTO thing VALUES (1)");
  const std::string newer = path("newer.db");
  ASSERT_TRUE(ProfileDatabase::open(newer, ProfileAccess::write));
  sql(newer, "PRAGMA user_version = 2");
  const std::string text = written("text.db", "model: ../data/models/Qwen3-Next-80B-A3B.json\n");
  const std::string garbage = written("garbage.db", std::string(8192, 'x'));
  // A profile whose table another hand has changed.
  const std::string changed = path("changed.db");
  ASSERT_TRUE(ProfileDatabase::open(changed, ProfileAccess::write));
  sql(changed, "ALTER TABLE cell DROP COLUMN spread");
  // A profile with its end cut off, and one with noise in its middle.
  const std::string cut = path("cut.db"), noise = path("noise.db");
  {
    auto database = ProfileDatabase::open(cut, ProfileAccess::write);
    std::vector<ProfileCell> cells;
    for (int i = 0; i < 500; ++i) cells.push_back(cell(i, ProfileSource::chunk_pair, 1));
    ASSERT_TRUE(database->add(cells));
  }
  std::filesystem::copy_file(cut, noise);
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) / 2);
  {
    std::fstream out(noise, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(static_cast<std::streamoff>(std::filesystem::file_size(noise) / 2));
    out << std::string(5000, '\xa5');
  }
  const std::pair<std::string, std::string> cases[] = {
      {other, "this is no profile database: another program made it"},
      {newer, "profile version 2 is newer than this program reads (1)"},
      {text, "this is no profile database: it is no SQLite file"},
      {garbage, "this is no profile database: it is no SQLite file"},
      {changed, "this profile database is damaged: no such column: spread"},
      {cut, "this profile database is damaged"},
      {noise, "this profile database is damaged"}};
  for (const auto& [file, message] : cases) {
    SCOPED_TRACE(file);
    const std::string before = read_file(file).value();
    for (const ProfileAccess access : {ProfileAccess::read, ProfileAccess::write})
      EXPECT_THAT(refusal(file, access), HasSubstr(file + ": " + message));
    EXPECT_EQ(read_file(file).value(), before);
  }
  // Nothing is left beside them.
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    EXPECT_EQ(entry.path().extension(), ".db") << entry.path();
}

TEST_F(ProfileFile, AWrongValueInTheFileIsFound) {
  ASSERT_TRUE(ProfileDatabase::open(path(), ProfileAccess::write)
                  ->add(std::vector{cell(1, ProfileSource::theory, 1)}));
  sql(path(), "UPDATE cell SET median = -1");
  const auto database = ProfileDatabase::open(path(), ProfileAccess::read);
  ASSERT_TRUE(database);
  EXPECT_THAT(database->cells().error().text(), HasSubstr("a cell is wrong: median -1 s"));
  sql(path(), "UPDATE cell SET median = 1, source = 'guess'");
  EXPECT_THAT(database->cells().error().text(), HasSubstr("a cell has the unknown source guess"));
}

TEST_F(ProfileFile, PlacesThatCannotHoldADatabase) {
  EXPECT_THAT(refusal("", ProfileAccess::write), HasSubstr("the name of the profile database is empty"));
  EXPECT_THAT(refusal(std::string("a\0b", 3), ProfileAccess::write), HasSubstr("NUL"));
  EXPECT_THAT(refusal(path("none.db"), ProfileAccess::read), HasSubstr("none.db: no such file"));
  EXPECT_THAT(refusal(folder_.string(), ProfileAccess::write),
              HasSubstr("expected a file, found a directory"));
  EXPECT_THAT(refusal(path("no/folder/x.db"), ProfileAccess::write), HasSubstr("there is no folder"));
  EXPECT_THAT(refusal("/dev/null", ProfileAccess::write), HasSubstr("is no regular file"));
  written("file", "x");
  EXPECT_THAT(refusal(path("file/x.db"), ProfileAccess::write),
              testing::AnyOf(HasSubstr("there is no folder"), HasSubstr("cannot be opened")));
  EXPECT_THAT(refusal("/proc/x.db", ProfileAccess::write), HasSubstr("/proc/x.db: cannot be opened"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_) || std::filesystem::exists(path("file")));
}

// In a process of its own that is not root, for root may write everywhere.
TEST_F(ProfileFile, AFolderThatCannotBeWritten) {
  ASSERT_TRUE(ProfileDatabase::open(path(), ProfileAccess::write));
  constexpr uid_t kNobody = 65534;
  if (geteuid() == 0) {
    ASSERT_EQ(chown(folder_.c_str(), kNobody, kNobody), 0);
    ASSERT_EQ(chown(path().c_str(), kNobody, kNobody), 0);
  }
  std::filesystem::permissions(folder_,
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (geteuid() == 0 && setuid(kNobody) != 0) _exit(1);
    const auto fresh = ProfileDatabase::open(path("new.db"), ProfileAccess::write);
    if (fresh || fresh.error().message.find("cannot be opened") == std::string::npos) _exit(2);
    auto database = ProfileDatabase::open(path(), ProfileAccess::write);
    if (!database) _exit(3);
    const auto added = database->add(std::vector{cell(1, ProfileSource::theory, 1)});
    if (added || added.error().file != path()) _exit(4);
    _exit(database->cells()->empty() ? 0 : 5);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(ProfileFile, ANameWithAMeaningIsAFile) {
  const auto old = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  for (const std::string name : {":memory:", "file:x.db?mode=memory"}) {
    auto database = ProfileDatabase::open(name, ProfileAccess::write);
    EXPECT_TRUE(database) << database.error().text();
    EXPECT_TRUE(std::filesystem::exists(folder_ / name)) << name;
  }
  std::filesystem::current_path(old);
}

}  // namespace
}  // namespace tessera
