#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/train/partition/partition_problem.h"
#include "train/testing_model.h"

namespace tessera::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<RankId> interleaved(int pp, int vp) {
  std::vector<RankId> out;
  for (int s = 0; s < pp * vp; ++s) out.emplace_back(s % pp);
  return out;
}

TEST(LegalPlaces, KeepTheEndsAndFillEveryStage) {
  // Embedding, four layers, head: six blocks over three stages.
  const auto places = legal_places(uniform_model(4), interleaved(3, 1), {}).value();
  EXPECT_THAT(places, ElementsAre(ElementsAre(1, 2, 3, 4), ElementsAre(2, 3, 4, 5)));
  const auto empty = legal_places(uniform_model(4), interleaved(3, 1), {.empty_stages = true}).value();
  EXPECT_THAT(empty, ElementsAre(ElementsAre(1, 2, 3, 4, 5), ElementsAre(1, 2, 3, 4, 5)));
}

TEST(LegalPlaces, LeaveOutWhatIsUncutOrPinned) {
  const auto places =
      legal_places(uniform_model(6), interleaved(4, 1), {.uncut = {2, 6}, .pinned = {{StageId(2), 4}}})
          .value();
  EXPECT_THAT(places, ElementsAre(ElementsAre(1, 3), ElementsAre(4), ElementsAre(5, 7)));
}

// Blocks: embedding 0, layers 1–6, MTP 7 and 8, head 9.
TEST(LegalPlaces, KeepMtpTogetherInTheLastChunkOfARank) {
  const ModelSpec model = uniform_model(6, 2);
  auto places = legal_places(model, interleaved(2, 2), {}).value();
  // Stage 3 alone is the last chunk of a rank that is not rank 0: MTP sits there with the head.
  EXPECT_THAT(places[2], ElementsAre(3, 4, 5, 6, 7));
  // Of four ranks, stages 5 to 7 may hold MTP: boundary 6 and 7 may lie before or behind it, not within.
  places = legal_places(model, interleaved(4, 2), {}).value();
  EXPECT_THAT(places[4], ElementsAre(5, 6));  // at most 7, and boundaries 6 and 7 have to follow
  EXPECT_THAT(places[5], ElementsAre(6, 7));
  EXPECT_THAT(places[6], ElementsAre(7, 9));
  // Development branches may split it.
  places = legal_places(model, interleaved(4, 2), {.split_mtp = true}).value();
  EXPECT_THAT(places[6], ElementsAre(7, 8, 9));
  // A V brings the last stage back to rank 0: there it may hold MTP, as may the stage before it.
  const std::vector<RankId> v{RankId(0), RankId(1), RankId(1), RankId(0)};
  places = legal_places(model, v, {}).value();
  EXPECT_THAT(places[2], ElementsAre(3, 4, 5, 6, 7, 9));
  EXPECT_THAT(places[1], ElementsAre(2, 3, 4, 5, 6, 7));
  // One rank holds all.
  places = legal_places(model, interleaved(1, 2), {}).value();
  EXPECT_THAT(places[0], ElementsAre(1, 2, 3, 4, 5, 6, 7));
}

TEST(LegalPlaces, RefuseRulesThatCannotBeMet) {
  const ModelSpec model = uniform_model(4);
  const auto message = [&](const PlacementRules& rules, int pp) {
    return legal_places(model, interleaved(pp, 1), rules).error().message;
  };
  EXPECT_THAT(
      message({.pinned = {{StageId(1), 4}, {StageId(2), 3}}}, 3),
      HasSubstr("stage 2 has no legal first block (it is pinned to block 3); stage 1 starts at block 4"));
  EXPECT_THAT(message({}, 8), HasSubstr("has no legal first block"));
  EXPECT_THAT(message({.pinned = {{StageId(0), 1}}}, 3), HasSubstr("expected a stage from 1 to 2"));
  EXPECT_THAT(message({.pinned = {{StageId(1), 9}}}, 3), HasSubstr("block 9; the model has blocks 0 to 5"));
  EXPECT_THAT(message({.pinned = {{StageId(1), 2}, {StageId(1), 3}}}, 3),
              HasSubstr("block 2 and to block 3"));
  EXPECT_THAT(message({.pinned = {{StageId(1), 5}}}, 3),
              HasSubstr("stage 2 has no legal first block; stage 1 starts at block 5"));
}

TEST(PlacesAround, TakesTheNearestWhereNoneIsClose) {
  const std::vector<std::vector<std::int32_t>> legal{{1, 2, 3, 4, 5}, {3, 9}, {4, 5, 6, 7, 10}};
  const Partition center{{{0, 2}, {2, 7}, {7, 8}, {8, 12}}};
  EXPECT_THAT(places_around(legal, center, 1),
              ElementsAre(ElementsAre(1, 2, 3), ElementsAre(9), ElementsAre(7)));
  EXPECT_THAT(places_around(legal, center, 1, 1),
              ElementsAre(ElementsAre(1, 2, 3, 4), ElementsAre(9), ElementsAre(7)));
  // An empty stage stands where the stages before it end, whatever its bounds say.
  const Partition odd{{{0, 5}, {0, 0}, {5, 6}, {6, 12}}};
  EXPECT_THAT(places_around(legal, odd, 1),
              ElementsAre(ElementsAre(4, 5), ElementsAre(3), ElementsAre(5, 6, 7)));
}

}  // namespace
}  // namespace tessera::train
