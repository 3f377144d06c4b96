// What a table row says of many solved pairs.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "../report.h"
#include "measure.h"

namespace tessera::bench {

struct Summary {
  std::vector<double> seconds;  ///< per pair
  std::size_t proved = 0;
  std::size_t hard = 0;
  double gap_sum = 0, gap_worst = 0;

  void add(double time, bool is_proved, bool is_hard, double gap) {
    seconds.push_back(time);
    proved += is_proved;
    hard += is_hard;
    gap_sum += gap;
    gap_worst = std::max(gap_worst, gap);
  }
  [[nodiscard]] std::size_t pairs() const { return seconds.size(); }
  [[nodiscard]] double proved_share() const { return share(static_cast<double>(proved)); }
  [[nodiscard]] double hard_share() const { return share(static_cast<double>(hard)); }
  [[nodiscard]] double mean_gap() const { return share(gap_sum); }
  [[nodiscard]] double quantile_ms(double q) const { return 1e3 * quantile(seconds, q); }

  /// A row under header(), the name first.
  [[nodiscard]] std::vector<std::string> cells(std::string name) const {
    return {std::move(name),
            fmt::format("{}", pairs()),
            fmt::format("{:.2f} %", 100 * proved_share()),
            fmt::format("{:.1f} %", 100 * hard_share()),
            fmt::format("{:.3f}", quantile_ms(0.5)),
            fmt::format("{:.3f}", quantile_ms(0.99)),
            fmt::format("{:.3f}", quantile_ms(1)),
            fmt::format("{:.2e}", mean_gap()),
            fmt::format("{:.2e}", gap_worst)};
  }
  [[nodiscard]] static std::vector<std::string> header(std::string name) {
    return {std::move(name), "pairs",  "proved",        "hard", "p50 ms",
            "p99 ms",        "max ms", "mean gap left", "worst"};
  }

 private:
  [[nodiscard]] double share(double sum) const {
    return pairs() == 0 ? 0 : sum / static_cast<double>(pairs());
  }
};

/// How far the list rules are from the optimum, over many pairs.
struct RuleGaps {
  std::array<double, kRules.size()> sum{}, worst{};
  std::size_t pairs = 0;
  void add(const std::array<double, kRules.size()>& gap) {
    for (std::size_t r = 0; r < gap.size(); ++r) {
      sum[r] += gap[r];
      worst[r] = std::max(worst[r], gap[r]);
    }
    ++pairs;
  }
  [[nodiscard]] double mean(train::PairMethod rule) const {
    const auto r = static_cast<std::size_t>(std::ranges::find(kRules, rule) - kRules.begin());
    return pairs == 0 ? 0 : sum[r] / static_cast<double>(pairs);
  }
};

}  // namespace tessera::bench
