// Shadow microbatches: where they are needed, what they cost, and that nothing counts them.
#include "tessera/train/schedule/shadow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tessera/train/schedule/check_schedule.h"
#include "tessera/train/schedule/eager.h"
#include "train/random.h"

namespace tessera::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kForward = 1, kBackward = 2;

// One chunk: F = 1, B = 2, I = W = 1; a pair hides a fifth.
Seconds unit_time(const Action& action) {
  switch (action.kind) {
    case ActionKind::forward:
    case ActionKind::input_gradient:
    case ActionKind::weight_gradient:
      return Seconds(1);
    case ActionKind::full_backward:
      return Seconds(kBackward);
    case ActionKind::overlap:
      return Seconds(0.8 * (action.backward_kind == ActionKind::full_backward ? 3 : 2));
  }
  return {};
}

// By relaxation: every action at 0, pushed back until nothing moves. Knows nothing of a walking order.
double relaxed_makespan(const ActionList& list, double transfer) {
  const ActionIndex index = ActionIndex::build(list).value();
  std::vector<std::vector<double>> end;
  for (const auto& actions : list.ranks) end.emplace_back(actions.size(), 0.0);
  double last = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t r = 0; r < list.ranks.size(); ++r) {
      for (std::size_t i = 0; i < list.ranks[r].size(); ++i) {
        const Action& action = list.ranks[r][i];
        double start = i == 0 ? 0 : end[r][i - 1];
        const ActionInputs inputs = inputs_of(action, index, list);
        for (const ActionAt at : {inputs.forward, inputs.backward})
          if (at.rank >= 0)
            start =
                std::max(start, end[static_cast<std::size_t>(at.rank)][static_cast<std::size_t>(at.index)] +
                                    (static_cast<std::size_t>(at.rank) == r ? 0 : transfer));
        const auto real = list.real_part(action);
        const double done = start + (real ? unit_time(*real).value() : 0);
        changed = changed || done > end[r][i];
        end[r][i] = std::max(end[r][i], done);
        last = std::max(last, done);
      }
    }
  }
  return last;
}

TemplateSizes sizes_of(int p, int v, int m, int n = 0) {
  return {.pp = p, .vp = v, .microbatches = m, .group = n};
}

TEST(Shadow, PadsToTheNextNumberTheTemplateTakes) {
  const auto padded = [](Template t, int p, int v, int m, int n = 0) {
    return padded_microbatches(t, sizes_of(p, v, m, n));
  };
  EXPECT_EQ(padded(Template::interleaved, 4, 2, 10), 12);
  EXPECT_EQ(padded(Template::interleaved, 4, 2, 12), 12);
  EXPECT_EQ(padded(Template::interleaved, 4, 2, 13), 16);
  EXPECT_EQ(padded(Template::interleaved, 4, 2, 13, 8), 13);  // a last group of 5 is no smaller than 4
  EXPECT_EQ(padded(Template::interleaved, 4, 2, 9, 8), 12);
  EXPECT_EQ(padded(Template::interleaved_zb, 6, 2, 3), 6);
  EXPECT_EQ(padded(Template::interleaved_overlap, 4, 1, 9), 9);  // one chunk has no groups
  EXPECT_EQ(padded(Template::one_f_one_b, 4, 1, 9), 9);
  EXPECT_EQ(padded(Template::looped_bfs, 4, 2, 9), 9);
  EXPECT_EQ(padded(Template::dual_pipe, 4, 2, 9), 10);
  EXPECT_EQ(padded(Template::dual_pipe, 4, 2, 3), 8);
  EXPECT_EQ(padded(Template::dual_pipe_v, 4, 2, 9), 9);
  // What it says is the least that make_schedule takes.
  int checked = 0;
  for (const Template t : {Template::interleaved, Template::interleaved_overlap, Template::interleaved_zb,
                           Template::dual_pipe, Template::dual_pipe_v})
    for (int p = 2; p <= 6; p += 2)
      for (int m = 1; m <= 24; ++m)
        for (int n : {p, p + 1, p + 3}) {
          const TemplateSizes sizes = sizes_of(p, 2, m, traits(t).groups ? n : 0);
          const int to = padded_microbatches(t, sizes);
          for (int other = m; other <= to; ++other, ++checked) {
            TemplateSizes with = sizes;
            with.microbatches = other;
            ASSERT_EQ(make_schedule(t, with).has_value(), other == to)
                << name(t) << p << ' ' << m << ' ' << n;
          }
        }
  EXPECT_GT(checked, 1000);
}

TEST(Shadow, HasNamedPlaces) {
  EXPECT_THAT(shadow_places(ShadowPlacement::first, 12, 2), ElementsAre(0, 1));
  EXPECT_THAT(shadow_places(ShadowPlacement::last, 12, 2), ElementsAre(10, 11));
  EXPECT_THAT(shadow_places(ShadowPlacement::spread, 12, 2), ElementsAre(4, 8));
  EXPECT_THAT(shadow_places(ShadowPlacement::ends, 12, 3), ElementsAre(0, 1, 11));
  EXPECT_THAT(shadow_places(ShadowPlacement::spread, 12, 0), IsEmpty());
}

