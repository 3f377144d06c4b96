#include "tessera/core/cluster/layout.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

using ::testing::HasSubstr;

Result<Layout> read(std::string_view yaml, std::int64_t gpus) {
  auto document = Document::parse(yaml, "job.yaml", DocumentFormat::yaml);
  if (!document) return std::unexpected(document.error());
  return read_layout(document->root(), gpus);
}

Layout layout(std::string_view yaml, std::int64_t gpus) {
  auto out = read(yaml, gpus);
  EXPECT_TRUE(out) << out.error().text();
  return out.value_or(Layout{});
}

TEST(ReadLayout, LetsTheWorldDecideDataParallel) {
  const Layout l =
      layout("{tp: 2, pp: 8, vp: 2, ep: 16, microbatches: 64, dtype: mxfp8, recompute: [moe, norm]}", 128);
  EXPECT_EQ(l.dp, 8);
  EXPECT_EQ(l.expert_dp(), 1);
  EXPECT_EQ(l.stages(), 16);
  EXPECT_EQ(l.dtype, Dtype::mxfp8);
  EXPECT_TRUE(l.recompute.moe && l.recompute.norm && !l.recompute.full);
}

TEST(ReadLayout, TakesTheGlobalBatchInSequences) {
  EXPECT_EQ(layout("{pp: 4, microbatch_size: 2, global_batch: 512}", 64).microbatches, 16);
  EXPECT_EQ(read("{pp: 4, microbatch_size: 2, global_batch: 500}", 64).error().text(),
            "job.yaml:1: global_batch: 500 is no multiple of microbatch_size × DP = 2 × 16 = 32\n"
            "  The nearest are 480 and 512.");
  EXPECT_THAT(read("{microbatches: 4, global_batch: 8}", 1).error().message,
              HasSubstr("microbatches is given too"));
  EXPECT_THAT(read("{pp: 1}", 1).error().message, HasSubstr("neither microbatches nor global_batch"));
}

TEST(ReadLayout, NamesWhatItDoesNotKnow) {
  EXPECT_THAT(read("{microbatches: 1, dtype: fp16}", 1).error().text(), HasSubstr("fp16 is no data type"));
  EXPECT_THAT(read("{microbatches: 1, recompute: everything}", 1).error().text(),
              HasSubstr("core_attention"));
  EXPECT_THAT(read("{tp: 3, microbatches: 1}", 8).error().text(),
              HasSubstr("= 3 does not divide the 8 GPUs"));
}

TEST(ReadLayout, KnowsEveryDtypeAndRecomputeUnitByItsName) {
  for (const Dtype dtype : kDtypes) EXPECT_EQ(dtype_by_name(name(dtype)), dtype);
  EXPECT_EQ(dtype_by_name("BF16"), std::nullopt);
  EXPECT_EQ(dtype_by_name(""), std::nullopt);
  static_assert(sizeof(Recompute) == kRecomputeUnits.size(), "one name for every unit");
  for (const RecomputeUnit& unit : kRecomputeUnits) {
    const Layout l = layout(fmt::format("{{microbatches: 1, recompute: [{}]}}", unit.name), 1);
    for (const RecomputeUnit& other : kRecomputeUnits)
      EXPECT_EQ(l.recompute.*other.member, other.name == unit.name) << unit.name << " sets " << other.name;
  }
}

// Products of sizes that are each fine must not overflow.
TEST(LayoutSizes, AreRefusedBeforeTheirProductsOverflow) {
  Layout l{.tp = 1 << 16, .pp = 1 << 16, .cp = 1 << 16, .dp = 1 << 20};
  auto refused = check_layout_sizes(l);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(),
            "layout.dp: TP × PP × CP × DP = 65536 × 65536 × 65536 × 1048576 is more than 16777216 ranks\n"
            "  No machine is that large.");
  EXPECT_EQ(check_layout(l, 0, nullptr).error().text(), refused.error().text()) << "world() is 0 modulo 2⁶⁴";
  l = {.dp = 1 << 20, .microbatches = 1 << 20, .sequence = 1 << 30};
  EXPECT_THAT(check_layout_sizes(l).error().text(),
              HasSubstr("1048576 × 1 × 1073741824 × 1048576 is more than 1125899906842624 tokens a step"));
  l = {.ep = 1 << 20, .etp = 1 << 20};
  EXPECT_THAT(check_layout_sizes(l).error().text(),
              HasSubstr("layout.ep: PP × EP × ETP = 1 × 1048576 × 1048576"));
  l = {.pp = 1 << 13, .vp = 1 << 13};
  EXPECT_THAT(check_layout_sizes(l).error().text(), HasSubstr("layout.vp: PP × VP = 8192 × 8192"));
  EXPECT_THAT(check_layout_sizes({.tp = 0}).error().text(), HasSubstr("layout.tp: 0 is not a size"));
  EXPECT_TRUE(check_layout_sizes({.tp = 8,
                                  .pp = 64,
                                  .vp = 4,
                                  .ep = 64,
                                  .cp = 8,
                                  .dp = 4096,
                                  .microbatches = 4096,
                                  .sequence = 1 << 20}));
}

