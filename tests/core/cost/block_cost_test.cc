#include "tessera/core/cost/block_cost.h"

#include <gmock/gmock.h>

#include <cmath>

#include "../../../src/core/cost/mixer_time.h"
#include "pricing_fixture.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

PricedRun deepseek(std::int64_t tp = 1, std::int64_t dp = 64) {
  return {"DeepSeek-V3.json", "H100", {.tp = tp, .pp = 1, .ep = 64, .dp = dp / tp}};
}

TEST(BlockCost, HasTheTasksOfEachBlockAndNoOthers) {
  const ModelCost cost = deepseek().price();
  std::vector<std::string> names;
  for (const BlockCost& kind : cost.kinds) names.push_back(kind.name);
  EXPECT_THAT(names, ::testing::ElementsAre("embedding", "AD", "AE", "mtp AE", "head"));
  const BlockCost& dense = cost.kinds[1];
  const BlockCost& moe = cost.kinds[2];
  const BlockCost& mtp = cost.kinds[3];
  EXPECT_TRUE(dense.task(Pass::weight, TaskKind::mlp).exists);
  EXPECT_FALSE(dense.task(Pass::forward, TaskKind::dispatch).exists);
  EXPECT_TRUE(moe.task(Pass::backward, TaskKind::combine).exists);
  EXPECT_FALSE(moe.task(Pass::weight, TaskKind::dispatch).exists) << "communication has no weights";
  EXPECT_FALSE(moe.task(Pass::forward, TaskKind::shared).exists)
      << "the shared expert is part of the MLP by default";
  EXPECT_TRUE(mtp.task(Pass::forward, TaskKind::head).exists) << "an MTP block has a head of its own";
  EXPECT_EQ(&cost.of(BlockId(4)), &cost.kinds[2]);
}

TEST(BlockCost, SeparatesTheSharedExpertWhenItRunsBesideTheDispatch) {
  PricedRun run = deepseek();
  const BlockCost together = run.block("AE");
  run.software.shared_beside_dispatch = true;
  const BlockCost apart = run.block("AE");
  EXPECT_TRUE(apart.task(Pass::forward, TaskKind::shared).exists);
  EXPECT_TRUE(apart.task(Pass::weight, TaskKind::shared).exists);
  EXPECT_LT(ms(apart, Pass::forward, TaskKind::mlp), ms(together, Pass::forward, TaskKind::mlp));
  EXPECT_NEAR(layer_ms(apart), layer_ms(together), 1e-6 * layer_ms(together));
}

// One DeepSeek-V3 dense layer by hand, without tables, host time and elementwise traffic: projections of
// 7168·1536 + 1536·24576 + 7168·576 + 512·32768 + 16384·7168 = 187,105,280 weights, feed-forward of
// 3·7168·18432.
TEST(BlockCost, DeepSeekDenseLayerByHand) {
  PricedRun run = deepseek();
  run.table = nullptr;
  run.software.cuda_graphs = CudaGraphs::iteration;
  run.constants.memory_traffic = 0;
  const BlockCost layer = run.block("AD");
  const double tokens = 4096, peak = 0.86 * 989e12, stream = 0.8 * 3.35e12;
  const auto product = [&](double in, double out) {
    return 2 * tokens * in * out / peak + (2 * (tokens * in + in * out) + 2 * tokens * out) / stream;
  };
  const double feed_forward = product(7168, 36864) + product(18432, 7168);
  EXPECT_NEAR(ms(layer, Pass::forward, TaskKind::mlp), 1e3 * feed_forward, 1e-9);
  const double projections = product(7168, 1536) + product(1536, 24576) + product(7168, 576) +
                             product(512, 32768) + product(16384, 7168);
  // Core: 128 heads, 192 + 128 wide, half the sequence on average, at FlashAttention-3's 0.585 of the peak.
  const double core = tokens * 2 * 128 * 320 * 2048 / (0.585 * 989e12);
  EXPECT_NEAR(ms(layer, Pass::forward, TaskKind::attention), 1e3 * (projections + core), 1e-6);
  EXPECT_NEAR(ms(layer, Pass::backward, TaskKind::attention), 1e3 * (projections + 3.2 * core), 0.02);
  // Weight gradients: the same operations, and four bytes a weight into the main gradient.
  const double gradient = 4 * 3 * 7168.0 * 18432 / 3.35e12;
  EXPECT_NEAR(ms(layer, Pass::weight, TaskKind::mlp), 1e3 * (feed_forward + gradient), 0.05);
}

