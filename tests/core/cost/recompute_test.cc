// What is computed again costs time and frees bytes, both or neither.

#include <filesystem>
#include <functional>

#include "pricing_fixture.h"

namespace tessera {
namespace {

bool has_mixer(const Layer& layer) {
  return !std::holds_alternative<std::monostate>(layer.mixer);
}

struct Unit {
  const char* name;
  bool Recompute::* member;
  std::function<bool(const Layer&)> applies;
};

const std::vector<Unit>& units() {
  static const std::vector<Unit> all{
      {"full", &Recompute::full, [](const Layer&) { return true; }},
      {"mla_up_projection", &Recompute::mla_up_projection,
       [](const Layer& l) { return std::holds_alternative<LatentAttention>(l.mixer); }},
      {"moe", &Recompute::moe, [](const Layer& l) { return l.moe.has_value(); }},
      {"moe_activation", &Recompute::moe_activation, [](const Layer& l) { return l.moe.has_value(); }},
      {"shared_experts", &Recompute::shared_experts,
       [](const Layer& l) { return l.moe && l.moe->shared_width > 0; }},
      {"core_attention", &Recompute::core_attention, has_mixer},
      {"norm", &Recompute::norm, [](const Layer& l) { return has_mixer(l) || l.dense || l.moe; }},
  };
  return all;
}

TEST(Recompute, OfAUnitFreesBytesAndTakesTimeOrNeither) {
  ASSERT_EQ(units().size(), kRecomputeUnits.size());
  std::vector<int> applied(units().size(), 0), idle(units().size(), 0);
  for (const auto& entry : std::filesystem::directory_iterator(TESSERA_SOURCE "/data/models")) {
    const std::string file = entry.path().filename().string();
    if (!file.ends_with(".json") && !file.ends_with(".yaml")) continue;
    PricedRun run(file, "H100", {.tp = 2, .ep = 2, .cp = 2, .dp = 2});
    const ModelCost kept = *price_model(run.input());
    for (std::size_t u = 0; u < units().size(); ++u) {
      run.layout.recompute = {};
      run.layout.recompute.*units()[u].member = true;
      const ModelCost again = *price_model(run.input());
      for (std::size_t b = 0; b < run.model.blocks.size(); ++b) {
        const Block& block = run.model.blocks[b];
        const BlockCost& a = kept.of(BlockId(static_cast<std::int64_t>(b)));
        const BlockCost& z = again.of(BlockId(static_cast<std::int64_t>(b)));
        const std::string what = file + " " + a.name + " " + units()[u].name;
        EXPECT_EQ(z.serial(Pass::forward), a.serial(Pass::forward)) << what;
        EXPECT_EQ(z.memory.weight_stash, a.memory.weight_stash) << what;
        const Bytes freed = a.memory.activation - z.memory.activation;
        if (block.type >= 0 && units()[u].applies(run.model.layer_of(block))) {
          EXPECT_GT(freed.value(), 0) << what;
          EXPECT_GT(z.serial(Pass::backward), a.serial(Pass::backward)) << what;
          EXPECT_NEAR((z.memory.workspace - a.memory.workspace) / freed, 1, 1e-9)
              << what << ": it is back while the backward runs";
          ++applied[u];
        } else {
          EXPECT_EQ(freed.value(), 0) << what;
          EXPECT_EQ(z.serial(Pass::backward), a.serial(Pass::backward)) << what;
          ++idle[u];
        }
      }
    }
  }
  for (std::size_t u = 0; u < units().size(); ++u) {
    EXPECT_GT(applied[u], 0) << units()[u].name;
    EXPECT_GT(idle[u], 0) << units()[u].name;
  }
}

// A unit inside one that is computed again as a whole is not computed again twice.
TEST(Recompute, OfAPartAddsNothingToTheWhole) {
  PricedRun run{"DeepSeek-V3.json", "H100", {.ep = 64, .dp = 64}};
  const auto figures = [&](const Recompute& recompute) {
    run.layout.recompute = recompute;
    const BlockCost layer = run.block("AE");
    return std::pair(layer.serial(Pass::backward), layer.memory.activation);
  };
  EXPECT_EQ(figures({.moe = true, .moe_activation = true, .shared_experts = true}), figures({.moe = true}));
  EXPECT_EQ(
      figures({.full = true, .mla_up_projection = true, .moe = true, .core_attention = true, .norm = true}),
      figures({.full = true}));
}

std::string recompute_tasks(const BlockCost& block) {
  std::string out;
  for (std::size_t kind = 0; kind < kTaskKinds; ++kind)
    if (block.task(Pass::recompute, static_cast<TaskKind>(kind)).exists)
      out += (out.empty() ? "" : " ") + task_name(Pass::recompute, static_cast<TaskKind>(kind), -1);
  return out;
}

// DeepSeek-V3: a dense layer, and a MoE layer with its shared expert in the MLP or beside the dispatch.
TEST(Recompute, HasTasksOfItsOwnUnlessItCommunicates) {
  struct Row {
    Recompute units;
    const char *dense, *moe, *beside;
  };
  for (const Row& row : {
           Row{{}, "", "", ""},
           Row{{.mla_up_projection = true}, "R_ATTN", "R_ATTN", "R_ATTN"},
           Row{{.core_attention = true}, "R_ATTN", "R_ATTN", "R_ATTN"},
           Row{{.moe_activation = true}, "", "R_MLP", "R_MLP"},
           Row{{.shared_experts = true}, "", "R_MLP", "R_SHARED"},
           Row{{.norm = true}, "R_ATTN R_MLP", "R_ATTN R_MLP", "R_ATTN R_SHARED"},
           Row{{.moe = true}, "", "", ""},
           Row{{.moe = true, .norm = true}, "R_ATTN R_MLP", "R_ATTN", "R_ATTN"},
           Row{{.full = true}, "R_ATTN R_MLP", "", ""},
       }) {
    PricedRun run{"DeepSeek-V3.json", "H100", {.ep = 64, .dp = 64}};
    run.layout.recompute = row.units;
    EXPECT_EQ(recompute_tasks(run.block("AD")), row.dense);
    EXPECT_EQ(recompute_tasks(run.block("AE")), row.moe);
    EXPECT_EQ(recompute_tasks(run.block("mtp AE")), row.moe);
    EXPECT_EQ(recompute_tasks(run.block("head")), "");
    EXPECT_EQ(run.block("AD").recomputed_whole, row.units.full);
    run.software.shared_beside_dispatch = true;
    EXPECT_EQ(recompute_tasks(run.block("AE")), row.beside);
  }
}

// Without host time, which is shared out over all of a sublayer's backward, no other task changes.
TEST(Recompute, LeavesTheOtherTasksAsTheyAre) {
  for (const bool beside : {false, true}) {
    PricedRun run{"DeepSeek-V3.json", "H100", {.tp = 2, .ep = 64, .cp = 2, .dp = 64}};
    run.software.cuda_graphs = CudaGraphs::iteration;
    run.software.shared_beside_dispatch = beside;
    const ModelCost kept = run.price();
    run.layout.recompute = {.mla_up_projection = true,
                            .moe_activation = true,
                            .shared_experts = true,
                            .core_attention = true,
                            .norm = true};
    const ModelCost again = run.price();
    for (std::size_t k = 0; k < kept.kinds.size(); ++k)
      for (const Pass pass : {Pass::forward, Pass::backward, Pass::weight})
        for (std::size_t kind = 0; kind < kTaskKinds; ++kind)
          EXPECT_EQ(again.kinds[k].task(pass, static_cast<TaskKind>(kind)).duration.time,
                    kept.kinds[k].task(pass, static_cast<TaskKind>(kind)).duration.time)
              << kept.kinds[k].name << " " << task_name(pass, static_cast<TaskKind>(kind), -1);
  }
}

// A whole dense layer again: each part takes what its forward took.
TEST(Recompute, OfALayerWithoutDispatchIsItsForwardTaskByTask) {
  PricedRun run{"DeepSeek-V3.json", "H100", {.tp = 2, .ep = 64, .dp = 64}};
  run.software.cuda_graphs = CudaGraphs::iteration;
  run.layout.recompute = {.full = true};
  const BlockCost layer = run.block("AD");
  for (const TaskKind kind : {TaskKind::attention, TaskKind::mlp}) {
    EXPECT_DOUBLE_EQ(ms(layer, Pass::recompute, kind), ms(layer, Pass::forward, kind));
    EXPECT_DOUBLE_EQ(layer.task(Pass::recompute, kind).compute_share,
                     layer.task(Pass::forward, kind).compute_share);
  }
}

// Host time is for the sublayer's launches as a whole: recompute only takes its share of it.
TEST(Recompute, SharesTheHostTimeOfItsSublayer) {
  PricedRun run{"Qwen3-30B-A3B.json", "H100", {.ep = 8, .dp = 8}};
  run.layout.recompute = {.core_attention = true};
  const auto gpu_and_host = [&](const BlockCost& b) {
    const Seconds host = b.task(Pass::recompute, TaskKind::attention)
                             .duration.by_source[static_cast<std::size_t>(Provenance::constant)];
    return std::pair(b.task(Pass::recompute, TaskKind::attention).duration.time - host, host);
  };
  const auto [gpu, host] = gpu_and_host(run.block("AE"));
  run.software.cuda_graphs = CudaGraphs::iteration;
  const auto [gpu_alone, none] = gpu_and_host(run.block("AE"));
  EXPECT_DOUBLE_EQ(gpu.value(), gpu_alone.value());
  EXPECT_GT(host.value(), 0);
  EXPECT_EQ(none.value(), 0);
}

// Qwen3-30B, 4,096 tokens: what each unit frees, by hand.
TEST(Recompute, FreesWhatIsComputedAgain) {
  PricedRun run{"Qwen3-30B-A3B.json", "H100", {.dp = 1}};
  const double kept = run.block("AE").memory.activation.value();
  const auto freed = [&](const Recompute& recompute) {
    run.layout.recompute = recompute;
    return (kept - run.block("AE").memory.activation.value()) / 4096;
  };
  EXPECT_DOUBLE_EQ(freed({.norm = true}), 2 * 2048 * 2.0) << "the normed inputs of mixer and MoE";
  EXPECT_DOUBLE_EQ(freed({.core_attention = true}), 32 * 128 * 2.0) << "the output of the heads";
  EXPECT_DOUBLE_EQ(freed({.moe_activation = true}), 8 * 768 * 2.0);
  // Router logits in fp32; of each copy the input, gate and up, and the activation's output.
  EXPECT_DOUBLE_EQ(freed({.moe = true}), 4 * 128 + 8 * 2 * (2048 + 3 * 768.0));
}

}  // namespace
}  // namespace tessera