// PP 4, VP 2, N 4, F = 1, B = 2: makespans with the shadows last, at the best places, and with the best legal
// group instead. 6M + 9 bounds all.
TEST(Shadow, CostsWhatUnitTimesSay) {
  struct Row {
    int m, last, best, larger_group, peak_last, peak_group;
  };
  for (const Row& row :
       {Row{6, 49, 48, 45, 10, 12}, Row{7, 53, 52, 51, 11, 14}, Row{9, 69, 66, 63, 11, 12},
        Row{10, 73, 70, 69, 11, 12}, Row{11, 77, 75, 75, 11, 13}, Row{13, 93, 89, 87, 11, 14}}) {
    const TemplateSizes sizes = sizes_of(4, 2, row.m);
    const int padded = padded_microbatches(Template::interleaved, sizes);
    const auto last = make_padded_schedule(Template::interleaved, sizes, padded,
                                           shadow_places(ShadowPlacement::last, padded, padded - row.m));
    ASSERT_TRUE(last) << last.error().text();
    EXPECT_EQ(pipeline_makespan(*last, unit_time, Seconds(0))->value(), row.last) << row.m;
    EXPECT_EQ(relaxed_makespan(*last, 0), row.last);
    const ScheduleFacts facts = check_schedule(*last).value();
    EXPECT_EQ(facts.peak_live[0], row.peak_last) << row.m;
    EXPECT_EQ(facts.actions, 4 * 2 * 2 * row.m);
    EXPECT_EQ(last->real_microbatches(), row.m);

    const auto best = best_shadows(Template::interleaved, sizes, padded, unit_time, Seconds(0));
    ASSERT_TRUE(best) << best.error().text();
    EXPECT_EQ(best->makespan.value(), row.best) << row.m;
    EXPECT_TRUE(best->proved);

    const auto group =
        make_schedule(Template::interleaved, sizes_of(4, 2, row.m, legal_groups(4, row.m).front()));
    EXPECT_EQ(pipeline_makespan(*group, unit_time, Seconds(0))->value(), row.larger_group);
    EXPECT_EQ(check_schedule(*group)->peak_live[0], row.peak_group);
  }
}

// Over all 66 places of two shadows for M = 10 the makespan runs from 70 to 76.
TEST(Shadow, PlacesDifferByEightPercent) {
  double least = 1e9, most = 0;
  for (std::int32_t a = 0; a < 12; ++a)
    for (std::int32_t b = a + 1; b < 12; ++b) {
      const std::int32_t places[] = {a, b};
      const auto list = make_padded_schedule(Template::interleaved, sizes_of(4, 2, 10), 12, places);
      const double makespan = pipeline_makespan(*list, unit_time, Seconds(0))->value();
      ASSERT_EQ(makespan, relaxed_makespan(*list, 0));
      least = std::min(least, makespan);
      most = std::max(most, makespan);
    }
  EXPECT_EQ(least, 70);
  EXPECT_EQ(most, 76);
}

// The search against every choice, evaluated by relaxation; pairs, split backwards and two pipelines too.
TEST(Shadow, SearchFindsTheBestPlaces) {
  struct Case {
    Template schedule;
    int p, v, m, n;
  };
  for (const Case& c :
       {Case{Template::interleaved_overlap, 2, 2, 5, 0}, Case{Template::interleaved, 3, 2, 7, 0},
        Case{Template::interleaved_zb, 3, 2, 4, 0}, Case{Template::interleaved_zb, 2, 3, 7, 4},
        Case{Template::interleaved_overlap, 4, 2, 6, 4}, Case{Template::dual_pipe, 4, 2, 9, 0},
        Case{Template::dual_pipe_v, 3, 2, 4, 0}}) {
    const TemplateSizes sizes = sizes_of(c.p, c.v, c.m, c.n);
    const int padded = padded_microbatches(c.schedule, sizes), shadows = padded - c.m;
    const auto best = best_shadows(c.schedule, sizes, padded, unit_time, Seconds(0.25));
    ASSERT_TRUE(best) << best.error().text();
    EXPECT_TRUE(best->proved);
    std::vector<char> chosen(static_cast<std::size_t>(padded), 0);
    std::fill(chosen.end() - shadows, chosen.end(), 1);
    double least = 1e9;
    do {
      std::vector<std::int32_t> places;
      for (std::int32_t m = 0; m < padded; ++m)
        if (chosen[static_cast<std::size_t>(m)] != 0) places.push_back(m);
      least =
          std::min(least, relaxed_makespan(*make_padded_schedule(c.schedule, sizes, padded, places), 0.25));
    } while (std::ranges::next_permutation(chosen).found);
    EXPECT_NEAR(best->makespan.value(), least, 1e-9) << name(c.schedule) << c.p << c.m;
    const auto list = make_padded_schedule(c.schedule, sizes, padded, best->places);
    EXPECT_NEAR(relaxed_makespan(*list, 0.25), least, 1e-9);
  }
}

