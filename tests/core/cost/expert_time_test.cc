#include "tessera/core/cost/expert_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "tessera/core/base/text.h"

namespace tessera {
namespace {

using testing::HasSubstr;

Seconds us(double value) {
  return Seconds(value * 1e-6);
}

ExpertTimeModel example() {
  ExpertTimeModel model;
  model.a = us(20);
  model.b = us(11.5);
  model.c = us(25.5);
  model.beta = us(0.064);
  return model;
}

TEST(ExpertTime, IsTheLargerOfWeightsAndCompute) {
  const ExpertTimeModel model = example();
  EXPECT_NEAR(microseconds(model.evaluate({.slots = 6, .active = 6, .tokens = 72})), 89.0, 1e-9);
  EXPECT_NEAR(microseconds(model.evaluate({.slots = 4, .active = 4, .tokens = 16})), 66.0, 1e-9);
  EXPECT_NEAR(microseconds(model.evaluate({.slots = 4, .active = 2, .tokens = 8})), 43.0, 1e-9);
  EXPECT_NEAR(microseconds(model.evaluate({.slots = 4, .active = 2, .tokens = 608})), 64.412, 1e-9);
  EXPECT_NEAR(microseconds(model.evaluate({.slots = 4, .active = 4, .tokens = 2400})), 179.1, 1e-9);
  EXPECT_NEAR(microseconds(model.evaluate({.slots = 4, .active = 3, .tokens = 565})), 61.66, 1e-9);
}

TEST(ExpertTime, ChargesIdleSlotsAndFurtherTiles) {
  ExpertTimeModel model = example();
  model.d = us(0.7);
  model.b2 = us(3);
  const ExpertLoad load{.slots = 32, .active = 8, .tokens = 40, .tiles = 10};
  EXPECT_NEAR(microseconds(model.evaluate(load)), 20 + 92 + 24 * 0.7, 1e-9) << "no tile term without a tile";
  model.tile = 128;
  EXPECT_NEAR(microseconds(model.evaluate(load)), 20 + 92 + 24 * 0.7 + 2 * 3, 1e-9);
  // One expert whole, or halved over two slots: a full tile becomes two, 200 and 130 tokens fill two either
  // way.
  model.beta = Seconds(0);
  const auto time = [&](double tokens, std::int64_t parts) {
    const auto count = static_cast<double>(parts);
    return model.evaluate(
        {.slots = 2, .active = parts, .tokens = tokens, .tiles = count * std::ceil(tokens / count / 128)});
  };
  const Seconds activation = model.b - model.d;
  EXPECT_NEAR(microseconds(time(128, 2) - time(128, 1)), microseconds(activation), 1e-9);
  EXPECT_NEAR(microseconds(time(200, 2) - time(200, 1)), microseconds(activation - model.b2), 1e-9);
  EXPECT_NEAR(microseconds(time(130, 2) - time(130, 1)), microseconds(activation - model.b2), 1e-9);
}

TEST(ExpertTime, AnIdleGpuTakesItsMeasuredTimeOrTheSlotsTerm) {
  ExpertTimeModel model = example();
  model.d = us(0.5);
  EXPECT_NEAR(microseconds(model.evaluate({.slots = 8})), 24, 1e-9);
  model.idle = us(3);
  EXPECT_NEAR(microseconds(model.evaluate({.slots = 8})), 3, 1e-9);
  EXPECT_NEAR(microseconds(model.evaluate({.slots = 8, .active = 1, .tokens = 1})), 20 + 11.5 + 3.5, 1e-9);
}

TEST(ExpertTime, KneesAndImpliedRates) {
  ExpertTimeModel model = example();
  model.d = us(0.7);
  EXPECT_NEAR(model.knee(), 179.6875, 1e-9);
  EXPECT_NEAR(model.activation_knee(), 168.75, 1e-9);
  EXPECT_NEAR(model.implied_bandwidth(Bytes(44.04e6)).value(), 3.8296e12, 1e8);
  EXPECT_NEAR(model.implied_rate(Flops(2 * 44.04e6)).value(), 1.37625e15, 1e10);
  model.beta = Seconds(0);
  EXPECT_TRUE(std::isinf(model.knee()));
  EXPECT_TRUE(std::isinf(model.activation_knee()));
  EXPECT_TRUE(std::isinf(model.implied_rate(Flops(1)).value()));
}

// A grid with partial activation and unequal slots, on which every coefficient shows.
std::vector<ExpertSample> grid(const ExpertTimeModel& model) {
  std::vector<ExpertSample> out;
  for (const std::int64_t slots : {8, 16, 32})
    for (const std::int64_t active : {1, 2, 4, 8, 16, 32})
      for (const double each : {1.0, 16.0, 64.0, 128.0, 192.0, 256.0, 512.0, 1024.0}) {
        if (active > slots) continue;
        const ExpertLoad load{.slots = slots,
                              .active = active,
                              .tokens = each * static_cast<double>(active),
                              .tiles = std::ceil(each / 64) * static_cast<double>(active)};
        out.push_back({load, model.evaluate(load)});
      }
  return out;
}

ExpertTimeModel known() {
  ExpertTimeModel model = example();
  model.d = us(0.8);
  model.b2 = us(1.5);
  model.tile = 64;
  return model;
}

TEST(ExpertTimeFit, RecoversExactSamples) {
  const auto fit = fit_expert_time(grid(known()), {.tile = 64});
  ASSERT_TRUE(fit.has_value()) << fit.error().text();
  EXPECT_NEAR(microseconds(fit->model.a), 20, 1e-3);
  EXPECT_NEAR(microseconds(fit->model.b), 11.5, 1e-3);
  EXPECT_NEAR(microseconds(fit->model.d), 0.8, 1e-3);
  EXPECT_NEAR(microseconds(fit->model.b2), 1.5, 1e-3);
  EXPECT_NEAR(microseconds(fit->model.c), 25.5, 1e-2);
  EXPECT_NEAR(microseconds(fit->model.beta), 0.064, 1e-5);
  EXPECT_LT(fit->worst_residual, 1e-4);
  EXPECT_TRUE(fit->converged);
  EXPECT_EQ(fit->residuals.size(), grid(known()).size());
}

TEST(ExpertTimeFit, WithstandsNoiseAndOutliers) {
  std::vector<ExpertSample> samples = grid(known());
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(1, 0.02);
  for (ExpertSample& sample : samples) sample.time *= noise(random);
  for (std::size_t i = 5; i < samples.size(); i += 13) samples[i].time *= 1.8;  // one in thirteen far off
  const auto fit = fit_expert_time(samples, {.tile = 64});
  ASSERT_TRUE(fit.has_value());
  EXPECT_NEAR(microseconds(fit->model.b), 11.5, 0.35);
  EXPECT_NEAR(microseconds(fit->model.d), 0.8, 0.2);
  EXPECT_NEAR(microseconds(fit->model.beta), 0.064, 0.002);
  EXPECT_NEAR(fit->model.knee(), 179.7, 9);
}

TEST(ExpertTimeFit, KeepsItsConditionsOnAnyTimes) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> any(1e-6, 1e-3);
  for (int round = 0; round < 50; ++round) {
    std::vector<ExpertSample> samples = grid(known());
    for (ExpertSample& sample : samples) sample.time = Seconds(any(random));
    const auto fit = fit_expert_time(samples, {.tile = 64});
    ASSERT_TRUE(fit.has_value());
    const ExpertTimeModel& m = fit->model;
    EXPECT_GE(m.b, m.d);
    EXPECT_GE(m.d, Seconds(0));
    EXPECT_GE(m.b2, Seconds(0));
    EXPECT_GE(m.beta, Seconds(0));
    for (const Seconds value : {m.a, m.b, m.c, m.beta}) EXPECT_TRUE(std::isfinite(value.value()));
  }
}

TEST(ExpertTimeFit, PinsIdleSlotsWhenToldAndMeasuresTheIdleGpu) {
  std::vector<ExpertSample> samples = grid(known());
  for (const double idle : {4.0, 5.0, 90.0}) samples.push_back({{.slots = 8}, us(idle)});
  const auto fit = fit_expert_time(samples, {.tile = 64, .idle_slots = false});
  ASSERT_TRUE(fit.has_value());
  EXPECT_EQ(fit->model.d.value(), 0);
  ASSERT_TRUE(fit->model.idle.has_value());
  EXPECT_NEAR(microseconds(*fit->model.idle), 5, 1e-9);
  EXPECT_GT(fit->mean_residual, 0.005) << "the published model cannot follow partial activation";
}

TEST(ExpertTimeFit, LeavesOutWhatTheSamplesCannotTell) {
  ExpertTimeModel model = example();
  std::vector<ExpertSample> samples;
  for (const std::int64_t active : {1, 2, 4, 8}) {
    const ExpertLoad load{.slots = active, .active = active, .tokens = static_cast<double>(active)};
    samples.push_back({load, model.evaluate(load)});
  }
  const auto fit = fit_expert_time(samples, {});
  ASSERT_TRUE(fit.has_value());
  EXPECT_EQ(fit->model.d.value(), 0) << "no sample has an idle slot";
  EXPECT_LT(fit->worst_residual, 1e-6);
}

TEST(ExpertTimeFit, RefusesBadSamples) {
  const std::vector<ExpertSample> good = grid(known());
  const auto message = [&](const ExpertSample& bad, const ExpertFitOptions& options) {
    std::vector<ExpertSample> samples = good;
    samples[2] = bad;
    const auto fit = fit_expert_time(samples, options);
    return fit ? std::string("accepted") : fit.error().text();
  };
  EXPECT_THAT(message({{.slots = 2, .active = 3, .tokens = 9}, us(1)}, {}),
              HasSubstr("sample 2: 3 active of 2 expert slots"));
  EXPECT_THAT(message({{.slots = 4, .active = 3, .tokens = 2}, us(1)}, {}),
              HasSubstr("sample 2: 2 tokens for 3 active experts"));
  EXPECT_THAT(message({{.slots = 4, .active = 0, .tokens = 2}, us(1)}, {}), HasSubstr("no active expert"));
  EXPECT_THAT(message({{.slots = 4, .active = 3, .tokens = 5, .tiles = 2}, us(1)}, {.tile = 128}),
              HasSubstr("2 tiles for 3 active experts"));
  EXPECT_THAT(message({{.slots = 4, .active = 3, .tokens = 5}, us(0)}, {}),
              HasSubstr("expected a positive one"));
  EXPECT_THAT(message({{.slots = 4, .active = 3, .tokens = 5}, Seconds(NAN)}, {}),
              HasSubstr("sample 2: a time of"));
  EXPECT_THAT(fit_expert_time(std::span(good).first(3), {}).error().text(),
              HasSubstr("3 samples with tokens, at least 4 are needed"));
}

struct CsvRow {
  std::vector<std::string> cells;
  [[nodiscard]] double number(std::size_t i) const { return to_number(cells.at(i)).value(); }
};
std::vector<CsvRow> read_csv(const std::string& name) {
  const auto text = read_file(std::string(TESSERA_TEST_DATA) + "/expert_time/" + name);
  EXPECT_TRUE(text.has_value());
  std::vector<CsvRow> out;
  for (const std::string_view line : split(*text, '\n')) {
    const auto cells = split(line, ',');
    if (cells.size() > 1) out.push_back({{cells.begin(), cells.end()}});
  }
  out.erase(out.begin());
  return out;
}

// DeepSeek-V3 experts on four GPUs. The coefficients to compare with were fitted to the same rows over parts
// of the range: a, b, d up to 32 tokens per expert, c and β from 256 tokens on one or two experts.
TEST(ExpertTimeFit, MatchesFitsOfPublicMeasurements) {
  struct Published {
    double b, d, beta_ns, mean_residual;
  };
  const std::map<std::string, Published> published{{"h100_sxm", {16.11, 0.53, 58.7, 0.030}},
                                                   {"h200_sxm", {11.49, 0.73, 60.1, 0.035}},
                                                   {"b200_sxm", {7.89, 0.75, 44.6, 0.050}},
                                                   {"gb200", {7.47, 0.55, 31.2, 0.055}}};
  std::map<std::string, std::vector<ExpertSample>> samples;
  for (const CsvRow& row : read_csv("sglang_deepep_decode_uniform.csv")) {
    const double ranks = row.number(1), copies = row.number(2) * 8 / ranks;
    const double slots = 256 / ranks;
    const double active = std::min(slots, copies);
    samples[row.cells[0]].push_back({{.slots = static_cast<std::int64_t>(slots),
                                      .active = static_cast<std::int64_t>(active),
                                      .tokens = copies},
                                     us(row.number(3))});
  }
  ASSERT_EQ(samples.size(), published.size());
  for (const auto& [device, expected] : published) {
    const auto fit = fit_expert_time(samples[device], {});
    ASSERT_TRUE(fit.has_value()) << device << ": " << fit.error().text();
    EXPECT_NEAR(microseconds(fit->model.b), expected.b, 0.05 * expected.b) << device;
    EXPECT_NEAR(microseconds(fit->model.d), expected.d, 0.35 * expected.d) << device;
    EXPECT_NEAR(microseconds(fit->model.beta) * 1e3, expected.beta_ns, 0.25 * expected.beta_ns) << device;
    EXPECT_LT(fit->mean_residual, expected.mean_residual) << device;
    const auto without = fit_expert_time(samples[device], {.idle_slots = false});
    EXPECT_GT(without->mean_residual, 1.2 * fit->mean_residual) << device << ": the idle slots' term matters";
  }
}

// A GPU whose flat part is tile work, not weight reading: against padded rows one line explains every point,
// against raw rows none does, and the implied bandwidth is half of the memory's.
TEST(ExpertTimeFit, TellsTileWorkFromWeightReading) {
  std::vector<ExpertSample> padded, raw, few;
  for (const CsvRow& row : read_csv("deepgemm_h20_masked.csv")) {
    const auto groups = static_cast<std::int64_t>(row.number(0));
    const double rows = row.number(1), tile = rows <= 64 ? 64 : 128;
    const double count = static_cast<double>(groups);
    raw.push_back({{.slots = groups, .active = groups, .tokens = count * rows}, us(row.number(2))});
    padded.push_back({{.slots = groups, .active = groups, .tokens = count * std::ceil(rows / tile) * tile},
                      us(row.number(2))});
    if (rows <= 64) few.push_back(raw.back());
  }
  const auto line = fit_expert_time(padded, {});
  ASSERT_TRUE(line.has_value());
  EXPECT_LT(line->worst_residual, 0.055) << "5 % to the digit";
  const ExpertTimeModel& m = line->model;
  for (const ExpertSample& sample : padded)
    EXPECT_NEAR(microseconds(m.evaluate(sample.load)), 5.5 + 0.235 * sample.load.tokens,
                0.06 * (5.5 + 0.235 * sample.load.tokens));

  const auto flat = fit_expert_time(few, {});
  ASSERT_TRUE(flat.has_value());
  EXPECT_NEAR(microseconds(flat->model.b), 15.2, 0.4);
  EXPECT_NEAR(flat->model.implied_bandwidth(Bytes(4096.0 * 7168)).value(), 1.93e12, 0.06e12);
  EXPECT_GT(fit_expert_time(raw, {})->worst_residual, 0.10);
}

// The fullest rank when every token draws its experts without replacement.
double simulate(int tokens, int top_k, int experts, int ranks, int trials) {
  std::mt19937_64 random(20240607);
  std::vector<int> expert(static_cast<std::size_t>(experts)), count(static_cast<std::size_t>(ranks));
  std::iota(expert.begin(), expert.end(), 0);
  double sum = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::ranges::fill(count, 0);
    for (int token = 0; token < tokens; ++token)
      for (int j = 0; j < top_k; ++j) {
        const int other = j + static_cast<int>(random() % static_cast<unsigned>(experts - j));
        std::swap(expert[static_cast<std::size_t>(j)], expert[static_cast<std::size_t>(other)]);
        ++count[static_cast<std::size_t>(expert[static_cast<std::size_t>(j)] * ranks / experts)];
      }
    sum += *std::ranges::max_element(count);
  }
  return sum / trials;
}