TEST(LayoutSizes, AreCheckedWhereALayoutIsRead) {
  EXPECT_EQ(read("{global_batch: 1099511627776, sequence: 1}", 1).error().text(),
            "job.yaml:1: 1099511627776 microbatches are more than 1048576\n"
            "  Raise microbatch_size or dp, or lower global_batch.");
  EXPECT_THAT(read("{dp: 1048576, tp: 65536, microbatches: 1}", 8).error().text(),
              HasSubstr("65536 × 1 × 1 × 1048576 is more than 16777216 ranks"));
}

// "EP must divide DP" is not the rule: experts and attention factor the same ranks twice.
TEST(CheckLayout, FoldsExpertsOverTheRanksOfAStage) {
  const Layout a = layout("{pp: 8, tp: 2, cp: 2, ep: 64, microbatches: 8}", 512);
  EXPECT_EQ(a.dp, 16);
  EXPECT_EQ(a.expert_dp(), 1);
  EXPECT_TRUE(check_layout(a, 512, nullptr));

  const Layout b = layout("{cp: 4, ep: 8, microbatches: 8}", 32);
  EXPECT_EQ(b.dp, 8);
  EXPECT_EQ(b.expert_dp(), 4);
  EXPECT_TRUE(check_layout(b, 32, nullptr));

  const Layout c = layout("{tp: 2, cp: 2, dp: 2, ep: 8, microbatches: 8}", 8);
  EXPECT_EQ(c.expert_dp(), 1);
  EXPECT_TRUE(check_layout(c, 8, nullptr));

  const auto d = check_layout(layout("{pp: 8, tp: 2, cp: 2, ep: 48, microbatches: 8}", 512), 512, nullptr);
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().text(),
            "layout.ep: 48 does not divide world/PP = 64\n"
            "  Experts fold over the ranks of one pipeline stage: (world/PP) % (EP × ETP) must be 0. "
            "EP can be 1, 2, 4, 8, 16, 32 or 64.");
}

TEST(CheckLayout, SaysWhenTheTargetDoesNotFold) {
  const Layout a = layout("{pp: 8, tp: 2, cp: 2, ep: 64, microbatches: 8}", 512);
  const auto strict = check_layout(a, 512, nullptr, false);
  ASSERT_FALSE(strict);
  EXPECT_THAT(strict.error().text(), HasSubstr("64 does not divide DP × CP = 16 × 2 = 32"));
  EXPECT_THAT(strict.error().text(), HasSubstr("does not fold experts"));
  EXPECT_TRUE(check_layout(layout("{cp: 4, ep: 8, microbatches: 8}", 32), 32, nullptr, false));
}

// Four layers with 8, 16, 8 and 16 experts.
ModelSpec pruned() {
  ModelSpec model{.name = "pruned", .hidden = 64, .vocabulary = 128};
  for (const std::int64_t experts : {8, 16}) {
    Layer layer;
    layer.mixer = SoftmaxAttention{.query_heads = 4, .kv_heads = 4, .head_dim = 16, .value_dim = 16};
    layer.moe = MixtureOfExperts{.experts = experts, .top_k = 2, .expert_width = 32};
    model.layer_types.push_back(layer);
  }
  model.blocks.push_back({.kind = BlockKind::embedding});
  for (std::int32_t i = 0; i < 4; ++i)
    model.blocks.push_back({.kind = BlockKind::layer, .layer = i, .type = i % 2});
  model.blocks.push_back({.kind = BlockKind::head});
  return model;
}

TEST(CheckLayout, NamesTheLayersWithTooFewExperts) {
  const ModelSpec model = pruned();
  EXPECT_TRUE(check_layout(layout("{ep: 8, microbatches: 1}", 16), 16, &model));
  const auto refused = check_layout(layout("{ep: 16, microbatches: 1}", 16), 16, &model);
  ASSERT_FALSE(refused);
  EXPECT_EQ(
      refused.error().text(),
      "layout.ep: layers 0 and 2 have 8 experts, which do not divide over EP = 16\n"
      "  Every EP rank needs the same whole number of experts of each MoE layer. EP can be 1, 2, 4 or 8.");
}

TEST(CheckLayout, KeepsTheOtherRules) {
  const ModelSpec model = pruned();
  EXPECT_THAT(check_layout(layout("{tp: 8, microbatches: 1}", 8), 8, &model).error().text(),
              HasSubstr("layout.tp: 8 does not divide the 4 query heads"));
  EXPECT_THAT(check_layout(layout("{cp: 3, microbatches: 1}", 3), 3, nullptr).error().text(),
              HasSubstr("layout.cp: 2 × CP = 6 does not divide the sequence of 4096 tokens"));
  EXPECT_THAT(check_layout(layout("{dp: 4, microbatches: 1}", 8), 8, nullptr).error().text(),
              HasSubstr("layout.dp: TP × PP × CP × DP = 1 × 1 × 1 × 4 = 4, but there are 8 GPUs"));
  EXPECT_THAT(check_layout(layout("{pp: 8, microbatches: 1}", 8), 8, &model).error().text(),
              HasSubstr("PP × VP = 8 × 1 = 8 stages, but the model has 6 blocks"));
  EXPECT_THAT(check_layout(layout("{etp: 3, microbatches: 1}", 3), 3, &model).error().text(),
              HasSubstr("layout.etp: 3 does not divide the 32 expert width"));
}

}  // namespace
}  // namespace tessera