// Too many choices to try all: no worse than any named placement.
TEST(Shadow, SearchOfALongScheduleBeatsTheNamedPlaces) {
  const TemplateSizes sizes = sizes_of(16, 2, 57);
  const int padded = padded_microbatches(Template::interleaved, sizes);
  ASSERT_EQ(padded, 64);
  const auto best = best_shadows(Template::interleaved, sizes, padded, unit_time, Seconds(0));
  ASSERT_TRUE(best);
  EXPECT_FALSE(best->proved);
  for (std::size_t p = 0; p < kShadowPlacements; ++p) {
    const auto list = make_padded_schedule(Template::interleaved, sizes, padded,
                                           shadow_places(static_cast<ShadowPlacement>(p), padded, 7));
    EXPECT_LT(best->makespan, *pipeline_makespan(*list, unit_time, Seconds(0)));
  }
  const double bound = 57 * 2 * (kForward + kBackward) + 15 * (kForward + kBackward);
  EXPECT_GE(best->makespan.value(), bound);
}

TEST(Shadow, RandomPaddingsAreSound) {
  testing::Random random(3);
  for (int round = 0; round < 300; ++round) {
    const Template t = std::array{Template::interleaved,    Template::interleaved_overlap,
                                  Template::interleaved_zb, Template::dual_pipe,
                                  Template::one_f_one_b,    Template::zb_h1}[static_cast<std::size_t>(
        random.between(0, 5))];
    const int p = t == Template::dual_pipe ? 2 * random.between(1, 3) : random.between(2, 6);
    const int v = traits(t).chunks != 0 ? traits(t).chunks : random.between(2, 4);
    const TemplateSizes sizes = sizes_of(p, v, random.between(1, 20));
    TemplateSizes padded = sizes;
    padded.microbatches += random.between(0, 4);  // any legal number above will do, not only the least
    padded.microbatches = padded_microbatches(t, padded);
    std::vector<std::int32_t> all(static_cast<std::size_t>(padded.microbatches));
    std::iota(all.begin(), all.end(), 0);
    for (std::size_t i = all.size() - 1; i > 0; --i)
      std::swap(all[i], all[static_cast<std::size_t>(random.below(static_cast<int>(i) + 1))]);
    all.resize(static_cast<std::size_t>(padded.microbatches - sizes.microbatches));
    const auto list = make_padded_schedule(t, sizes, padded.microbatches, all);
    ASSERT_TRUE(list) << list.error().text();
    const auto facts = check_schedule(*list);
    ASSERT_TRUE(facts) << facts.error().text();
    const int passes = traits(t).split ? 3 : 2;
    EXPECT_LE(facts->actions,
              std::int64_t{passes} * p * v * sizes.microbatches / (t == Template::dual_pipe ? 2 : 1));
    EXPECT_EQ(list->real_microbatches(), sizes.microbatches);
    ASSERT_NEAR(pipeline_makespan(*list, unit_time, Seconds(0.1))->value(), relaxed_makespan(*list, 0.1),
                1e-9);
  }
}

TEST(Shadow, PairsKeepTheirRealHalf) {
  ActionList list{.microbatches = 2, .rank_of_stage = {RankId(0)}, .ranks = {{}}, .shadow = {false, true}};
  const Action f0 = forward(StageId(0), MicrobatchId(0)), f1 = forward(StageId(0), MicrobatchId(1));
  const Action b0 = backward(StageId(0), MicrobatchId(0)), b1 = input_gradient(StageId(0), MicrobatchId(1));
  EXPECT_EQ(list.real_part(f0), f0);
  EXPECT_EQ(list.real_part(f1), std::nullopt);
  EXPECT_EQ(list.real_part(overlap(f1, b0)), b0);
  EXPECT_EQ(list.real_part(overlap(f0, b1)), f0);
  EXPECT_EQ(list.real_part(overlap(f1, b1)), std::nullopt);
  list.shadow.clear();
  EXPECT_EQ(list.real_part(overlap(f1, b1)), overlap(f1, b1));
}

TEST(Shadow, RefusesPlacesThatAreNone) {
  const auto fault = [](int padded, std::vector<std::int32_t> places) {
    const auto list = make_padded_schedule(Template::interleaved, sizes_of(4, 2, 10), padded, places);
    return list ? std::string("no error") : list.error().text();
  };
  EXPECT_THAT(fault(12, {3}), HasSubstr("1 shadows bring 10 microbatches to 11, not to 12"));
  EXPECT_THAT(fault(12, {3, 12}), HasSubstr("a shadow at 12; expected 0 … 11"));
  EXPECT_THAT(fault(12, {3, 3}), HasSubstr("two shadows at 3"));
  EXPECT_THAT(fault(13, {0, 1, 2}), HasSubstr("13 microbatches in groups of 4 leave a last group of 1"));
  ActionList list = *make_padded_schedule(Template::interleaved, sizes_of(4, 2, 10), 12, std::array{0, 1});
  list.shadow.pop_back();
  EXPECT_THAT(check_schedule(list).error().text(), HasSubstr("11 are told to be shadows or not"));
}

}  // namespace
}  // namespace tessera::train
