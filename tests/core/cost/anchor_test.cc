// Prices held against published measurements.

#include <cmath>

#include "pricing_fixture.h"

namespace tessera {
namespace {

PricedRun qwen3_next(std::int64_t sequence) {
  return {"Qwen3-Next-80B-A3B.json", "H100", {.ep = 16, .dp = 16, .sequence = sequence}};
}

// AIC's kernel tables: on H100 the softmax core overtakes Gated DeltaNet's near 10 K tokens; at 256 K the
// published whole-layer ratio is about ten. A price by operations would call softmax the slower one
// everywhere.
TEST(Anchor, SoftmaxOvertakesGatedDeltaNetNearTenThousandTokens) {
  const auto ratio = [](std::int64_t kilo) {
    const PricedRun run = qwen3_next(kilo * 1024);
    return layer_ms(run.block("AE")) / layer_ms(run.block("GE"));
  };
  EXPECT_NEAR(ratio(4), 0.91, 0.03);
  EXPECT_LT(ratio(9), 1);
  EXPECT_GT(ratio(11), 1);
  EXPECT_NEAR(ratio(16), 1.22, 0.05);
  EXPECT_NEAR(ratio(64), 2.76, 0.15);
  EXPECT_GT(ratio(256), 8);
  EXPECT_LT(ratio(256), 12);
}

PricedRun deepseek_h800() {
  PricedRun run{"DeepSeek-V3.json", "H800", {.pp = 16, .ep = 64, .dp = 128, .dtype = Dtype::fp8}};
  run.software.fp8_dispatch = true;
  run.software.shared_beside_dispatch = false;
  // The published system launches from its own CUDA code.
  run.software.cuda_graphs = CudaGraphs::iteration;
  return run;
}

// deepseek-ai/profile-data 44960242, train.json: H800, EP64, 4,096 tokens a microbatch, one MoE layer. In the
// trace each block runs beside communication that holds 20 of 132 SMs; the price is of the block alone.
TEST(Anchor, DeepSeekLayerMatchesThePublishedTrace) {
  const PricedRun run = deepseek_h800();
  const BlockCost layer = run.block("AE");
  const double slowed = 1 / interference(run.input()).compute_bound_rate;
  EXPECT_NEAR(slowed, 132.0 / 112, 1e-9);
  struct Row {
    const char* what;
    Pass pass;
    TaskKind kind;
    double low, high;
  };
  for (const Row& row : {Row{"attn F", Pass::forward, TaskKind::attention, 4.3, 4.5},
                         Row{"mlp F", Pass::forward, TaskKind::mlp, 4.3, 5.2},
                         Row{"attn B", Pass::backward, TaskKind::attention, 9.0, 9.5},
                         Row{"mlp B", Pass::backward, TaskKind::mlp, 4.7, 5.7},
                         Row{"attn W", Pass::weight, TaskKind::attention, 2.4, 2.4},
                         Row{"mlp W", Pass::weight, TaskKind::mlp, 3.4, 3.6}}) {
    const double priced = slowed * ms(layer, row.pass, row.kind);
    EXPECT_GT(priced, 0.78 * row.low) << row.what;
    EXPECT_LT(priced, 1.15 * row.high) << row.what;
  }
}

// deepseek-ai/DeepEP dd758caf, README: H800, 4,096 tokens, hidden 7,168, top-8 in 4 of 8 groups, fp8 dispatch
// and bf16 combine: EP64 at 51 and 50 GB/s, where its bytes count every distinct node a token visits, its own
// included.
TEST(Anchor, DispatchAcrossNodesMatchesDeepEp) {
  const BlockCost layer = deepseek_h800().block("AE");
  const double nodes = 4 * (1 - std::pow(0.75, 8));
  const double dispatch = 4096 * 7168 * (1 + 4.0 / 128) * nodes / 51e9 * 1e3;
  const double combine = 4096 * 7168 * 2 * nodes / 50e9 * 1e3;
  EXPECT_NEAR(ms(layer, Pass::forward, TaskKind::dispatch), dispatch, 0.2 * dispatch);
  EXPECT_NEAR(ms(layer, Pass::forward, TaskKind::combine), combine, 0.2 * combine);
}

}  // namespace
}  // namespace tessera