TEST(BalancedRouting, ExpectedMaximumAgreesWithSimulation) {
  struct Case {
    int tokens, top_k, experts, ranks;
  };
  for (const Case c :
       {Case{1, 8, 256, 8}, Case{4, 8, 256, 8}, Case{24, 8, 256, 64}, Case{25, 8, 256, 64},
        Case{64, 8, 256, 8}, Case{100, 8, 256, 256}, Case{512, 8, 128, 8}, Case{300, 1, 8, 8},
        Case{40, 6, 8, 4}, Case{25, 8, 16, 16}, Case{2000, 4, 128, 16}, Case{4096, 8, 256, 32}}) {
    const int trials = std::clamp(4'000'000 / (c.tokens * c.top_k), 200, 40'000);
    const double truth = simulate(c.tokens, c.top_k, c.experts, c.ranks, trials);
    EXPECT_NEAR(expected_max_rank_tokens(c.tokens, c.top_k, c.experts, c.ranks) / truth, 1, 0.01)
        << c.tokens << " tokens, " << c.top_k << " of " << c.experts << " on " << c.ranks;
  }
}

TEST(BalancedRouting, KnowsItsLimits) {
  EXPECT_EQ(expected_max_rank_tokens(0, 8, 256, 8), 0);
  EXPECT_EQ(expected_max_rank_tokens(100, 8, 256, 1), 800);
  EXPECT_EQ(expected_max_rank_tokens(100, 8, 8, 4), 200) << "every token visits every expert";
  EXPECT_NEAR(expected_max_rank_tokens(1, 1, 64, 8), 1, 1e-9);
  // Two copies on two ranks, one expert each of 4: both on one rank in a third of the cases.
  EXPECT_NEAR(expected_max_rank_tokens(1, 2, 4, 2), 1 + 1.0 / 3, 1e-9);
  // Continuous where the method changes, and above the mean throughout.
  double previous = 0;
  for (double tokens = 1; tokens < 3e6; tokens *= 1.13) {
    const double maximum = expected_max_rank_tokens(tokens, 8, 256, 32);
    EXPECT_GT(maximum, tokens * 8 / 32);
    EXPECT_GT(maximum, previous);
    previous = maximum;
  }
  EXPECT_NEAR(expected_max_rank_tokens(24, 8, 256, 32) / expected_max_rank_tokens(24.01, 8, 256, 32), 1,
              2e-3);
}

TEST(BalancedRouting, DistinctGroups) {
  EXPECT_NEAR(expected_distinct(8, 8), 8 * (1 - std::pow(7.0 / 8, 8)), 1e-12);
  EXPECT_NEAR(expected_distinct(8, 8), 5.25, 0.01);
  EXPECT_EQ(expected_distinct(1, 8), 1);
  EXPECT_EQ(expected_distinct(1, 0), 0);
  EXPECT_NEAR(expected_distinct(1e9, 8), 8, 1e-6);
}

}  // namespace
}  // namespace tessera
