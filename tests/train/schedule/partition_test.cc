#include "tessera/train/schedule/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::train {
namespace {

using ::testing::HasSubstr;

ModelSpec model_with(int layers, int mtp = 0) {
  ModelSpec model;
  model.blocks.push_back({.kind = BlockKind::embedding});
  for (int i = 0; i < layers; ++i) model.blocks.push_back({.kind = BlockKind::layer, .layer = i, .type = 0});
  for (int i = 0; i < mtp; ++i)
    model.blocks.push_back({.kind = BlockKind::mtp, .layer = layers + i, .type = 0});
  model.blocks.push_back({.kind = BlockKind::head});
  return model;
}
std::string fault(const ModelSpec& model, std::vector<BlockRange> stages) {
  const auto status = check_partition(model, Partition{std::move(stages)});
  return status ? "sound" : status.error().text();
}

TEST(CheckPartition, AcceptsACoverWithEmptyStagesInBetween) {
  EXPECT_EQ(fault(model_with(4), {{0, 3}, {3, 3}, {3, 6}}), "sound");
  EXPECT_EQ(fault(model_with(4), {{0, 3}, {0, 0}, {3, 6}}), "sound");
}

TEST(CheckPartition, NamesTheLayersThatWouldBeLost) {
  // 80 layers in 32 chunks of two.
  std::vector<BlockRange> stages{{0, 3}};
  for (int s = 1; s < 31; ++s) stages.push_back({1 + 2 * s, 3 + 2 * s});
  stages.push_back({63, 65});
  EXPECT_THAT(fault(model_with(80), stages),
              HasSubstr("no stage holds layers 64 to 79 (16 of them) and the head"));
  // 30 layers over four ranks by 30 / 4 = 7.
  EXPECT_THAT(fault(model_with(30), {{0, 8}, {8, 15}, {15, 22}, {22, 29}}),
              HasSubstr("no stage holds layers 28 and 29 and the head"));
  // 48 layers, 11 first and 13 last.
  EXPECT_THAT(fault(model_with(48), {{0, 12}, {36, 50}}),
              HasSubstr("no stage holds layers 11 to 34 (24 of them)"));
  EXPECT_THAT(fault(model_with(10), {{0, 7}, {9, 11}, {11, 12}}), HasSubstr("no stage holds layers 6 and 7"));
  EXPECT_THAT(fault(model_with(3, 2), {{0, 4}, {6, 7}}), HasSubstr("no stage holds MTP layers 3 and 4"));
}

TEST(CheckPartition, NamesTheLayersThatAreDoubled) {
  EXPECT_THAT(fault(model_with(8), {{0, 5}, {4, 10}}),
              HasSubstr("stage 1 and a stage before it both hold layer 3"));
  EXPECT_THAT(fault(model_with(8), {{0, 10}, {2, 10}}),
              HasSubstr("stage 1 and a stage before it both hold layers 1 to 7 (7 of them) and the head"));
}

TEST(CheckPartition, WantsEmbeddingAndHeadAtTheEnds) {
  EXPECT_THAT(fault(model_with(4), {{0, 0}, {0, 6}}),
              HasSubstr("the first stage is empty, but the embedding must be there"));
  EXPECT_THAT(fault(model_with(4), {{0, 6}, {6, 6}}),
              HasSubstr("the last stage is empty, but the head must be there"));
}

TEST(CheckPartition, RefusesImpossibleRanges) {
  EXPECT_THAT(fault(model_with(4), {{0, 7}}),
              HasSubstr("stage 0 holds blocks 0 to 7; expected 0 ≤ begin ≤ end ≤ 6"));
  EXPECT_THAT(fault(model_with(4), {{3, 0}, {0, 6}}), HasSubstr("stage 0 holds blocks 3 to 0"));
  EXPECT_THAT(fault(model_with(4), {}), HasSubstr("no stages"));
}

}  // namespace
}  // namespace tessera::train
