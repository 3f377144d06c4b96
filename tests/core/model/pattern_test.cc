// Layer patterns of published models against a golden table written down by hand from the families' rules.
#include <gmock/gmock.h>

#include <fstream>

#include "core/model/model_testing.h"
#include "tessera/core/base/text.h"

namespace tessera {
namespace {

using namespace testing_models;

// "AD [M2D*8 AD]*3" written out: words repeated by *n, groups in brackets likewise.
std::string expand(std::string_view compact) {
  std::string out;
  const auto append = [&out](std::string_view words, std::int64_t times) {
    for (std::int64_t i = 0; i < times; ++i) {
      if (!out.empty()) out += ' ';
      out += words;
    }
  };
  const auto times_after = [](std::string_view text, std::size_t& at) {
    if (at >= text.size() || text[at] != '*') return std::int64_t{1};
    std::size_t end = ++at;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    const auto times = to_integer(text.substr(at, end - at)).value();
    at = end;
    return times;
  };
  for (std::size_t at = 0; at < compact.size();) {
    if (compact[at] == ' ') {
      ++at;
    } else if (compact[at] == '[') {
      const auto close = compact.find(']', at);
      const std::string inner = expand(compact.substr(at + 1, close - at - 1));
      at = close + 1;
      append(inner, times_after(compact, at));
    } else {
      const auto end = std::min(compact.find_first_of(" *", at), compact.size());
      const std::string word(compact.substr(at, end - at));
      at = end;
      append(word, times_after(compact, at));
    }
  }
  return out;
}

TEST(Pattern, CompactNotationExpands) {
  EXPECT_EQ(expand("AD AE*2"), "AD AE AE");
  EXPECT_EQ(expand("M2 [E M2]*2 A"), "M2 E M2 E M2 A");
}

class PublishedPattern : public testing::TestWithParam<std::string> {};

TEST_P(PublishedPattern, EqualsTheGolden) {
  const Document goldens = read_golden("goldens.yaml");
  const Cursor golden = *goldens.root().find("models")->find(GetParam());
  TESSERA_NEED_CONFIG(GetParam());
  const ModelSpec model = import_config(GetParam());
  EXPECT_EQ(layer_pattern(model), expand(*golden.required_string("pattern")));
  EXPECT_EQ(model.layers(), *golden.required_integer("layers", 1, 4096));
}

INSTANTIATE_TEST_SUITE_P(All, PublishedPattern, testing::ValuesIn(published_names()), test_name);

TEST(Pattern, TheTableHoldsAllFortySixModels) {
  EXPECT_EQ(published_names().size(), 46U);
}

TEST(Pattern, HandmadeConfigsOfEveryFamily) {
  const Document goldens = read_golden("handmade-patterns.yaml");
  std::size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(TESSERA_TEST_DATA) + "/handmade-configs")) {
    if (entry.path().extension() != ".json") continue;
    ++files;
    const auto model = import_model_file(entry.path().string());
    ASSERT_TRUE(model) << model.error().text();
    EXPECT_EQ(layer_pattern(*model), *goldens.root().required_string(model->name)) << model->name;
  }
  EXPECT_EQ(files, goldens.root().size());
}

TEST(Pattern, BlocksAreEmbeddingLayersMtpHead) {
  const ModelSpec model = import_config("DeepSeek-V3");
  ASSERT_EQ(model.blocks.size(), 1U + 61 + 1 + 1);
  EXPECT_EQ(model.blocks.front(), (Block{.kind = BlockKind::embedding}));
  EXPECT_EQ(model.blocks[1], (Block{.kind = BlockKind::layer, .layer = 0, .type = 0}));
  EXPECT_EQ(model.blocks[62], (Block{.kind = BlockKind::mtp, .layer = 61, .type = 1}));
  EXPECT_EQ(model.blocks.back(), (Block{.kind = BlockKind::head}));
  EXPECT_EQ(model.layer_types.size(), 2U);
  EXPECT_EQ(describe(model.layer_types[0]), "MLA + dense");
  EXPECT_EQ(describe(model.layer_types[1]), "MLA + MoE");
  EXPECT_EQ(model.family, "deepseek_v3");
  EXPECT_EQ(model.name, "DeepSeek-V3");
}

TEST(Pattern, ModelsWrittenForThisProjectEqualThePublishedOnes) {
  for (const auto& [ours, theirs] : {std::pair{"DeepSeek-V3.json", "DeepSeek-V3"},
                                     std::pair{"Nemotron-3-Super.yaml", "Nemotron-3-Super-120B-A12B-FP8"}}) {
    const std::string path = std::string(TESSERA_SHARED) + "/hf-configs/" + theirs + ".json";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << theirs << ".json is not beside the repository";
    const auto written = import_model_file(std::string(TESSERA_SOURCE) + "/data/models/" + ours);
    ASSERT_TRUE(written) << written.error().text();
    const auto published = import_model_file(path);
    ASSERT_TRUE(published) << published.error().text();
    EXPECT_EQ(written->layer_types, published->layer_types) << ours;
    EXPECT_EQ(written->blocks, published->blocks) << ours;
    EXPECT_EQ(written->hidden, published->hidden);
    EXPECT_EQ(written->vocabulary, published->vocabulary);
    EXPECT_EQ(written->tied_embeddings, published->tied_embeddings);
  }
}

TEST(Pattern, FamiliesAreSortedAndNamed) {
  const auto families = known_families();
  EXPECT_TRUE(std::ranges::is_sorted(families));
  EXPECT_THAT(families,
              testing::IsSupersetOf({"deepseek_v3", "qwen3_next", "nemotron_h", "kimi_linear", "gpt_oss"}));
}

TEST(Pattern, DescribesEveryKind) {
  EXPECT_EQ(describe({.mixer = GatedDeltaNet{}, .moe = MixtureOfExperts{}}), "Gated DeltaNet + MoE");
  EXPECT_EQ(
      describe(
          {.mixer = SoftmaxAttention{.window = 128}, .dense = DenseFeedForward{}, .moe = MixtureOfExperts{}}),
      "sliding window + dense and MoE");
  EXPECT_EQ(describe({.mixer = Mamba2{}}), "Mamba-2");
  EXPECT_EQ(describe({.moe = MixtureOfExperts{}}), "MoE");
  EXPECT_EQ(symbol({.mixer = ShortConvolution{}, .dense = DenseFeedForward{}}), "CD");
  EXPECT_EQ(symbol({.mixer = CompressedAttention{.ratio = 4}, .moe = MixtureOfExperts{}}), "AE");
  EXPECT_EQ(symbol({}), "");
}

}  // namespace
}  // namespace tessera
