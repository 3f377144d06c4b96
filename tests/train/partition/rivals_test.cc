#include "tessera/train/partition/rivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "tessera/core/model/count.h"
#include "tessera/core/model/import.h"
#include "train/random.h"
#include "train/testing_model.h"

namespace tessera::train {
namespace {

std::vector<std::int32_t> sizes(const ModelSpec& model, const Partition& partition) {
  std::vector<std::int32_t> out;
  for (const BlockRange& range : partition.stages) {
    out.push_back(0);
    for (std::int32_t b = range.begin; b < range.end; ++b)
      out.back() += model.blocks[static_cast<std::size_t>(b)].kind == BlockKind::layer ? 1 : 0;
  }
  return out;
}

// The five splits that other tools lose layers on, each covered whole.
TEST(EvenPartition, CoversEveryLayer) {
  using Sizes = std::vector<std::int32_t>;
  EXPECT_EQ(sizes(uniform_model(30), even_partition(uniform_model(30), 4).value()), (Sizes{7, 8, 8, 7}));
  EXPECT_EQ(sizes(uniform_model(10), even_partition(uniform_model(10), 3).value()), (Sizes{3, 4, 3}));
  EXPECT_EQ(sizes(uniform_model(48), even_partition(uniform_model(48), 2).value()), (Sizes{24, 24}));
  for (const auto& [layers, stages] : {std::pair<int, int>{80, 32}, {61, 16}, {61, 32}, {3, 8}}) {
    const auto counts = sizes(uniform_model(layers), even_partition(uniform_model(layers), stages).value());
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), layers);
    EXPECT_LE(*std::ranges::max_element(counts) - *std::ranges::min_element(counts), 1);
  }
}

struct Score {
  double bottleneck;
  double squares;
  auto operator<=>(const Score&) const = default;
};

Score score(const Partition& partition, const std::vector<Seconds>& weights) {
  Score out{0, 0};
  for (const BlockRange& range : partition.stages) {
    double time = 0;
    for (std::int32_t b = range.begin; b < range.end; ++b)
      time += weights[static_cast<std::size_t>(b)].value();
    out.bottleneck = std::max(out.bottleneck, time);
    out.squares += time * time;
  }
  return out;
}

// Every cover, tried one by one.
Score best_by_enumeration(std::int32_t blocks, std::int32_t stages, const std::vector<Seconds>& weights) {
  Score best{1e300, 1e300};
  Partition partition;
  const std::function<void(std::int32_t)> place = [&](std::int32_t begin) {
    const auto left = stages - static_cast<std::int32_t>(partition.stages.size());
    if (left == 1) {
      partition.stages.push_back({begin, blocks});
      best = std::min(best, score(partition, weights));
      partition.stages.pop_back();
      return;
    }
    for (std::int32_t end = begin + 1; end <= blocks - (left - 1); ++end) {
      partition.stages.push_back({begin, end});
      place(end);
      partition.stages.pop_back();
    }
  };
  place(0);
  return best;
}

TEST(SerialBalancedPartition, IsTheBestOfAll) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const int layers = 2 + static_cast<int>(random() % 9);
    const ModelSpec model = uniform_model(layers, static_cast<std::int64_t>(random() % 2));
    const auto blocks = static_cast<std::int32_t>(model.blocks.size());
    std::vector<Seconds> weights;
    // Whole numbers, so that the two ways of adding agree to the last bit; zeros included.
    for (std::int32_t b = 0; b < blocks; ++b) weights.emplace_back(static_cast<double>(random() % 10));
    weights[1] = Seconds(5);
    const auto stages = 1 + static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(blocks));
    const auto partition = serial_balanced_partition(model, weights, stages);
    ASSERT_TRUE(partition) << partition.error().text();
    ASSERT_TRUE(check_partition(model, *partition));
    ASSERT_EQ(partition->stages.size(), static_cast<std::size_t>(stages));
    const Score expected = best_by_enumeration(blocks, stages, weights);
    const Score found = score(*partition, weights);
    EXPECT_EQ(found.bottleneck, expected.bottleneck);
    EXPECT_EQ(found.squares, expected.squares);
  }
}

