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

TEST(Memory, KeepsLogitsFromTheHeadsForwardToItsBackward) {
  const PricedRun run{"Qwen3-30B-A3B.json", "H100", {.tp = 2, .ep = 8, .dp = 4}};
  const BlockMemory head = run.block("head").memory;
  // Of each microbatch; input and normed input are cut along the sequence.
  EXPECT_DOUBLE_EQ(head.activation.value(), 4096.0 * (151'936 / 2 * 6 + 2 * 2 * 2048 / 2));
  EXPECT_EQ(head.workspace.value(), 0);
}

TEST(Memory, HoldsDispatchBuffersAtTheFullestRankAndTwiceInAPair) {
  const PricedRun run{"Qwen3-30B-A3B.json", "H100", {.ep = 8, .dp = 8}};
  const double mean = 4096.0 * 8 * 2048 * 4;
  const BlockMemory layer = run.block("AE").memory, head = run.block("head").memory;
  const Bytes buffers = layer.workspace;
  EXPECT_EQ(layer.dispatch_buffers, buffers);
  EXPECT_GT(buffers.value(), 1.002 * mean);
  EXPECT_LT(buffers.value(), 1.05 * mean);
  const BlockMemory* const blocks[] = {&layer, &layer, &head};
  EXPECT_EQ(price_static_memory(run.input(), blocks, false).workspace, buffers);
  EXPECT_EQ(price_static_memory(run.input(), blocks, true).workspace, 2 * buffers);
}

// Under ETP the ranks of an expert gather each other's tokens at full width and share the expert's.
// A Mamba layer's recompute may start while the dispatch of the MoE layer after it still runs backward.
TEST(Memory, HoldsWhatRecomputeBringsBackBesideAnotherBlocksBuffers) {
  BlockMemory moe, mamba;
  moe.workspace = moe.dispatch_buffers = Bytes(100);
  mamba.workspace = Bytes(30);
  const PricedRun run{"Qwen3-30B-A3B.json", "H100", {.dp = 1}};
  const BlockMemory* const blocks[] = {&mamba, &moe};
  EXPECT_EQ(price_static_memory(run.input(), blocks, false).workspace, Bytes(130));
  EXPECT_EQ(price_static_memory(run.input(), blocks, true).workspace, Bytes(230));
  moe.workspace = Bytes(140);
  EXPECT_EQ(price_static_memory(run.input(), blocks, false).workspace, Bytes(140)) << "one block's at a time";
}

TEST(Memory, EtpGathersInputsAndCutsTheExpert) {
  PricedRun run{"Qwen3-30B-A3B.json", "H100", {.ep = 8, .dp = 16}};
  const BlockMemory one = run.block("AE").memory;
  run.layout.etp = 2;
  const BlockMemory two = run.block("AE").memory;
  // Both have the fullest rank's share over the mean in them; with twice the tokens it is a little smaller.
  const double rows = 4096.0 * 8;
  EXPECT_NEAR((two.activation - one.activation).value(), rows * 2048 * 2, 0.03 * rows * 2048 * 2)
      << "as much inner width over twice the rows; twice the input";
  EXPECT_NEAR(two.dispatch_buffers / one.dispatch_buffers, 2, 0.02);
  EXPECT_NEAR((two.weight_stash - one.weight_stash).value(), rows * 4 * 2048, 0.03 * rows * 4 * 2048)
      << "input and output's gradient of the two products";
  EXPECT_EQ(two.expert_parameters, one.expert_parameters / 2);
}

// DeepSeek-V3 at TP2: embedding and head of 129,280 × 7,168 are 463,339,520 parameters each on a rank.
TEST(Memory, AnMtpBlockHoldsItsOwnEndsUnlessTheRankHasThem) {
  constexpr std::int64_t kMatrix = 463'339'520;
  const PricedRun run{"DeepSeek-V3.json", "H100", {.tp = 2, .pp = 2, .ep = 64, .dp = 32}};
  const BlockMemory mtp = run.block("mtp AE").memory, layer = run.block("AE").memory;
  const BlockMemory embedding = run.block("embedding").memory, head = run.block("head").memory;
  // The projection is not cut; three norms.
  EXPECT_EQ(mtp.dense_parameters - layer.dense_parameters, 2 * kMatrix + 2 * 7168 * 7168 + 3 * 7168);
  const auto held = [&](std::vector<const BlockMemory*> blocks) {
    return price_static_memory(run.input(), blocks, false);
  };
  const std::int64_t alone = mtp.dense_parameters, final_norm = 7168;
  EXPECT_EQ(held({&mtp}).dense_parameters, alone);
  EXPECT_EQ(held({&mtp, &head}).dense_parameters, alone + final_norm);
  EXPECT_EQ(held({&embedding, &mtp}).dense_parameters, alone);
  EXPECT_EQ(held({&embedding, &mtp, &head}).dense_parameters, alone + final_norm);
  EXPECT_EQ(held({&mtp, &mtp}).dense_parameters, 2 * (alone - 2 * kMatrix) + 2 * kMatrix);
  // 2 + 4 bytes, and 12 over 32 data parallel ranks.
  const StaticMemory apart = held({&mtp}), together = held({&mtp, &head});
  const double norm = static_cast<double>(final_norm);
  EXPECT_NEAR((together.weights - apart.weights).value(), 2 * norm, 1);
  EXPECT_NEAR((together.gradients - apart.gradients).value(), 4 * norm, 1);
  EXPECT_NEAR((together.optimizer - apart.optimizer).value(), 12 * norm / 32, 1);
}

TEST(Memory, ATiedHeadIsTheEmbeddingWhereTheyMeet) {
  ModelSpec model = tiny({false});
  model.tied_embeddings = true;
  const auto cluster = cluster_preset("H100");
  const Layout layout{.sequence = 64};
  const CostInput input{.model = &model, .cluster = &*cluster, .layout = &layout};
  const ModelCost cost = *price_model(input);
  const BlockMemory& embedding = cost.of(BlockId(0)).memory;
  const BlockMemory& head = cost.of(BlockId(2)).memory;
  EXPECT_EQ(embedding.dense_parameters, 512);
  EXPECT_EQ(head.dense_parameters, 512 + 32);
  const BlockMemory* const both[] = {&embedding, &head};
  EXPECT_EQ(price_static_memory(input, both, false).dense_parameters, 512 + 32);
  const BlockMemory* const one[] = {&head};
  EXPECT_EQ(price_static_memory(input, one, false).dense_parameters, 512 + 32);
}

TEST(Memory, AnMtpProjectionKeepsItsInputForW) {
  PricedRun run{"DeepSeek-V3.json", "H100", {.ep = 64, .dp = 64}};
  const auto stash = [&](const char* block) { return run.block(block).memory.weight_stash.value(); };
  // Two hidden states in, one gradient out.
  EXPECT_DOUBLE_EQ(stash("mtp AE") - stash("AE") - stash("head"), 4096.0 * 7168 * (2 * 2 + 2));
}

// Four key/value heads over eight ranks are repeated: one a rank, not half of one.
TEST(Memory, RepeatsKeyValueHeadsBeyondTheirNumber) {
  const auto block = [](std::int64_t tp) {
    return PricedRun{"Qwen3-30B-A3B.json", "H100", {.tp = tp, .ep = 8, .dp = 8 / tp}}.block("AE");
  };
  const BlockCost four = block(4), eight = block(8);
  const auto mixer = [](std::int64_t kv_heads, std::int64_t tp) {
    return 2048 * (32 * 128 + kv_heads * 2 * 128 + 32 * 128) / tp;
  };
  // The rest of a layer (router, norms) is not cut.
  EXPECT_EQ(four.memory.dense_parameters - eight.memory.dense_parameters,
            mixer(4, 4) - mixer(8, 8) + 2 * 128 / 8)
      << "query and key norms are cut";
}

TEST(Memory, Nvfp4IsForExpertsAndDensePartsStayAtEightBits) {
  PricedRun run{"Qwen3-30B-A3B.json", "B200", {.ep = 8, .dp = 8}};
  const BlockMemory wide = run.block("AE").memory;
  run.layout.dtype = Dtype::mxfp8;
  const BlockMemory eight = run.block("AE").memory;
  run.layout.dtype = Dtype::nvfp4;
  const BlockMemory four = run.block("AE").memory;
  // Copies of 2 · 1 byte for the mixer, of 2 · 0.5 for an expert.
  const double expert = static_cast<double>(four.expert_parameters);
  EXPECT_DOUBLE_EQ((eight.weights - four.weights).value(), expert);
  const double mixer = 2048.0 * (32 * 128 + 4 * 2 * 128 + 32 * 128) + 2 * 128;
  EXPECT_DOUBLE_EQ((four.weights - wide.weights).value(), expert + 2 * mixer);
  EXPECT_EQ(four.activation, eight.activation) << "inputs are kept for W, which stays at eight bits";
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