TEST(BlockCost, CountsDistinctRanksAndNotCopies) {
  // Eight of 128 experts on EP8: a token visits 5.25 distinct ranks, 7 in 8 of which are not its own.
  PricedRun run{"Qwen3-30B-A3B.json", "H100", {.ep = 8, .dp = 8}};
  const double distinct = 8 * (1 - std::pow(7.0 / 8, 8));
  EXPECT_NEAR(distinct, 5.25, 0.01);
  const BlockCost layer = run.block("AE");
  EXPECT_NEAR(layer.task(Pass::forward, TaskKind::combine).communicated.value(),
              4096 * 2048 * 2 * distinct * 7 / 8, 1);
  run.software.dispatcher = Dispatcher::all_to_all;
  EXPECT_NEAR(run.block("AE").task(Pass::forward, TaskKind::combine).communicated.value(),
              4096 * 2048 * 2 * 7.0, 1);
}

TEST(BlockCost, NodeLimitedRoutingCrossesToFewerNodes) {
  PricedRun run = deepseek();
  const double limited = ms(run.block("AE"), Pass::forward, TaskKind::combine);
  for (Layer& layer : run.model.layer_types)
    if (layer.moe) layer.moe->groups = layer.moe->top_groups = 0;
  // 8 nodes: 5.25 distinct against 3.6 of four reachable ones.
  EXPECT_NEAR(ms(run.block("AE"), Pass::forward, TaskKind::combine) / limited, 5.25 / 3.6, 0.03);
}

TEST(BlockCost, TensorParallelHalvesProductsAndAddsCollectives) {
  PricedRun one = deepseek(1), two = deepseek(2);
  one.software.cuda_graphs = two.software.cuda_graphs = CudaGraphs::iteration;
  const BlockCost a = one.block("AD"), b = two.block("AD");
  EXPECT_NEAR(ms(b, Pass::forward, TaskKind::mlp) / ms(a, Pass::forward, TaskKind::mlp), 0.55, 0.1);
  EXPECT_NEAR(ms(b, Pass::forward, TaskKind::attention) / ms(a, Pass::forward, TaskKind::attention), 0.58,
              0.1);
  EXPECT_EQ(b.memory.expert_parameters, 0);
  EXPECT_NEAR(static_cast<double>(b.memory.dense_parameters) / static_cast<double>(a.memory.dense_parameters),
              0.5, 0.01);
}

// EP8 with ETP2 is sixteen ranks over two nodes: nothing a node of eight measured, and twice the nodes to
// reach.
TEST(BlockCost, ExpertTensorParallelTakesTheAllToAllAcrossNodes) {
  PricedRun run{"Qwen3-30B-A3B.json", "H100", {.ep = 8, .dp = 16}};
  const BlockCost inside = run.block("AE");
  run.layout.etp = 2;
  const BlockCost across = run.block("AE");
  const auto share = [](const BlockCost& block) {
    const Estimate& time = block.task(Pass::forward, TaskKind::combine).duration;
    return time.by_source[static_cast<std::size_t>(Provenance::roofline)] / time.time;
  };
  EXPECT_DOUBLE_EQ(share(inside), 0) << "DeepEP's table";
  EXPECT_DOUBLE_EQ(share(across), 1);
  // 1.8 of two nodes, half of them remote, over a NIC of 40 GB/s.
  const double nodes = 2 * (1 - std::pow(0.5, 8));
  const double wire = 4096 * 2048 * 2 * nodes / 2 / 40e9 * 1e3;
  EXPECT_GT(ms(across, Pass::forward, TaskKind::combine), wire);
  EXPECT_LT(ms(across, Pass::forward, TaskKind::combine), 1.15 * wire);
}

