// Cells as text: defaults, and each bad file's one clear error, word for word.
#include "tessera/core/cost/profile_file.h"

#include <gtest/gtest.h>

#include "golden.h"

namespace tessera {
namespace {

Result<std::vector<ProfileCell>> cells_in(const std::string& text,
                                          DocumentFormat format = DocumentFormat::yaml) {
  TESSERA_TRY(const Document document, Document::parse(text, "cells", format));
  return read_profile_cells(document.root());
}

TEST(ProfileCells, DefaultsFollowTheSource) {
  const auto cells = cells_in(
      "- {mesh: m, pair: p, schedule: 0000000000000012, software: s, median_ms: 2}\n"
      "- {mesh: m, pair: p, schedule: 0000000000000012, software: s, source: theory, median_ms: 3.5}\n"
      "- {mesh: m, pair: p, schedule: 0000000000000012, software: s, source: primitive, median_ms: 4,\n"
      "   spread: 0.02, count: 50, error: 0.08}\n");
  ASSERT_TRUE(cells) << cells.error().text();
  const ProfileKey key{"m", "p", "0000000000000012", "s"};  // digits alone stay what was written
  EXPECT_EQ(*cells,
            (std::vector<ProfileCell>{{key, ProfileSource::chunk_pair, {Seconds(2e-3), 0, 1, 0.01}},
                                      {key, ProfileSource::theory, {Seconds(3.5e-3), 0, 0, 0.15}},
                                      {key, ProfileSource::primitive, {Seconds(4e-3), 0.02, 50, 0.08}}}));
}

TEST(ProfileCells, JsonAndAMapAreReadToo) {
  const auto cells =
      cells_in(R"({"cells": [{"mesh": "m", "pair": "p", "schedule": "h", "software": "s", "median_ms": 2}]})",
               DocumentFormat::json);
  ASSERT_TRUE(cells) << cells.error().text();
  EXPECT_EQ(cells->size(), 1U);
}

TEST(BadInput, ProfileCellsAreRefusedWithTheirLine) {
  const std::filesystem::path folder = TESSERA_TEST_DATA "/bad/profile";
  const auto files = files_in(folder, ".yaml");
  ASSERT_GE(files.size(), 17U);
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename());
    const auto document = Document::read(file.string());
    ASSERT_TRUE(document) << document.error().text();
    const auto cells = read_profile_cells(document->root());
    ASSERT_FALSE(cells);
    EXPECT_EQ(cells.error().kind, ErrorKind::bad_input);
    auto golden = file;
    expect_golden(without_folder(cells.error().text(), folder.string() + "/") + "\n",
                  golden.replace_extension(".txt"));
  }
}

}  // namespace
}  // namespace tessera
