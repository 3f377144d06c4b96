#include <gmock/gmock.h>

#include "pricing_fixture.h"

namespace tessera {
namespace {

// {layers: 8, hidden: 16, ffn: 64, gated: false, heads: 4, vocab: 32, tied: false}, norms with bias; `moe`
// says which layers have two experts of width 32 instead.
ModelSpec tiny(const std::vector<bool>& moe) {
  ModelSpec model{.name = "tiny", .hidden = 16, .vocabulary = 32, .norm_parameters_per_hidden = 2};
  const SoftmaxAttention attention{.query_heads = 4, .kv_heads = 4, .head_dim = 4, .value_dim = 4};
  Layer dense{.mixer = attention, .dense = DenseFeedForward{.width = 64, .gated = false}};
  Layer sparse{.mixer = attention,
               .moe = MixtureOfExperts{.experts = 2, .top_k = 1, .expert_width = 32, .gated = false}};
  model.layer_types = {dense, sparse};
  model.blocks.push_back({.kind = BlockKind::embedding});
  for (std::size_t i = 0; i < moe.size(); ++i)
    model.blocks.push_back(
        {.kind = BlockKind::layer, .layer = static_cast<std::int32_t>(i), .type = moe[i] ? 1 : 0});
  model.blocks.push_back({.kind = BlockKind::head});
  return model;
}

struct Held {
  std::int64_t dense = 0, expert = 0;
};

// The last of four stages holds layers 5, 6, 7 and the head.
Held last_stage(const ModelSpec& model) {
  const auto cluster = cluster_preset("H100");
  const Layout layout{.pp = 4, .sequence = 64};
  const auto cost = price_model({.model = &model, .cluster = &*cluster, .layout = &layout});
  Held out;
  for (std::int64_t block = 6; block <= 9; ++block) {
    out.dense += cost->of(BlockId(block)).memory.dense_parameters;
    out.expert += cost->of(BlockId(block)).memory.expert_parameters;
  }
  return out;
}

// The fullest stage counts, not parameters / PP: 3 · 3,136 + 32 (final norm) + 512 (output), not 6,792.
TEST(Memory, CountsWhatTheFullestStageHolds) {
  const Held held = last_stage(tiny(std::vector<bool>(8, false)));
  EXPECT_EQ(held.dense, 9'952);
  EXPECT_EQ(held.expert, 0);
}

// Layers 6 and 7 are MoE: 5,856 without and 5,920 with the routers' 64 weights, which are counted here.
TEST(Memory, CountsExpertsApart) {
  const Held held = last_stage(tiny({false, true, false, false, true, false, true, true}));
  EXPECT_EQ(held.dense, 5'856 + 64);
  EXPECT_EQ(held.expert, 4'096);
}

TEST(Memory, IsEighteenBytesAParameterWithoutSharding) {
  PricedRun run{"Qwen3-30B-A3B.json", "H100", {.ep = 8, .dp = 8}};
  run.software.distributed_optimizer = false;
  const BlockMemory whole = run.block("AE").memory;
  const double parameters = static_cast<double>(whole.dense_parameters + whole.expert_parameters);
  EXPECT_DOUBLE_EQ((whole.weights + whole.gradients + whole.optimizer).value(), 18 * parameters);
  run.software.distributed_optimizer = true;
  const BlockMemory sharded = run.block("AE").memory;
  EXPECT_DOUBLE_EQ(sharded.optimizer.value(), 12 * (static_cast<double>(whole.dense_parameters) / 8 +
                                                    static_cast<double>(whole.expert_parameters)));
}

// DeepSeek-V3: 256 experts of 3 · 7,168 · 2,048 over 64 ranks; the rest of a layer on each.
TEST(Memory, DeepSeekLayerOnSixtyFourRanks) {
  const PricedRun run{"DeepSeek-V3.json", "H800", {.pp = 16, .ep = 64, .dp = 64}};
  const BlockMemory memory = run.block("AE").memory;
  EXPECT_EQ(memory.expert_parameters, 176'160'768);
  // MLA with its two latent norms, the shared expert, the router with its biases, two norms.
  EXPECT_EQ(memory.dense_parameters, 187'105'280 + 1'536 + 512 + 44'040'192 + 7'168 * 256 + 256 + 2 * 7'168);
}

TEST(Memory, KeepsLogitsAtTheHeadAndBuffersAtTheFullestRank) {
  const PricedRun run{"Qwen3-30B-A3B.json", "H100", {.ep = 8, .dp = 8}};
  EXPECT_DOUBLE_EQ(run.block("head").memory.workspace.value(), 4096.0 * 151'936 * 6);
  const double mean = 4096.0 * 8 * 2048 * 4;
  const double buffers = run.block("AE").memory.workspace.value();
  EXPECT_GT(buffers, 1.002 * mean);
  EXPECT_LT(buffers, 1.05 * mean);
}

TEST(Memory, LowPrecisionKeepsTwoCopiesOfEveryWeight) {
  PricedRun run{"Qwen3-30B-A3B.json", "H100", {.ep = 8, .dp = 8}};
  const BlockMemory wide = run.block("AE").memory;
  run.layout.dtype = Dtype::fp8;
  const BlockMemory narrow = run.block("AE").memory;
  EXPECT_NEAR(narrow.weights / wide.weights, 2, 0.01);
  EXPECT_LT(narrow.activation, wide.activation);
}

TEST(Memory, FollowsThePrecisionsTheSoftwareKeeps) {
  PricedRun run{"Qwen3-30B-A3B.json", "H100", {.ep = 8, .dp = 8}};
  run.layout.dtype = Dtype::fp8;
  run.software.distributed_optimizer = false;
  const BlockMemory full = run.block("AE").memory;
  run.software.bf16_gradients = run.software.bf16_moments = run.software.low_precision_weights = true;
  const BlockMemory lean = run.block("AE").memory;
  EXPECT_DOUBLE_EQ(lean.gradients / full.gradients, 0.5);
  EXPECT_DOUBLE_EQ(lean.optimizer / full.optimizer, 8.0 / 12);
  EXPECT_NEAR(lean.weights / full.weights, 0.5, 0.01) << "router and norms stay in bf16";
}

}  // namespace
}  // namespace tessera
