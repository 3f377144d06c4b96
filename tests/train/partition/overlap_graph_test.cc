#include "tessera/train/partition/overlap_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "tessera/train/schedule/check_schedule.h"
#include "tessera/train/schedule/schedule_template.h"

namespace tessera::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Action one(ActionKind kind, int stage, int microbatch) {
  return {.kind = kind, .stage = StageId(stage), .microbatch = MicrobatchId(microbatch)};
}
Action f(int stage, int microbatch) {
  return one(ActionKind::forward, stage, microbatch);
}
Action b(int stage, int microbatch) {
  return one(ActionKind::full_backward, stage, microbatch);
}
Action i(int stage, int microbatch) {
  return one(ActionKind::input_gradient, stage, microbatch);
}
Action w(int stage, int microbatch) {
  return one(ActionKind::weight_gradient, stage, microbatch);
}

TEST(OverlapGraph, KeepsDirectionAndMultiplicity) {
  ActionList actions{.microbatches = 2, .rank_of_stage = {RankId(0), RankId(0), RankId(0)}};
  actions.ranks = {{f(0, 0), f(1, 0), overlap(f(0, 1), b(1, 0)), overlap(f(1, 1), b(0, 0)), b(1, 1), b(0, 1),
                    f(2, 0), b(2, 0), f(2, 1), b(2, 1)}};
  const OverlapGraph graph = overlap_graph(actions);
  EXPECT_THAT(graph.edges,
              ElementsAre(OverlapEdge{StageId(0), StageId(1), 1}, OverlapEdge{StageId(1), StageId(0), 1}));
  EXPECT_THAT(graph.alone, ElementsAre(AloneStage{StageId(2), 2}));
  // Each forward of a pair is there before its backward frees: (2,1,0) beside B1, then (2,1,0) beside B0.
  ASSERT_EQ(graph.live.size(), 1u);
  EXPECT_THAT(graph.live[0], UnorderedElementsAre(ElementsAre(2, 1, 0), ElementsAre(0, 0, 1)));
}

TEST(OverlapGraph, FreesAtTheInputGradient) {
  ActionList actions{.microbatches = 2, .rank_of_stage = {RankId(0), RankId(0)}};
  actions.ranks = {
      {f(0, 0), f(1, 0), i(1, 0), i(0, 0), f(0, 1), w(1, 0), w(0, 0), f(1, 1), b(1, 1), b(0, 1)}};
  EXPECT_THAT(overlap_graph(actions).live[0], ElementsAre(ElementsAre(1, 1)));
  actions.ranks = {
      {f(0, 0), f(0, 1), f(1, 0), i(1, 0), i(0, 0), f(1, 1), w(1, 0), w(0, 0), b(1, 1), b(0, 1)}};
  EXPECT_THAT(overlap_graph(actions).live[0], ElementsAre(ElementsAre(2, 1)));
}

TEST(OverlapGraph, HasStagesAloneWithoutPairs) {
  const ActionList actions =
      make_schedule(Template::one_f_one_b, {.pp = 4, .vp = 1, .microbatches = 8}).value();
  const OverlapGraph graph = overlap_graph(actions);
  EXPECT_THAT(graph.edges, IsEmpty());
  ASSERT_EQ(graph.alone.size(), 4u);
  for (const AloneStage& alone : graph.alone) EXPECT_EQ(alone.multiplicity, 8);
  EXPECT_THAT(graph.live, ElementsAre(ElementsAre(ElementsAre(4)), ElementsAre(ElementsAre(3)),
                                      ElementsAre(ElementsAre(2)), ElementsAre(ElementsAre(1))));
}

// With overlap, the pairs of a rank are one path over its chunks with a self-loop at each end. (The middle
// rank of an odd number pairs every chunk with one other only.)
TEST(OverlapGraph, OfTheInterleavedTemplateIsAPathPerRank) {
  for (const int pp : {2, 3, 4, 8})
    for (const int vp : {1, 2, 3, 4, 5}) {
      const ActionList actions =
          make_schedule(Template::interleaved_overlap, {.pp = pp, .vp = vp, .microbatches = 4 * pp}).value();
      const ScheduleFacts facts = check_schedule(actions).value();
      const OverlapGraph graph = overlap_graph(actions);
      EXPECT_THAT(graph.alone, IsEmpty());
      for (int rank = 0; rank < pp; ++rank) {
        if (2 * rank + 1 == pp) continue;
        SCOPED_TRACE(fmt::format("pp {} vp {} rank {}", pp, vp, rank));
        std::set<std::pair<StageId, StageId>> merged;
        std::vector<int> degree(static_cast<std::size_t>(pp * vp), 0);
        int loops = 0;
        for (const OverlapEdge& edge : graph.edges) {
          if (graph.rank_of_stage[edge.forward.index()] != RankId(rank)) continue;
          EXPECT_EQ(graph.rank_of_stage[edge.backward.index()], RankId(rank));
          if (edge.forward == edge.backward) {
            ++loops;
            ++degree[edge.forward.index()];
          } else if (merged.insert(std::minmax(edge.forward, edge.backward)).second) {
            ++degree[edge.forward.index()];
            ++degree[edge.backward.index()];
          }
        }
        EXPECT_EQ(loops, vp == 1 ? 1 : 2);
        EXPECT_EQ(merged.size(), static_cast<std::size_t>(vp - 1));
        for (int chunk = 0; vp > 1 && chunk < vp; ++chunk)
          EXPECT_EQ(degree[static_cast<std::size_t>(chunk * pp + rank)], 2);
        // The largest sum of a live vector is what the schedule's checker counts.
        std::int32_t peak = 0;
        for (const auto& live : graph.live[static_cast<std::size_t>(rank)])
          peak = std::max(peak, std::accumulate(live.begin(), live.end(), 0));
        EXPECT_EQ(peak, facts.peak_live[static_cast<std::size_t>(rank)]);
      }
    }
}

