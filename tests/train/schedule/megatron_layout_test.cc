#include "tessera/train/schedule/megatron_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/core/base/document.h"
#include "train/testing_model.h"

namespace tessera::train {
namespace {

using testing::HasSubstr;

std::vector<std::int64_t> layers_per_stage(const ModelSpec& model, const Partition& partition) {
  std::vector<std::int64_t> out;
  for (const BlockRange& range : partition.stages) {
    out.push_back(0);
    for (std::int32_t b = range.begin; b < range.end; ++b)
      out.back() += model.blocks[static_cast<std::size_t>(b)].kind == BlockKind::layer ? 1 : 0;
  }
  return out;
}

std::string join(const std::vector<std::string>& stages) {
  std::string out;
  for (std::size_t i = 0; i < stages.size(); ++i) out += (i == 0 ? "" : "|") + stages[i];
  return out;
}

// Every string of the parser's own record: the same stages, or a refusal where it refuses.
TEST(MegatronLayout, AgreesWithTheReleasedParser) {
  const auto file = Document::read(TESSERA_TEST_DATA "/layouts/megatron_layout.json");
  ASSERT_TRUE(file) << file.error().text();
  const Cursor cases = file->root().find("cases").value();
  ASSERT_EQ(cases.size(), 15U);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Cursor c = cases.item(i);
    const std::string layout = c.required_string("layout").value();
    SCOPED_TRACE(layout);
    const MegatronSizes sizes{.pp = c.required_integer("pp", 1, 64).value(),
                              .layers = c.required_integer("num_layers", 0, 200).value(),
                              .mtp = c.required_integer("mtp_num_layers", 0, 9).value()};
    const ModelSpec model = uniform_model(sizes.layers, sizes.mtp);
    const auto partition = read_megatron_layout(layout, model, sizes);
    ASSERT_EQ(partition.has_value(), c.required_boolean("ok").value());
    if (!partition) continue;
    const Cursor stages = c.find("stages").value();
    std::vector<std::string> expected;
    for (std::size_t s = 0; s < stages.size(); ++s) expected.push_back(stages.item(s).string().value());
    EXPECT_EQ(expand_megatron_layout(layout).value(), expected);
    EXPECT_EQ(write_megatron_layout(model, *partition, sizes.pp).value(), join(expected));
  }
}

TEST(MegatronLayout, ReadsTheLayoutsPeopleUse) {
  const auto file = Document::read(TESSERA_TEST_DATA "/layouts/megatron-layouts.json");
  ASSERT_TRUE(file) << file.error().text();
  const Cursor layouts = file->root().find("layouts").value();
  ASSERT_EQ(layouts.size(), 23U);
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const Cursor c = layouts.item(i);
    const std::string id = c.required_string("id").value();
    SCOPED_TRACE(id);
    const Cursor derived = c.find("derived").value();
    const std::int64_t stages = derived.required_integer("stages", 1, 200).value();
    MegatronSizes sizes{.pp = c.integer_or("pp", 1, 64, stages).value(),
                        .layers = c.required_integer("num_layers", 1, 200).value(),
                        .mtp = c.required_integer("mtp_num_layers", 0, 9).value()};
    if (c.present("vp")) sizes.declared_vp = c.required_integer("vp", 1, 64).value();
    const ModelSpec model = uniform_model(sizes.layers, sizes.mtp);
    const std::string layout = c.required_string("layout").value();
    const auto partition = read_megatron_layout(layout, model, sizes);
    if (id == "dsv3-gb200-dev-declared-vp2") {
      ASSERT_FALSE(partition);
      EXPECT_THAT(partition.error().text(),
                  HasSubstr("16 stages over pp = 4 ranks mean vp = 4, but vp = 2 is declared"));
      continue;
    }
    if (id == "mtp-split-3-dev-only" || id == "multi-loss-dev-only") {
      EXPECT_FALSE(partition);
      const auto expanded = expand_megatron_layout(layout).value();
      EXPECT_TRUE(check_megatron_layout(expanded, sizes, {.split_mtp = true, .several_losses = true}));
      continue;
    }
    ASSERT_TRUE(partition) << partition.error().text();
    const Cursor counts = derived.find("decoder_layers").value();
    std::vector<std::int64_t> expected;
    for (std::size_t s = 0; s < counts.size(); ++s) expected.push_back(counts.item(s).integer(0, 99).value());
    EXPECT_EQ(layers_per_stage(model, *partition), expected);
  }
}

