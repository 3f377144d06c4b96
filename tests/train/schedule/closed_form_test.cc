// The formulas that schedule_template.h gives, at many sizes and durations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/train/schedule/check_schedule.h"
#include "train/random.h"
#include "train/schedule/order_times.h"

namespace tessera::train {
namespace {

using testing::ChunkTimes;
using testing::costs_of;
using testing::order_times;
using testing::OrderTimes;
using testing::Random;

struct Made {
  ActionList list;
  ScheduleFacts facts;
  OrderTimes times;
};

Made make(Template schedule, const TemplateSizes& sizes, const ChunkTimes& t) {
  auto list = make_schedule(schedule, sizes, costs_of(t, sizes.pp * sizes.vp));
  EXPECT_TRUE(list) << list.error().text();
  auto facts = check_schedule(*list);
  EXPECT_TRUE(facts) << facts.error().text();
  OrderTimes times = order_times(*list, t);
  return {*std::move(list), *std::move(facts), std::move(times)};
}

ChunkTimes draw(Random& random) {
  ChunkTimes t{
      .f = random.between(1, 9) * 1.0, .i = random.between(1, 9) * 1.0, .w = random.between(1, 9) * 1.0};
  // A pair is no shorter than either half, and no longer than both.
  t.pair = random.between(static_cast<int>(std::max(t.f, t.b())), static_cast<int>(t.f + t.b())) * 1.0;
  return t;
}

TEST(TemplateForms, OneChunk) {
  Random random(1);
  for (int p = 1; p <= 9; ++p)
    for (int m = 1; m <= 24; ++m) {
      const ChunkTimes t = draw(random);
      const double step = t.f + t.b();
      const Made gpipe = make(Template::gpipe, {.pp = p, .microbatches = m}, t);
      EXPECT_EQ(gpipe.times.makespan, (m + p - 1) * step);
      const Made plain = make(Template::one_f_one_b, {.pp = p, .microbatches = m}, t);
      EXPECT_EQ(plain.times.makespan, (m + p - 1) * step);
      const Made pairs = make(Template::one_f_one_b_overlap, {.pp = p, .microbatches = m}, t);
      if (m >= 2 * p) {
        EXPECT_EQ(pairs.times.makespan, p * step + (m - 1) * t.pair) << p << ' ' << m;
      }
      for (int r = 0; r < p; ++r) {
        const auto rank = static_cast<std::size_t>(r);
        EXPECT_EQ(gpipe.facts.peak_live[rank], m);
        EXPECT_EQ(plain.facts.peak_live[rank], std::min(m, p - r));
        EXPECT_EQ(pairs.facts.peak_live[rank], std::min(m, 2 * (p - r)));
      }
    }
}

TEST(TemplateForms, Interleaved) {
  Random random(2);
  for (int p = 1; p <= 6; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int m = p; m <= 5 * p; m += p) {
        const ChunkTimes t = draw(random);
        const double step = t.f + t.b();
        const TemplateSizes sizes{.pp = p, .vp = v, .microbatches = m};
        EXPECT_EQ(make(Template::interleaved, sizes, t).times.makespan, (m * v + p - 1) * step);
        const Made bfs = make(Template::looped_bfs, sizes, t);
        EXPECT_EQ(bfs.times.makespan, (m * v + p - 1) * step);
        const int n = p * (v - 1) + 1;
        if (m > p) {
          EXPECT_EQ(make(Template::interleaved_overlap, sizes, t).times.makespan,
                    (p - 1 + n) * step + (m * v - n) * t.pair)
              << p << ' ' << v << ' ' << m;
        }
        const Made zero = make(Template::interleaved_zb, sizes, {});
        EXPECT_EQ(zero.times.least_idle(), p - 1) << p << ' ' << v << ' ' << m;
        for (int r = 0; r < p; ++r) {
          EXPECT_EQ(bfs.facts.peak_live[static_cast<std::size_t>(r)], m * v);
          EXPECT_EQ(zero.facts.peak_until_weight[static_cast<std::size_t>(r)],
                    std::min(m * v, (v - 1) * p + p));
        }
      }
}

TEST(TemplateForms, ZeroBubble) {
  Random random(3);
  for (int p = 1; p <= 8; ++p)
    for (const int m : {2 * p, 2 * p + 1, 3 * p + 2, 40}) {
      ChunkTimes t = draw(random);
      t.w = std::min({t.w, t.f, t.i});
      const Made one = make(Template::zb_h1, {.pp = p, .microbatches = m}, t);
      EXPECT_EQ(one.times.least_idle(), (p - 1) * (t.f + t.i - t.w)) << p << ' ' << m;
      const Made two = make(Template::zb_h2, {.pp = p, .microbatches = m}, t);
      EXPECT_EQ(two.times.least_idle(), (p - 1) * std::max(t.f, t.f + t.i - 2 * t.w)) << p << ' ' << m;
      EXPECT_LE(*std::ranges::max_element(one.facts.peak_until_weight), p);
      EXPECT_LE(*std::ranges::max_element(two.facts.peak_until_weight), 2 * p - 1);
      for (const Template v : {Template::zb_v, Template::zb_v_torch}) {
        const Made made = make(v, {.pp = p, .vp = 2, .microbatches = m}, {});
        EXPECT_EQ(made.times.least_idle(), p - 1) << name(v) << ' ' << p << ' ' << m;
        EXPECT_EQ(*std::ranges::max_element(made.facts.peak_until_weight), 2 * p);
      }
    }
}

TEST(TemplateForms, DualPipe) {
  Random random(4);
  for (int p = 1; p <= 8; ++p)
    for (const int m : {2 * p, 2 * p + 2, 4 * p, 6 * p + 2}) {
      ChunkTimes t = draw(random);
      t.i = t.f;
      t.w = std::min(t.w, t.f);
      t.pair = std::clamp(t.pair, std::max(t.f, t.b()), t.f + t.b());
      const double idle = t.pair + t.b() - 3 * t.w;
      const Made folded = make(Template::dual_pipe_v, {.pp = p, .vp = 2, .microbatches = m}, t);
      EXPECT_EQ(folded.times.idle.back(), (p - 1) * idle) << p << ' ' << m;
      for (const int peak : folded.facts.peak_live) EXPECT_EQ(peak, 2 * p + 1);
      if (p % 2 != 0) continue;
      const Made dual = make(Template::dual_pipe, {.pp = p, .vp = 2, .microbatches = m}, t);
      EXPECT_EQ(dual.times.idle[static_cast<std::size_t>(p / 2)], (p / 2 - 1) * idle) << p << ' ' << m;
      for (const int peak : dual.facts.peak_live) EXPECT_EQ(peak, p + 1);
    }
}

}  // namespace
}  // namespace tessera::train
