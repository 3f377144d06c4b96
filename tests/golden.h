// Golden texts: what a person reads is compared with a file, whole. tools/update_golden.sh rewrites the
// files.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tessera/core/base/text.h"

namespace tessera {

inline void expect_golden(const std::string& text, const std::filesystem::path& file) {
  if (std::getenv("TESSERA_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_files(std::vector<FileToWrite>{{file.string(), text}}));
    return;
  }
  const auto golden = read_file(file.string());
  ASSERT_TRUE(golden) << golden.error().text() << "\nMake it with tools/update_golden.sh. The text is:\n"
                      << text;
  EXPECT_EQ(text, *golden) << "against " << file;
}

/// Removes the folder from a message, so that it reads the same in every checkout.
inline std::string without_folder(std::string text, const std::string& folder) {
  for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder))
    text.erase(at, folder.size());
  return text;
}

/// Files of a folder with this extension, sorted by name.
inline std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder,
                                                   const std::string& extension) {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == extension) out.push_back(entry.path());
  std::ranges::sort(out);
  return out;
}

}  // namespace tessera