// The last digits of a cost are noise: they must not move a boundary.
TEST(SerialBalancedPartition, IgnoresNoiseInTheLastDigits) {
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 200; ++trial) {
    const ModelSpec model = uniform_model(20 + static_cast<std::int64_t>(random() % 30));
    std::vector<Seconds> weights;
    for (std::size_t b = 0; b < model.blocks.size(); ++b)
      weights.emplace_back(b % 4 == 3 ? 0.0123456789 : 0.0098765432);
    std::vector<Seconds> noisy = weights;
    for (Seconds& weight : noisy) weight *= 1 + (static_cast<double>(random() % 5) - 2) * 1e-15;
    const auto stages = static_cast<std::int64_t>(2 + random() % 15);
    EXPECT_EQ(serial_balanced_partition(model, weights, stages).value(),
              serial_balanced_partition(model, noisy, stages).value());
  }
}

TEST(SerialBalancedPartition, GivesASlowRankLess) {
  const ModelSpec model = uniform_model(28);  // 30 blocks of one second
  const std::vector<Seconds> weights(30, Seconds(1));
  const std::vector<double> speed{1, 1, 0.5, 1};
  const auto partition = serial_balanced_partition(model, weights, 4, speed).value();
  std::vector<std::int32_t> blocks;
  for (const BlockRange& range : partition.stages) blocks.push_back(range.end - range.begin);
  // 3.5 full ranks share 30 seconds, so some stage takes nine; three blocks take six on the half one.
  EXPECT_EQ(blocks, (std::vector<std::int32_t>{9, 9, 3, 9}));
}

TEST(SerialBalancedPartition, LeavesStagesEmptyOnlyWhenBlocksRunOut) {
  const ModelSpec model = uniform_model(3);  // five blocks
  const std::vector<Seconds> weights(5, Seconds(1));
  const auto partition = serial_balanced_partition(model, weights, 8).value();
  EXPECT_TRUE(check_partition(model, partition));
  EXPECT_LT(partition.stages.front().begin, partition.stages.front().end);
  EXPECT_LT(partition.stages.back().begin, partition.stages.back().end);
}

TEST(SerialBalancedPartition, RefusesNonsense) {
  const ModelSpec model = uniform_model(3);
  EXPECT_FALSE(serial_balanced_partition(model, std::vector<Seconds>(4, Seconds(1)), 2));
  EXPECT_FALSE(serial_balanced_partition(model, std::vector<Seconds>(5, Seconds(1)), 0));
  EXPECT_FALSE(even_partition(model, 5000));
}

ModelSpec imported(const std::string& name) {
  const auto model = import_model_file(std::string(TESSERA_SOURCE) + "/data/models/" + name + ".json");
  EXPECT_TRUE(model) << model.error().text();
  return *model;
}

template <class Weigh>
double largest(const ModelSpec& model, const Partition& partition, Weigh&& weigh) {
  double out = 0;
  for (const BlockRange& range : partition.stages) {
    double sum = 0;
    for (std::int32_t b = range.begin; b < range.end; ++b)
      sum += weigh(model.blocks[static_cast<std::size_t>(b)]);
    out = std::max(out, sum);
  }
  return out;
}

// Three dense layers weigh a twentieth of a MoE layer: by parameters they share a stage with many, and by
// FLOPs with about as many as they are.
TEST(ParameterBalancedPartition, SeesExpertsThatHardlyCompute) {
  const ModelSpec model = imported("DeepSeek-V3");
  const auto parameters = [&](const Block& b) {
    return static_cast<double>(count_parameters(model, b).total());
  };
  const auto flops = [&](const Block& b) { return forward_flops(model, b, 4096).total().value(); };
  const Partition by_parameters = parameter_balanced_partition(model, 20).value();
  const Partition by_flops = flop_balanced_partition(model, 20, 4096).value();
  EXPECT_LT(largest(model, by_parameters, parameters), largest(model, by_flops, parameters));
  EXPECT_LT(largest(model, by_flops, flops), largest(model, by_parameters, flops));
  EXPECT_GT(by_parameters.stages[0].end, by_flops.stages[0].end);
}