// 4,096 tokens at TP2: what a vocabulary cut in two moves, over 0.7 of 450 GB/s.
TEST(BlockCost, AVocabularyCutOverRanksCommunicates) {
  PricedRun run{"Qwen3-30B-A3B.json", "H100", {.tp = 2, .ep = 8, .dp = 4}};
  run.table = nullptr;
  run.constants.memory_traffic = 0;
  const BlockCost embedding = run.block("embedding");
  const double latency = milliseconds(run.cluster.fabric.scale_up_latency);
  const double rows = 4096 * 2048 * 2 / 2 / (0.7 * 450e9) * 1e3 + latency;
  EXPECT_NEAR(ms(embedding, Pass::forward, TaskKind::embedding), rows, 1e-9);
  EXPECT_NEAR(ms(embedding, Pass::weight, TaskKind::embedding), rows, 1e-9);
  const BlockCost cut = run.block("head");
  // Half the vocabulary on one rank, alone.
  run.layout = {.ep = 8, .dp = 8};
  run.model.vocabulary /= 2;
  const BlockCost half = run.block("head");
  const double numbers = 4096 * 4 / 2 / (0.7 * 450e9) * 1e3 + latency;
  const auto more = [&](Pass pass) { return ms(cut, pass, TaskKind::head) - ms(half, pass, TaskKind::head); };
  EXPECT_NEAR(more(Pass::forward), rows + 3 * 2 * numbers, 1e-9);
  EXPECT_NEAR(more(Pass::backward), rows, 1e-9);
  EXPECT_NEAR(more(Pass::weight), rows, 1e-9);
}

