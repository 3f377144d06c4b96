// Forward operations against published and hand-derived values; formulas and sources are in docs/formulas.md.
#include <gtest/gtest.h>

#include "core/model/model_testing.h"
#include "tessera/core/model/count.h"

namespace tessera {
namespace {

using namespace testing_models;

double giga(const std::string& name, std::int64_t sequence) {
  return training_flops_per_token(import_config(name), sequence).value() / 1e9;
}

// Model TFLOP/s over tokens/s of Megatron-Bridge's published runs, per token. Attention-only models agree to
// half a percent; Nemotron's hybrids are counted there with an expanded width that the model does not have.
TEST(Flops, TrainingPerTokenAgreesWithMegatronBridge) {
  EXPECT_NEAR(giga("DeepSeek-V3", 4096), 260.0, 260.0 * 0.005);
  EXPECT_NEAR(giga("Qwen3-235B-A22B", 4096), 148.1, 148.1 * 0.005);
  EXPECT_NEAR(giga("Qwen3-30B-A3B", 4096), 23.10, 23.10 * 0.005);
  EXPECT_NEAR(giga("gpt-oss-120b", 4096), 32.6, 32.6 * 0.005);
  EXPECT_NEAR(giga("Kimi-K2", 4096), 204.6, 204.6 * 0.005);
}

// The same models' operations counted by hand, to the last printed digit.
TEST(Flops, TrainingPerTokenAsDerived) {
  EXPECT_NEAR(giga("DeepSeek-V3", 4096), 260.6, 0.05);
  EXPECT_NEAR(giga("Qwen3-235B-A22B", 4096), 148.3, 0.05);
  EXPECT_NEAR(giga("Qwen3-30B-A3B", 4096), 23.08, 0.01);
  EXPECT_NEAR(giga("gpt-oss-120b", 4096), 32.7, 0.05);
  EXPECT_NEAR(giga("Kimi-K2", 4096), 205.5, 0.1);
}

TEST(Flops, NemotronHybrids) {
  const auto super = import_model_file(std::string(TESSERA_SOURCE) + "/data/models/Nemotron-3-Super.yaml");
  ASSERT_TRUE(super) << super.error().text();
  EXPECT_NEAR(training_flops_per_token(*super, 8192).value() / 1e9, 80.7, 0.05);
  TESSERA_NEED_CONFIG("Nemotron-3-Nano-30B-A3B");
  EXPECT_NEAR(giga("Nemotron-3-Nano-30B-A3B", 8192), 20.8, 0.05);
}

struct LayerRow {
  std::string model;
  std::string symbol;
  double projections, core_4k, core_32k, core_256k;  // MFLOP per token
};

// Per layer and token, from the formulas by hand.
TEST(Flops, MixersPerLayer) {
  const LayerRow rows[] = {
      {"Qwen3-Next-80B-A3B", "AE", 54.5, 33.6, 268, 2148},
      {"Qwen3-Next-80B-A3B", "GE", 67.4, 5.8, 5.8, 5.8},
      {"Qwen3.5-397B-A17B", "AE", 209.7, 67.1, 537, 4295},
      {"Qwen3.5-397B-A17B", "GE", 236.0, 11.6, 11.6, 11.6},
      {"Qwen3-30B-A3B", "AE", 37.7, 33.6, 268, 2148},
      {"Qwen3-235B-A22B", "AE", 142.6, 67.1, 537, 4295},
      {"DeepSeek-V3", "AE", 374.2, 168, 1342, 10737},
      {"Kimi-K2", "AE", 202.2, 83.9, 671, 5369},
      {"Kimi-Linear-48B-A3B", "AE", 58.2, 41.9, 336, 2684},
      {"Kimi-Linear-48B-A3B", "KE", 79.0, 4.1, 4.1, 4.1},
      {"GLM-4.5", "AE", 272.6, 101, 805, 6443},
      {"gpt-oss-120b", "AE", 53.1, 33.6, 268, 2148},
      {"gpt-oss-120b", "WE", 53.1, 2.1, 2.1, 2.1},
      {"Granite-4.0-H-Small", "AE", 83.9, 33.6, 268, 2148},
      {"Granite-4.0-H-Small", "M2E", 204.5, 8.5, 8.5, 8.5},
      {"MiniMax-M1-80k", "LE", 503.3, 12.6, 12.6, 12.6},
      {"MiniMax-M1-80k", "AE", 226.5, 67.1, 537, 4295},
      {"Jamba-1.5-Mini", "M1E", 210.6, 1.2, 1.2, 1.2},
      {"Nemotron-3-Nano-30B-A3B", "M2", 77.5, 3.4, 3.4, 3.4},
      {"Nemotron-3-Nano-30B-A3B", "A", 46.8, 33.6, 268, 2148},
  };
  int checked = 0;
  for (const LayerRow& row : rows) {
    if (!find_config(row.model)) continue;  // the seven rows of models that are not redistributable
    const ModelSpec model = import_config(row.model);
    for (const Block& block : model.blocks) {
      if (block.kind != BlockKind::layer || symbol(model.layer_of(block)) != row.symbol) continue;
      const auto near = [&](double ours, double printed) {
        EXPECT_NEAR(ours / 1e6, printed, std::max(0.05, printed * 0.005)) << row.model << " " << row.symbol;
      };
      near(forward_flops(model, block, 4096).mixer_projections.value(), row.projections);
      near(forward_flops(model, block, 4096).mixer_core.value(), row.core_4k);
      near(forward_flops(model, block, 32768).mixer_core.value(), row.core_32k);
      near(forward_flops(model, block, 262144).mixer_core.value(), row.core_256k);
      ++checked;
      break;
    }
  }
  EXPECT_GE(checked, 15);
}

TEST(Flops, MoeOfDeepSeekV3) {
  const ModelSpec model = import_config("DeepSeek-V3");
  const ForwardFlops moe = forward_flops(model, model.blocks[10], 4096);
  EXPECT_NEAR(moe.routed.value() / 1e6, 704.6, 0.05);
  EXPECT_NEAR(moe.shared.value() / 1e6, 88.1, 0.05);
  EXPECT_NEAR(moe.router.value() / 1e6, 3.7, 0.05);
  EXPECT_EQ(moe.dense.value(), 0);
  EXPECT_NEAR(forward_flops(model, model.blocks[1], 4096).dense.value() / 1e6, 792.7, 0.05);
  EXPECT_EQ(forward_flops(model, model.blocks.front(), 4096).total().value(), 0);
  EXPECT_EQ(forward_flops(model, model.blocks.back(), 4096).total().value(), 2.0 * 7168 * 129280);
  const ForwardFlops mtp = forward_flops(model, model.blocks[62], 4096);
  EXPECT_EQ(mtp.head.value(), 2.0 * 7168 * 129280);
  EXPECT_EQ(mtp.projection.value(), 4.0 * 7168 * 7168);
}

TEST(Flops, LatentMoeOfNemotronSuper) {
  const auto model = import_model_file(std::string(TESSERA_SOURCE) + "/data/models/Nemotron-3-Super.yaml");
  ASSERT_TRUE(model) << model.error().text();
  const ForwardFlops moe = forward_flops(*model, model->blocks[2], 4096);
  EXPECT_NEAR((moe.routed + moe.latent).value() / 1e6, 259.0, 0.05);
  EXPECT_NEAR(moe.shared.value() / 1e6, 88.1, 0.05);
  EXPECT_NEAR(moe.router.value() / 1e6, 4.2, 0.05);
}

// The mean of min(t, w) over t = 1 … s, in the continuous form s/2 and w − w²/2s.
TEST(Flops, WindowsChunksAndIndexersBoundTheContext) {
  const auto core = [](const SoftmaxAttention& attention, std::int64_t sequence) {
    ModelSpec model{.hidden = 64, .vocabulary = 8};
    model.layer_types = {Layer{.mixer = attention}};
    return forward_flops(model, {.kind = BlockKind::layer, .layer = 0, .type = 0}, sequence)
        .mixer_core.value();
  };
  const SoftmaxAttention full{.query_heads = 1, .kv_heads = 1, .head_dim = 1, .value_dim = 1};
  SoftmaxAttention window = full, chunk = full, sparse = full;
  window.window = 100;
  chunk.chunk = 100;
  sparse.indexer = SparseIndexer{.heads = 1, .head_dim = 1, .top_k = 100};
  EXPECT_EQ(core(full, 1000), 4 * 500.0);
  EXPECT_EQ(core(window, 1000), 4 * (100 - 5.0));
  EXPECT_EQ(core(window, 100), core(full, 100));
  EXPECT_EQ(core(chunk, 1000), 4 * 50.0);
  EXPECT_EQ(core(chunk, 150), 4 * (100 * 100 + 50 * 50) / (2 * 150.0));
  EXPECT_EQ(core(sparse, 1000), 4 * 95.0 + 2 * 500.0);
  sparse.indexer->shared = true;
  EXPECT_EQ(core(sparse, 1000), 4 * 95.0);
}

}  // namespace
}  // namespace tessera
