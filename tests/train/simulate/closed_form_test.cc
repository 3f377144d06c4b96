// The simulator against formulas and published orders. The formulas are here and nowhere in the library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/train/schedule/check_schedule.h"
#include "tessera/train/simulate/simulate.h"
#include "train/schedule/vectors.h"
#include "train/testing.h"

namespace tessera::train {
namespace {

using testing::make_plan;
using testing::plain_block;
using testing::plain_plan;
using testing::Random;
using testing::set;

ActionList schedule(Template t, int pp, int vp, int m, int group = 0, bool any = false) {
  auto list = make_schedule(t, {.pp = pp, .vp = vp, .microbatches = m, .group = group, .any_group = any});
  EXPECT_TRUE(list) << list.error().text();
  return *std::move(list);
}
SimulateResult run(const ExecutionPlan& plan) {
  auto result = simulate(plan, {.slices = true});
  EXPECT_TRUE(result) << result.error().text();
  return *std::move(result);
}

TEST(ClosedForm, OfOneForwardOneBackward) {
  Random random(1);
  int combinations = 0;
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 20; ++m)
      for (int k = 0; k < 4; ++k, ++combinations) {
        const int f = random.between(1, 9), b = random.between(1, 20);
        const SimulateResult result = run(plain_plan(schedule(Template::one_f_one_b, p, 1, m), f, b));
        ASSERT_EQ(result.pipeline.value(), (m + p - 1) * (f + b)) << p << ' ' << m;
        for (int r = 0; r < p; ++r) {
          ASSERT_EQ(result.ranks[static_cast<std::size_t>(r)].peak_live, std::min(m, p - r));
          ASSERT_EQ(result.ranks[static_cast<std::size_t>(r)].comp_busy.value(), m * (f + b));
        }
        ASSERT_EQ(result.lower_bound, result.iteration);  // no order of these actions is faster
      }
  EXPECT_EQ(combinations, 640);
}

// With groups as large as the pipeline, and microbatches that fill them.
TEST(ClosedForm, OfInterleavedGroupsThatDivide) {
  Random random(2);
  int combinations = 0;
  for (int p = 2; p <= 6; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int groups = 1; groups <= 5; ++groups)
        for (int n = p; n <= p + 3; ++n)
          for (int k = 0; k < 3; ++k, ++combinations) {
            const int m = groups * n, f = random.between(1, 9), b = random.between(1, 20);
            const SimulateResult result = run(plain_plan(schedule(Template::interleaved, p, v, m, n), f, b));
            ASSERT_EQ(result.pipeline.value(), m * v * (f + b) + (p - 1) * (f + b))
                << p << ' ' << v << ' ' << m << ' ' << n;
            for (int r = 0; r < p; ++r)
              ASSERT_EQ(result.ranks[static_cast<std::size_t>(r)].peak_live,
                        std::min(m * v, (v - 1) * n + 2 * (p - 1 - r) + 1));
            ASSERT_EQ(result.lower_bound, result.iteration);
          }
  EXPECT_EQ(combinations, 1200);
}

// A chunk whose forward is comp f − x then comm x, and whose backward is comp b: a pair takes f + b − x.
// With w, that much of b is weight gradient.
std::vector<std::vector<BlockCost>> pair_blocks(std::size_t stages, double f, double b, double pair,
                                                double w = 0) {
  BlockCost cost;
  const double hidden = f + b - pair;
  set(cost, Pass::forward, TaskKind::attention, f - hidden);
  if (hidden > 0) set(cost, Pass::forward, TaskKind::dispatch, hidden);
  set(cost, Pass::backward, TaskKind::attention, b - w);
  if (w > 0) set(cost, Pass::weight, TaskKind::attention, w);
  return std::vector<std::vector<BlockCost>>(stages, {cost});
}

// Forward chunk first: its communication then hides behind the backward.
std::vector<TaskId> forward_first(const TaskGraph& graph) {
  std::vector<TaskId> order;
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) order.emplace_back(static_cast<std::int64_t>(i));
  return order;
}

TEST(ClosedForm, OfInterleavedWithPairs) {
  int combinations = 0;
  for (int p = 2; p <= 5; ++p)
    for (int v = 1; v <= 3; ++v)
      for (int groups = 2; groups <= 4; ++groups)
        for (const auto& [f, b, o] : {std::tuple{1, 2, 3}, std::tuple{2, 4, 5}, std::tuple{10, 20, 24}}) {
          const int m = groups * p;
          ActionList list = schedule(Template::interleaved_overlap, p, v, m);
          const std::size_t stages = list.stages();
          const SimulateResult result =
              run(make_plan(std::move(list), pair_blocks(stages, f, b, o), forward_first));
          const int n = p * (v - 1) + 1;
          ASSERT_EQ(result.pipeline.value(), (p - 1) * (f + b) + n * (f + b) + (m * v - n) * o)
              << p << ' ' << v << ' ' << m;
          for (int r = 0; r < p; ++r)
            ASSERT_EQ(result.ranks[static_cast<std::size_t>(r)].peak_live,
                      std::min(m * v, (v - 1) * p + 2 * (p - 1 - r) + 2));
          ++combinations;
        }
  EXPECT_EQ(combinations, 108);
}