// A linear mixer hands on states, whatever the sequence: 32 heads of 128 × 128 in fp32 for Qwen3-Next.
TEST(BlockCost, LinearMixersExchangeStatesUnderContextParallelism) {
  const auto exchanged = [](const char* file, std::int64_t sequence, std::int64_t microbatch_size) {
    PricedRun run{file, "H100", {.cp = 4, .microbatch_size = microbatch_size, .sequence = sequence}};
    const CostInput input = run.input();
    const pricing::Context context(input);
    return pricing::core_time(context, run.model.layer_of(run.model.blocks[1]).mixer).exchanged.value();
  };
  EXPECT_DOUBLE_EQ(exchanged("Qwen3-Next-80B-A3B.json", 32'768, 1), 4.0 * 32 * 128 * 128 * 3);
  EXPECT_DOUBLE_EQ(exchanged("Qwen3-Next-80B-A3B.json", 131'072, 2), 4.0 * 32 * 128 * 128 * 3 * 2);
  EXPECT_GT(exchanged("Qwen3-30B-A3B.json", 32'768, 1), 0);
}

TEST(BlockCost, IsTheSameForAnyNumberOfReplicas) {
  PricedRun one{"Qwen3-30B-A3B.json", "H100", {.tp = 2, .pp = 4, .ep = 2, .dp = 1}};
  PricedRun many{"Qwen3-30B-A3B.json", "H100", {.tp = 2, .pp = 4, .ep = 2, .dp = 128}};
  const ModelCost a = one.price(), b = many.price();
  ASSERT_EQ(a.kinds.size(), b.kinds.size());
  for (std::size_t k = 0; k < a.kinds.size(); ++k) {
    for (std::size_t pass = 0; pass < kPasses; ++pass)
      for (std::size_t kind = 0; kind < kTaskKinds; ++kind)
        EXPECT_EQ(a.kinds[k].tasks[pass][kind].duration.time, b.kinds[k].tasks[pass][kind].duration.time);
    EXPECT_EQ(a.kinds[k].memory.activation, b.kinds[k].memory.activation);
    EXPECT_EQ(a.kinds[k].memory.weights, b.kinds[k].memory.weights);
    EXPECT_GT(a.kinds[k].memory.optimizer, b.kinds[k].memory.optimizer);
  }
  EXPECT_EQ(price_transfer(one.input()).duration.time, price_transfer(many.input()).duration.time);
}

TEST(BlockCost, ProvenanceSumsToTheTime) {
  for (const char* gpu : {"H100", "H800", "H20", "GB300", "MI300X"}) {
    for (const BlockCost& kind :
         PricedRun("Qwen3-Next-80B-A3B.json", gpu, {.ep = 16, .dp = 16}).price().kinds)
      for (const auto& pass : kind.tasks)
        for (const TaskCost& task : pass) {
          Seconds sum;
          for (const Seconds part : task.duration.by_source) sum += part;
          EXPECT_NEAR(sum.value(), task.duration.time.value(), 1e-12);
          EXPECT_TRUE(std::isfinite(task.duration.time.value()));
          EXPECT_LE(task.duration.error.value(), task.duration.time.value());
          EXPECT_GE(task.compute_share, 0);
          EXPECT_LE(task.compute_share, 1);
          EXPECT_EQ(task.exists, task.duration.time.value() > 0) << kind.name;
        }
  }
}

TEST(BlockCost, TakesTablesWhereTheyReach) {
  const auto share = [](const BlockCost& block, Provenance source) {
    const Estimate& time = block.task(Pass::forward, TaskKind::attention).duration;
    return time.by_source[static_cast<std::size_t>(source)] / time.time;
  };
  const Layout layout{.ep = 16, .dp = 16};
  const BlockCost h100 = PricedRun("Qwen3-Next-80B-A3B.json", "H100", layout).block("GE");
  EXPECT_GT(share(h100, Provenance::table), 0.1) << "the delta rule was measured on H100 itself";
  EXPECT_GT(share(h100, Provenance::scaled_table) + share(h100, Provenance::extended_table), 0.05)
      << "products come from H200";
  const BlockCost mi300 = PricedRun("Qwen3-Next-80B-A3B.json", "MI300X", layout).block("GE");
  EXPECT_DOUBLE_EQ(share(mi300, Provenance::table) + share(mi300, Provenance::scaled_table), 0);
  EXPECT_GT(share(mi300, Provenance::roofline), 0.3);
}

TEST(BlockCost, RecomputeCostsAForwardOfItsUnit) {
  PricedRun run = deepseek();
  run.software.cuda_graphs = CudaGraphs::iteration;
  const BlockCost kept = run.block("AE");
  run.layout.recompute.full = true;
  const BlockCost full = run.block("AE");
  EXPECT_NEAR(milliseconds(full.serial(Pass::backward) - kept.serial(Pass::backward)),
              milliseconds(kept.serial(Pass::forward)), 1e-9);
  EXPECT_LT(full.memory.activation.value(), 0.1 * kept.memory.activation.value());
  EXPECT_DOUBLE_EQ(full.memory.activation.value(), 4096 * 7168 * 2.0) << "only the layer's input is left";
  run.layout.recompute = {.mla_up_projection = true};
  const BlockCost up = run.block("AE");
  EXPECT_GT(ms(up, Pass::recompute, TaskKind::attention), 0);
  EXPECT_EQ(ms(up, Pass::backward, TaskKind::attention), ms(kept, Pass::backward, TaskKind::attention));
  EXPECT_DOUBLE_EQ(kept.memory.activation.value() - up.memory.activation.value(),
                   4096 * 2.0 * 128 * (2 * 192 + 128));
}

TEST(BlockCost, HostTimeIsWhatGraphsTakeAway) {
  PricedRun run{"Qwen3-30B-A3B.json", "H100", {.ep = 16, .dp = 16}};
  const double eager = layer_ms(run.block("AE"));
  run.software.cuda_graphs = CudaGraphs::layer;
  const double layers = layer_ms(run.block("AE"));
  run.software.cuda_graphs = CudaGraphs::iteration;
  const double iteration = layer_ms(run.block("AE"));
  EXPECT_GT(eager, layers);
  EXPECT_GT(layers, iteration);
  const BlockCost graphed = run.block("AE");
  const Estimate& mlp = graphed.task(Pass::forward, TaskKind::mlp).duration;
  EXPECT_EQ(mlp.by_source[static_cast<std::size_t>(Provenance::constant)].value(), 0);
  EXPECT_EQ(graphed.task(Pass::forward, TaskKind::mlp).host_share(), 0);
  run.software.cuda_graphs = CudaGraphs::none;
  const BlockCost launched = run.block("AE");
  const TaskCost& task = launched.task(Pass::forward, TaskKind::mlp);
  EXPECT_NEAR(task.host_share(), 1 - mlp.time / task.duration.time, 1e-12);
  EXPECT_GT(task.host_share(), 0.1);
  EXPECT_LE(task.host_share() + task.compute_share, 1);
}

TEST(BlockCost, RefusesADtypeTheDeviceLacks) {
  PricedRun run = deepseek();
  run.layout.dtype = Dtype::nvfp4;
  const auto cost = price_model(run.input());
  ASSERT_FALSE(cost);
  EXPECT_EQ(cost.error().text(),
            "layout.dtype: H100 has no unit for nvfp4\n"
            "  It computes in bf16, fp8. A figure of your own can be given as cluster.nvfp4_tflops.");
}

TEST(StepCost, ShardsTheOptimizerAndReducesOverReplicas) {
  PricedRun run{"Qwen3-30B-A3B.json", "H100", {.ep = 8, .dp = 8}};
  const StepCost one = price_step(run.input(), 1'000'000'000, 0);
  // 1.25 · 30 bytes for an eighth, and four bytes of gradient cleared for every parameter, at 3.35 TB/s.
  EXPECT_NEAR(milliseconds(one.optimizer.time), (1.25 * 30 / 8 + 4) * 1e9 / 3.35e12 * 1e3, 1e-6);
  EXPECT_GT(one.all_gather.time.value(), 0);
  EXPECT_EQ(price_step(run.input(), 0, 1'000'000'000).reduce_scatter.time.value(), 0) << "expert DP is one";
  // Gradients are fp32 and weights bf16; with bf16 gradients both carry the same bytes.
  EXPECT_GT(one.reduce_scatter.time.value(), 1.7 * one.all_gather.time.value());
  run.software.bf16_gradients = true;
  const StepCost narrow = price_step(run.input(), 1'000'000'000, 0);
  EXPECT_NEAR(narrow.reduce_scatter.time / narrow.all_gather.time, 1, 0.1);
  run.software.bf16_gradients = false;
  run.software.distributed_optimizer = false;
  const StepCost whole = price_step(run.input(), 1'000'000'000, 0);
  EXPECT_EQ(whole.all_gather.time.value(), 0);
  EXPECT_GT(whole.reduce_scatter.time, one.reduce_scatter.time);
  EXPECT_GT(whole.optimizer.time, one.optimizer.time);
}

TEST(TransferCost, IsOneActivationOverTheLink) {
  PricedRun run{"Qwen3-30B-A3B.json", "H100", {.pp = 2, .ep = 4, .dp = 4, .microbatch_size = 2}};
  const TransferCost inside = price_transfer(run.input());
  EXPECT_DOUBLE_EQ(inside.bytes.value(), 2 * 4096 * 2048 * 2.0);
  EXPECT_DOUBLE_EQ(inside.duration.time.value(), inside.bytes.value() / (450e9 * 0.7));
  run.layout.ep = 8;
  run.layout.dp = 8;
  EXPECT_DOUBLE_EQ(price_transfer(run.input()).duration.time.value(), inside.bytes.value() / (50e9 * 0.8));
}

TEST(Interference, IsTheShareOfMultiprocessors) {
  PricedRun run{"Qwen3-30B-A3B.json", "H100", {.ep = 8, .dp = 8}};
  EXPECT_DOUBLE_EQ(interference(run.input()).compute_bound_rate, 112.0 / 132);
  EXPECT_NEAR(interference(run.input()).memory_bound_rate, 1 - 2 * 315.0 / 3350, 1e-9);
  run.cluster.gpu.memory_bandwidth = BytesPerSecond(0.5e12);
  EXPECT_DOUBLE_EQ(interference(run.input()).memory_bound_rate, 0.5) << "never less than a fair half";
  run.software.dispatcher = Dispatcher::low_latency;
  EXPECT_DOUBLE_EQ(interference(run.input()).compute_bound_rate, 1);
  run.layout.ep = 1;
  EXPECT_EQ(interference(run.input()), Interference{});
}

}  // namespace
}  // namespace tessera