// A pair with a shadow half is none, a shadow holds nothing.
TEST(OverlapGraph, LeavesShadowsOut) {
  ActionList actions{.microbatches = 3, .rank_of_stage = {RankId(0), RankId(0)}};
  actions.ranks = {{f(0, 0), f(1, 0), overlap(f(0, 1), b(1, 0)), overlap(f(1, 1), b(0, 0)),
                    overlap(f(0, 2), b(1, 1)), overlap(f(1, 2), b(0, 1)), b(1, 2), b(0, 2)}};
  EXPECT_EQ(overlap_graph(actions).edges.front(), (OverlapEdge{StageId(0), StageId(1), 2}));
  actions.shadow = {true, false, false};
  const OverlapGraph graph = overlap_graph(actions);
  EXPECT_THAT(graph.edges,
              ElementsAre(OverlapEdge{StageId(0), StageId(1), 1}, OverlapEdge{StageId(1), StageId(0), 1}));
  EXPECT_THAT(graph.live[0], ElementsAre(ElementsAre(2, 1)));
  actions.shadow = {true, true, false};
  EXPECT_THAT(overlap_graph(actions).alone,
              ElementsAre(AloneStage{StageId(0), 1}, AloneStage{StageId(1), 1}));
}

// DualPipe's stages are those of one pipeline, and the two ranks that hold the same ones are one rank.
TEST(OverlapGraph, FoldsTwoPipelines) {
  for (const int pp : {2, 4, 6, 8}) {
    const ActionList actions =
        make_schedule(Template::dual_pipe, {.pp = pp, .vp = 2, .microbatches = 4 * pp}).value();
    const OverlapGraph graph = overlap_graph(actions);
    ASSERT_EQ(graph.rank_of_stage.size(), static_cast<std::size_t>(pp));
    ASSERT_EQ(graph.live.size(), static_cast<std::size_t>(pp) / 2);
    for (int s = 0; s < pp; ++s)
      EXPECT_EQ(graph.rank_of_stage[static_cast<std::size_t>(s)].value(), std::min(s, pp - 1 - s));
    EXPECT_THAT(graph.alone, IsEmpty());
    const ScheduleFacts facts = check_schedule(actions).value();
    for (std::size_t r = 0; r < graph.live.size(); ++r) {
      std::int32_t peak = 0;
      for (const auto& live : graph.live[r]) {
        ASSERT_EQ(live.size(), 2U);
        peak = std::max(peak, live[0] + live[1]);
      }
      EXPECT_EQ(peak, facts.peak_live[r]);
      EXPECT_EQ(peak, facts.peak_live[static_cast<std::size_t>(pp) - 1 - r]);
    }
    // What a rank runs as forward of the near stage beside a backward of the far one, and the other way
    // round.
    for (const OverlapEdge& edge : graph.edges) {
      EXPECT_EQ(edge.forward.value() + edge.backward.value(), pp - 1);
      std::int64_t counted = 0;
      for (const Action& action :
           actions.ranks[static_cast<std::size_t>(graph.rank_of_stage[edge.forward.index()].value())])
        counted += action.kind == ActionKind::overlap && action.stage.value() % pp == edge.forward.value() &&
                           action.backward_stage.value() % pp == edge.backward.value()
                       ? 1
                       : 0;
      EXPECT_EQ(edge.multiplicity, counted);
    }
    EXPECT_EQ(graph.edges.size(), static_cast<std::size_t>(pp));
  }
}

TEST(OverlapGraph, KeepsOnlyMaximalLiveVectors) {
  const ActionList actions =
      make_schedule(Template::interleaved, {.pp = 4, .vp = 3, .microbatches = 8}).value();
  const OverlapGraph graph = overlap_graph(actions);
  for (const auto& vectors : graph.live)
    for (const auto& a : vectors)
      for (const auto& other : vectors)
        EXPECT_TRUE(&a == &other || !std::ranges::equal(other, a, std::greater_equal<>()));
}

}  // namespace
}  // namespace tessera::train
