// What the model tests share: reading text or files into models, and the golden tables.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/core/base/document.h"
#include "tessera/core/model/import.h"

namespace tessera::testing_models {

inline Result<ModelSpec> import_text(std::string_view text, DocumentFormat format = DocumentFormat::json,
                                     const std::string& file = "config.json") {
  auto document = Document::parse(text, file, format);
  if (!document) return std::unexpected(document.error());
  return import_model(document->root(), "test");
}

inline std::string error_of(std::string_view text, DocumentFormat format = DocumentFormat::json) {
  const auto model = import_text(text, format);
  return model ? "no error" : model.error().text();
}

inline Document read_golden(const std::string& name) {
  auto document = Document::read(std::string(TESSERA_TEST_DATA) + "/models/" + name);
  EXPECT_TRUE(document.has_value()) << document.error().text();
  return *document;
}

/// The config.json of a published model: from the repository, else from the folder beside it, else nothing.
inline std::optional<std::string> find_config(const std::string& name) {
  for (const std::string& folder :
       {std::string(TESSERA_TEST_DATA) + "/hf-configs", std::string(TESSERA_SOURCE) + "/data/models",
        std::string(TESSERA_SHARED) + "/hf-configs",
        std::string(TESSERA_SHARED) + "/case-files/hf-configs"}) {
    const std::string path = folder + "/" + name + ".json";
    if (std::filesystem::exists(path)) return path;
  }
  return std::nullopt;
}

inline ModelSpec import_config(const std::string& name) {
  const auto path = find_config(name);
  EXPECT_TRUE(path.has_value()) << name;
  auto model = import_model_file(*path);
  EXPECT_TRUE(model.has_value()) << model.error().text();
  return *model;
}

/// Takes a config that stands only beside the repository, or skips the test.
#define TESSERA_NEED_CONFIG(name)         \
  if (!testing_models::find_config(name)) \
  GTEST_SKIP() << name << ".json is not redistributable and not beside the repository"

/// The models of goldens.yaml, for parameterised tests.
inline std::vector<std::string> published_names() {
  const auto document = Document::read(std::string(TESSERA_TEST_DATA) + "/models/goldens.yaml");
  std::vector<std::string> out;
  const Cursor models = *document->root().find("models");
  for (std::size_t i = 0; i < models.size(); ++i) out.emplace_back(models.key(i));
  return out;
}

inline std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string out = info.param;
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return out;
}

}  // namespace tessera::testing_models