// 61 layers, PP16 × VP2, a last rank with the loss alone.
TEST(MegatronLayout, CountsWhatIsMissing) {
  const ModelSpec model = uniform_model(61);
  const MegatronSizes sizes{.pp = 16, .declared_vp = 2, .layers = 61};
  const auto first = read_megatron_layout("Et|(tt|)*29L|", model, sizes);
  ASSERT_FALSE(first);
  EXPECT_THAT(first.error().message, HasSubstr("the last stage (31) is \"\" and does not end with L"));
  EXPECT_THAT(first.error().message, HasSubstr("59 t for 61 layers: 2 missing"));
  const auto second = read_megatron_layout("Et|(tt|)*29|L", model, sizes);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("59 t for 61 layers: 2 missing"));
  const auto third = read_megatron_layout("Et|(tt|)*28t|t|L", model, sizes);
  ASSERT_FALSE(third);
  EXPECT_THAT(third.error().message, HasSubstr("59 t for 61 layers: 2 missing"));
  const auto right = read_megatron_layout("Ettt|(tt|)*14|(tt|)*15L", model, sizes);
  ASSERT_TRUE(right) << right.error().text();
  EXPECT_EQ(right->stages.size(), 32U);
  EXPECT_EQ(right->stages[15].begin, right->stages[15].end);
  EXPECT_EQ(layers_per_stage(model, *right)[31], 0);
}

TEST(MegatronLayout, TellsAHybridPatternFromALayout) {
  for (const char* text : {"M-M-M-M*-M-|M-M-M*-M-M-", "E*E|E*E"}) {
    const auto read = expand_megatron_layout(text);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().text(), HasSubstr("hybrid layer pattern"));
  }
}

TEST(MegatronLayout, RefusesEndlessRepeats) {
  EXPECT_FALSE(expand_megatron_layout("Et*999999999L"));
  EXPECT_FALSE(expand_megatron_layout("E(t*1000)*1000L"));
  EXPECT_FALSE(expand_megatron_layout("Et*99999999999999999999L"));
  EXPECT_FALSE(expand_megatron_layout("E t|tL"));
}

// 26 layers, PP4 × VP2, only the last rank's count given.
TEST(MegatronSplit, LastStageCountAlone) {
  const ModelSpec model = uniform_model(26);
  const auto partition = megatron_split(model, {.pp = 4, .vp = 2, .last_stage_layers = 2});
  ASSERT_TRUE(partition) << partition.error().text();
  EXPECT_EQ(write_megatron_layout(model, *partition, 4).value(), "Etttt|tttt|tttt|t|tttt|tttt|tttt|tL");
}

TEST(MegatronSplit, EmbeddingAndLossCountedAsLayers) {
  const ModelSpec model = uniform_model(6);
  const auto partition =
      megatron_split(model, {.pp = 4, .vp = 2, .account_for_embedding = true, .account_for_loss = true});
  ASSERT_TRUE(partition) << partition.error().text();
  EXPECT_EQ(write_megatron_layout(model, *partition, 4).value(), "E|t|t|t|t|t|t|L");
  EXPECT_EQ(read_megatron_layout("E|t|t|t|t|t|t|L", model, {.pp = 4, .layers = 6}).value(), *partition);
  EXPECT_FALSE(megatron_split(model, {.pp = 4, .vp = 2, .last_stage_layers = 2, .account_for_loss = true}));
}

// Each of these once trained a smaller model without a word.
TEST(MegatronSplit, RefusesToLoseLayers) {
  const auto message = [](std::int64_t layers, const MegatronSplit& split) {
    const auto partition = megatron_split(uniform_model(layers), split);
    EXPECT_FALSE(partition);
    return partition ? std::string() : partition.error().message;
  };
  EXPECT_EQ(message(80, {.pp = 16, .vp = 2, .layers_per_virtual_stage = 2}),
            "pp × vp × layers per virtual stage = 16 × 2 × 2 = 64, model has 80 layers: 16 would be lost");
  EXPECT_EQ(message(30, {.pp = 4}),
            "30 layers without the 0 given do not divide over 4 ranks: 2 would be lost");
  EXPECT_EQ(message(48, {.pp = 2, .first_stage_layers = 11, .last_stage_layers = 13}),
            "first + last = 24, model has 48, pp = 2 leaves no stage for the other 24");
  EXPECT_EQ(message(10, {.pp = 3}),
            "10 layers without the 0 given do not divide over 3 ranks: 1 would be lost");
  EXPECT_EQ(message(61, {.pp = 16}),
            "61 layers without the 0 given do not divide over 16 ranks: 13 would be lost");
}

}  // namespace
}  // namespace tessera::train