class ReferenceTiming : public ::testing::TestWithParam<testing::Vector> {};

TEST_P(ReferenceTiming, IsMatchedStartByStart) {
  const Document document = testing::read_vector(GetParam().file);
  const Cursor root = document.root();
  const ActionList list =
      make_schedule(GetParam().schedule, testing::sizes_of(root, GetParam().group)).value();
  const Cursor timing = root.find("timing").value();
  ASSERT_EQ(timing.size(), 3U);
  for (std::size_t c = 0; c < timing.size(); ++c) {
    const Cursor set_of = timing.item(c), cost = set_of.find("cost").value();
    const auto number = [&](std::string_view key) { return cost.find(key)->number(0, 1e9).value(); };
    const TemplateTraits& of = traits(GetParam().schedule);
    ExecutionPlan plan = make_plan(
        list, pair_blocks(list.stages(), number("F"), number("B"), number("OVL"), of.split ? number("W") : 0),
        forward_first);
    if (!of.pairs)
      plan = make_plan(list, std::vector<std::vector<BlockCost>>(
                                 list.stages(), {of.split ? plain_block(number("F"), number("I"), number("W"))
                                                          : plain_block(number("F"), number("B"))}));
    plan.transfer_latency = Seconds(number("comm"));
    const SimulateResult result = run(plan);
    EXPECT_EQ(result.pipeline.value(), set_of.find("makespan")->number(0, 1e9).value()) << timing.key(c);
    const Cursor spans = set_of.find("start_end").value();
    for (const ActionSpan& span : result.actions) {
      const Cursor expected =
          spans.item(static_cast<std::size_t>(span.rank)).item(static_cast<std::size_t>(span.index));
      ASSERT_EQ(span.start.value(), expected.item(0).number(0, 1e9).value())
          << timing.key(c) << span.rank << ' ' << span.index;
      ASSERT_EQ(span.end.value(), expected.item(1).number(0, 1e9).value())
          << timing.key(c) << span.rank << ' ' << span.index;
    }
    for (std::size_t r = 0; r < result.ranks.size(); ++r) {
      const RankResult& rank = result.ranks[r];
      EXPECT_EQ((rank.warmup_idle + rank.cooldown_idle + rank.imbalance_idle).value(),
                set_of.find("idle_total")->item(r).number(0, 1e9).value());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Vectors, ReferenceTiming, ::testing::ValuesIn(testing::vectors()),
                         [](const auto& of) { return of.param.file; });

double unequal(std::vector<int> forward) {
  std::vector<std::vector<BlockCost>> blocks;
  for (const int f : forward) blocks.push_back({plain_block(f, 2 * f)});
  return run(make_plan(schedule(Template::one_f_one_b, 4, 1, 8), blocks)).pipeline.value();
}

TEST(ClosedForm, DoesNotHoldForUnequalStages) {
  EXPECT_EQ(run(plain_plan(schedule(Template::interleaved, 4, 2, 12), 1, 2)).pipeline, Seconds(81));
  EXPECT_EQ(unequal({1, 1, 1, 2}), 57);
  EXPECT_EQ(unequal({2, 1, 1, 1}), 51);
  EXPECT_EQ(unequal({1, 2, 1, 1}), 53);
  EXPECT_EQ(run(plain_plan(schedule(Template::interleaved, 4, 2, 10, 4, true), 1, 2)).pipeline, Seconds(79));
}

TEST(ClosedForm, ShowsWhatGroupsThatDoNotDivideCost) {
  struct Row {
    int m;
    double bound, unpadded;
    int group;  // the best legal one
    double best;
    int peak;
  };
  for (const Row& row :
       {Row{6, 45, 55, 6, 45, 12}, Row{7, 51, 53, 7, 51, 14}, Row{9, 63, 74, 5, 63, 12},
        Row{10, 69, 79, 5, 69, 12}, Row{11, 75, 77, 6, 75, 13}, Row{12, 81, 81, 4, 81, 11}}) {
    const SimulateResult unpadded =
        run(plain_plan(schedule(Template::interleaved, 4, 2, row.m, 4, true), 1, 2));
    EXPECT_EQ(unpadded.pipeline.value(), row.unpadded) << row.m;
    EXPECT_EQ(unpadded.ranks[0].peak_live, 11) << row.m;
    EXPECT_EQ(unpadded.lower_bound.value(), row.bound) << row.m;
    double best = 1e9;
    int group = 0;
    for (const int n : legal_groups(4, row.m)) {
      const double time =
          run(plain_plan(schedule(Template::interleaved, 4, 2, row.m, n), 1, 2)).pipeline.value();
      if (time < best) best = time, group = n;
    }
    EXPECT_EQ(best, row.best) << row.m;
    EXPECT_EQ(group, row.group) << row.m;
    EXPECT_EQ(run(plain_plan(schedule(Template::interleaved, 4, 2, row.m, group), 1, 2)).ranks[0].peak_live,
              row.peak);
  }
}

}  // namespace
}  // namespace tessera::train
