// Every file of tests/data/bad/config against the message that stands beside it.
#include <gmock/gmock.h>

#include "core/model/model_testing.h"
#include "tessera/core/base/text.h"

namespace tessera {
namespace {

TEST(BadConfig, MessagesAreTheGoldenOnes) {
  const std::filesystem::path folder = std::filesystem::path(TESSERA_TEST_DATA) / "bad" / "config";
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") continue;
    ++files;
    const std::string shown = "config/" + entry.path().filename().string();
    const auto text = read_file(entry.path().string());
    ASSERT_TRUE(text) << text.error().text();
    const auto format = entry.path().extension() == ".json" ? DocumentFormat::json : DocumentFormat::yaml;
    const auto model = testing_models::import_text(*text, format, shown);
    ASSERT_FALSE(model) << shown << " was accepted";
    EXPECT_EQ(model.error().kind, ErrorKind::bad_input);
    auto golden = entry.path();
    golden.replace_extension(".txt");
    const auto expected = read_file(golden.string());
    ASSERT_TRUE(expected) << expected.error().text();
    EXPECT_EQ(model.error().text(), trim(*expected)) << shown;
  }
  EXPECT_GE(files, 20U);
}

}  // namespace
}  // namespace tessera
