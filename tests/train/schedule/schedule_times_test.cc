#include "tessera/train/schedule/schedule_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/train/schedule/torch_csv.h"
#include "train/schedule/lists.h"
#include "train/schedule/vectors.h"

namespace tessera::train {
namespace {

using ::testing::HasSubstr;

class TimedVector : public ::testing::TestWithParam<testing::Vector> {};

// Starts and ends of every action under three cost sets.
TEST_P(TimedVector, EqualsTheReference) {
  const Document document = testing::read_vector(GetParam().file);
  const Cursor root = document.root();
  const ActionList list =
      make_schedule(GetParam().schedule, testing::sizes_of(root, GetParam().group)).value();
  const Cursor timing = root.find("timing").value();
  ASSERT_EQ(timing.size(), 3U);
  for (std::size_t c = 0; c < timing.size(); ++c) {
    const Cursor of = timing.item(c), cost = of.find("cost").value();
    const auto number = [](Cursor from, std::string_view key) {
      return from.find(key)->number(0, 1e9).value();
    };
    const double f = number(cost, "F"), i = number(cost, "I"), w = number(cost, "W");
    ScheduleCosts costs{.transfer = Seconds(number(cost, "comm"))};
    costs.stages.assign(list.stages(), {Seconds(f), Seconds(i), Seconds(w)});
    const auto times = time_schedule(list, costs, number(cost, "OVL") / (f + i + w));
    ASSERT_TRUE(times) << times.error().text();
    EXPECT_NEAR(times->makespan.value(), number(of, "makespan"), 1e-6) << timing.key(c);
    const Cursor ends = of.find("start_end").value();
    for (std::size_t r = 0; r < list.ranks.size(); ++r) {
      ASSERT_EQ(ends.item(r).size(), list.ranks[r].size());
      for (std::size_t k = 0; k < list.ranks[r].size(); ++k) {
        EXPECT_NEAR(times->ranks[r][k].start.value(), ends.item(r).item(k).item(0).number(0, 1e9).value(),
                    1e-6);
        EXPECT_NEAR(times->ranks[r][k].end.value(), ends.item(r).item(k).item(1).number(0, 1e9).value(),
                    1e-6);
      }
      EXPECT_NEAR((times->own_span[r] - times->busy[r]).value(),
                  of.find("idle_own_span")->item(r).number(-1e-9, 1e9).value(), 1e-6);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Vectors, TimedVector, ::testing::ValuesIn(testing::vectors()),
                         [](const auto& instance) { return instance.param.file; });

ActionList read(const std::string& file) {
  return without_communication(read_torch_csv(testing::test_file(file), file).value().list);
}

// Unit time: F = I = W = 1.
TEST(ScheduleTimes, OfTheFilesOfTheField) {
  EXPECT_EQ(time_schedule(read("torchtitan-custom-2rank-4stage-8mb.csv"))->makespan, Seconds(50));
  EXPECT_EQ(time_schedule(read("torchtitan-4rank-8stage-6mb.csv"))->makespan, Seconds(39));
  EXPECT_EQ(time_schedule(read("pytorch-zb1p-2rank-2stage-8mb.compute.csv"))->makespan, Seconds(49));
  const auto zb1p = time_schedule(read("pytorch-zb1p-2rank-2stage-8mb.compute.csv"));
  for (const Seconds busy : zb1p->busy) EXPECT_EQ(busy, Seconds(48));
}

// A pair of F = 1 and B = 2 that overlaps not at all takes 3, at best 2.
TEST(ScheduleTimes, OfARealDualPipeV) {
  const ActionList list = read("pytorch-dualpipev-4rank-10mb.csv");
  const ScheduleTimes serial = time_schedule(list).value();
  EXPECT_EQ(serial.makespan, Seconds(66));
  for (const Seconds busy : serial.busy) EXPECT_EQ(busy, Seconds(60));
  const ScheduleTimes perfect = time_schedule(list, {}, 2.0 / 3).value();
  EXPECT_NEAR(perfect.makespan.value(), 52, 1e-9);
  const double busy[] = {51, 50, 49, 49};
  for (std::size_t r = 0; r < 4; ++r) EXPECT_NEAR(perfect.busy[r].value(), busy[r], 1e-9);
}

TEST(ScheduleTimes, RefusesWhatDoesNotRun) {
  ActionList list = make_schedule(Template::one_f_one_b, {.pp = 2, .microbatches = 2}).value();
  EXPECT_THAT(time_schedule(list, {.stages = {{}, {}, {}}}).error().text(), HasSubstr("costs of 3 stages"));
  list.ranks[0].pop_back();
  EXPECT_FALSE(time_schedule(list));
}

TEST(CompareTemplates, OrdersByStepOverWork) {
  const auto rows = compare_templates({.pp = 4, .vp = 2, .microbatches = 12});
  ASSERT_EQ(rows.size(), kTemplates);
  const auto of = [&](Template schedule) {
    return *std::ranges::find(rows, schedule, &TemplateFigures::schedule);
  };
  const TemplateFigures interleaved = of(Template::interleaved);
  EXPECT_EQ(interleaved.makespan, Seconds(81));
  EXPECT_NEAR(interleaved.over_work, 81.0 / 72, 1e-12);
  EXPECT_NEAR(interleaved.bubble, 9.0 / 81, 1e-12);
  EXPECT_EQ(interleaved.peak_live, 11);
  const TemplateFigures plain = of(Template::one_f_one_b);
  EXPECT_EQ(plain.chunks, 1);
  EXPECT_EQ(plain.makespan, Seconds(45));
  EXPECT_NEAR(plain.bubble, 9.0 / 45, 1e-12);
  EXPECT_LT(plain.own_span_bubble, plain.bubble);
  EXPECT_LT(of(Template::zb_v).own_span_bubble, 0.03);
  EXPECT_TRUE(std::ranges::is_sorted(rows, [](const auto& a, const auto& b) {
    return a.legal && (!b.legal || a.over_work < b.over_work - 1e-12);
  }));
}

TEST(CompareTemplates, SaysWhyATemplateIsOut) {
  const auto rows = compare_templates({.pp = 3, .vp = 2, .microbatches = 4});
  for (const TemplateFigures& row : rows) {
    if (row.schedule == Template::dual_pipe) {
      EXPECT_FALSE(row.legal);
      EXPECT_FALSE(row.refusal.message.empty());
    }
    // 4 microbatches in groups of 3 leave one, so the nearest legal group is 4.
    if (row.schedule == Template::interleaved) {
      EXPECT_EQ(row.group, 4);
    }
  }
}

}  // namespace
}  // namespace tessera::train
