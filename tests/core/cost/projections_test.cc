// The products that are priced are the ones the model has: two rooms count them apart.

#include <filesystem>

#include "../../../src/core/cost/mixer_time.h"
#include "pricing_fixture.h"
#include "tessera/core/model/count.h"

namespace tessera {
namespace {

TEST(Projections, AreTheOperationsTheModelCounts) {
  int layers = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TESSERA_SOURCE "/data/models")) {
    const std::string file = entry.path().filename().string();
    if (!file.ends_with(".json") && !file.ends_with(".yaml")) continue;
    PricedRun run(file, "H100", {});
    const CostInput input = run.input();
    const pricing::Context context(input);
    for (const Block& block : run.model.blocks) {
      if (block.kind != BlockKind::layer) continue;
      double operations = 0;
      for (const pricing::Projection& p : pricing::projections(context, run.model.layer_of(block).mixer))
        operations += 2 * p.in * p.out;
      const double counted = forward_flops(run.model, block, 4096).mixer_projections.value();
      // Convolutions are part of the core's time; mixing weights of hyper-connections and compressors are not
      // priced as products.
      const double tolerance = run.model.residual_streams > 1 ? 0.2 : 0.003;
      EXPECT_NEAR(operations, counted, tolerance * counted) << file << " layer " << block.layer;
      ++layers;
    }
  }
  EXPECT_GT(layers, 500);
}

// Qwen3-30B has four key/value heads: eight ranks hold one each.
TEST(Projections, RepeatKeyValueHeadsThatAreFewerThanRanks) {
  const auto width = [](std::int64_t tp) {
    const PricedRun run("Qwen3-30B-A3B.json", "H100", {.tp = tp, .ep = 8, .dp = 8 / tp});
    const CostInput input = run.input();
    const pricing::Context context(input);
    return pricing::projections(context, run.model.layer_of(run.model.blocks[1]).mixer)[0].out;
  };
  EXPECT_DOUBLE_EQ(width(4), (32 + 2 * 4) * 128 / 4);
  EXPECT_DOUBLE_EQ(width(8), (32 / 8 + 2) * 128);
}

}  // namespace
}  // namespace tessera