TEST(ParameterBalancedPartition, CountsATiedHead) {
  ModelSpec model = uniform_model(8);
  model.vocabulary = 4096;  // 262,144 parameters at each end, 40,960 and two norms in a layer
  model.tied_embeddings = true;
  EXPECT_EQ(sizes(model, parameter_balanced_partition(model, 4).value()),
            (std::vector<std::int32_t>{0, 4, 4, 0}));
}

TEST(FlopBalancedPartition, DependsOnTheSequence) {
  // Qwen3-Next: every fourth layer is softmax attention, whose core grows with the sequence.
  const ModelSpec model = imported("Qwen3-Next-80B-A3B");
  const auto flops = [&](std::int64_t sequence, const Partition& partition) {
    return largest(model, partition,
                   [&](const Block& b) { return forward_flops(model, b, sequence).total().value(); });
  };
  const Partition at_1k = flop_balanced_partition(model, 12, 1024).value();
  const Partition at_256k = flop_balanced_partition(model, 12, 262144).value();
  EXPECT_LT(flops(1024, at_1k), flops(1024, at_256k));
  EXPECT_LT(flops(262144, at_256k), flops(262144, at_1k));
  EXPECT_FALSE(flop_balanced_partition(model, 16, 0));
}

double alpa_objective(const Partition& partition, const std::vector<Seconds>& weights,
                      std::int64_t microbatches, const std::vector<double>& speed) {
  double sum = 0, slowest = 0;
  for (std::size_t s = 0; s < partition.stages.size(); ++s) {
    double time = 0;
    for (std::int32_t b = partition.stages[s].begin; b < partition.stages[s].end; ++b)
      time += weights[static_cast<std::size_t>(b)].value();
    if (!speed.empty()) time /= speed[s];
    sum += time;
    slowest = std::max(slowest, time);
  }
  return sum + static_cast<double>(microbatches - 1) * slowest;
}

TEST(AlpaPartition, IsTheBestOfAll) {
  testing::Random random(3);
  int beats_balance = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const ModelSpec model = uniform_model(random.between(3, 8));
    const auto blocks = static_cast<std::int32_t>(model.blocks.size());
    std::vector<Seconds> weights;
    for (std::int32_t b = 0; b < blocks; ++b) weights.emplace_back(random.between(1, 9));
    const int stages = random.between(1, 4);
    std::vector<double> speed;
    for (int s = 0; s < stages; ++s) speed.push_back(std::exp2(-random.between(0, 2)));  // exact to divide by
    const std::int64_t microbatches = random.between(1, 6);

    double best = 1e300;
    Partition partition;
    const std::function<void(std::int32_t)> place = [&](std::int32_t begin) {
      const auto left = stages - static_cast<std::int32_t>(partition.stages.size());
      for (std::int32_t end = left == 1 ? blocks : begin + 1; end <= blocks - (left - 1); ++end) {
        partition.stages.push_back({begin, end});
        if (left == 1)
          best = std::min(best, alpa_objective(partition, weights, microbatches, speed));
        else
          place(end);
        partition.stages.pop_back();
      }
    };
    place(0);
    const Partition found = alpa_partition(model, weights, stages, microbatches, speed).value();
    EXPECT_EQ(alpa_objective(found, weights, microbatches, speed), best);
    const Partition balanced = serial_balanced_partition(model, weights, stages, speed).value();
    beats_balance += best < alpa_objective(balanced, weights, microbatches, speed) ? 1 : 0;
    // At one speed it is the serial balance.
    EXPECT_EQ(alpa_partition(model, weights, stages, microbatches + 1).value(),
              serial_balanced_partition(model, weights, stages).value());
  }
  EXPECT_GT(beats_balance, 20);
}

TEST(AlpaPartition, RefusesNonsense) {
  const ModelSpec model = uniform_model(3);
  EXPECT_FALSE(alpa_partition(model, std::vector<Seconds>(5, Seconds(1)), 2, 0));
  EXPECT_FALSE(alpa_partition(model, std::vector<Seconds>(5, Seconds(1)), 2, 4, std::vector<double>{1}));
}

}  // namespace
}  // namespace tessera::train
