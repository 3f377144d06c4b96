// Every model, on every GPU, under layouts that use all kinds of parallelism: finite, positive, and in the
// right direction.

#include <cmath>
#include <filesystem>

#include "pricing_fixture.h"

namespace tessera {
namespace {

std::vector<std::string> model_files() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(TESSERA_SOURCE "/data/models")) {
    const std::string file = entry.path().filename().string();
    if (file.ends_with(".json") || file.ends_with(".yaml")) out.push_back(file);
  }
  return out;
}

void expect_sound(const PricedRun& run, const std::string& what) {
  const auto cost = price_model(run.input());
  ASSERT_TRUE(cost) << what << cost.error().text();
  for (const BlockCost& kind : cost->kinds) {
    for (const auto& pass : kind.tasks)
      for (const TaskCost& task : pass) {
        ASSERT_TRUE(std::isfinite(task.duration.time.value())) << what << kind.name;
        ASSERT_GE(task.duration.time.value(), 0) << what << kind.name;
        ASSERT_GE(task.duration.error.value(), 0) << what << kind.name;
      }
    const BlockMemory& memory = kind.memory;
    for (const Bytes part : {memory.weights, memory.gradients, memory.optimizer, memory.activation,
                             memory.weight_stash, memory.workspace}) {
      ASSERT_TRUE(std::isfinite(part.value())) << what << kind.name;
      ASSERT_GE(part.value(), 0) << what << kind.name;
    }
  }
}

TEST(EveryLayout, IsPricedForEveryModelAndDevice) {
  const Layout layouts[] = {
      {.ep = 8, .dp = 8},
      {.tp = 2, .pp = 2, .ep = 2, .etp = 2, .cp = 2, .dp = 4, .sequence = 32768},
      {.tp = 2, .sequence = 2},
      {.cp = 4, .dp = 1, .microbatch_size = 3, .sequence = 1 << 20, .recompute = {.full = true}},
  };
  for (const std::string& file : model_files()) {
    PricedRun run(file, "H100", layouts[0]);
    for (const std::string& preset : cluster_preset_names()) {
      run.cluster = *cluster_preset(preset);
      run.software = default_software(run.cluster);
      for (const Layout& layout : layouts) {
        run.layout = layout;
        run.cluster.gpus = layout.world();
        expect_sound(run, file + " on " + preset + ": ");
      }
    }
  }
}

TEST(EveryLayout, MoreTokensNeverTakeLess) {
  for (const std::string& file : model_files()) {
    PricedRun run(file, "H100", {.ep = 8, .dp = 8});
    const ModelCost one = *price_model(run.input());
    run.layout.microbatch_size = 2;
    const ModelCost two = *price_model(run.input());
    for (std::size_t kind = 0; kind < one.kinds.size(); ++kind) {
      EXPECT_GT(layer_ms(two.kinds[kind]), layer_ms(one.kinds[kind])) << file << " " << one.kinds[kind].name;
      // Twice, and a little more where the largest measured products run slower (power).
      EXPECT_LT(layer_ms(two.kinds[kind]), 2.4 * layer_ms(one.kinds[kind]))
          << file << " " << one.kinds[kind].name;
    }
  }
}

}  // namespace
}  // namespace tessera
