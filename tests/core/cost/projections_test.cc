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

}  // namespace
}  // namespace tessera
