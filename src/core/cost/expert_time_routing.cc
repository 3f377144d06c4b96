// Balanced routing: what random choice alone does to the fullest rank.
//
// A token chooses k of E experts, so a rank with E/R of them gets a hypergeometric share; over t tokens its
// count has mean t·k/R and variance t·k·p(1−p)·f with p = 1/R, f = (E−k)/(E−1). The counts of the R ranks add
// up to t·k. Both facts are those of independent binomial counts of mean t·k/R and success probability 1−f,
// given their sum (k = 1: of Poisson counts). For one token this is exact, for more it matches the first two
// moments.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "tessera/core/cost/expert_time.h"

namespace tessera {

namespace {

// A binomial of real size; size = infinity is the Poisson. Only ratios of probabilities are needed.
struct Count {
  double size;  ///< mean/(1−f), infinite for k = 1
  double mean;
  /// P(x+1)/P(x).
  [[nodiscard]] double ratio(double x) const noexcept {
    if (!std::isfinite(size)) return mean / (x + 1);
    const double success = mean / size;
    return std::max(0.0, size - x) / (x + 1) * success / (1 - success);
  }
};

// --- Few tokens: the sum is given, by convolution.

constexpr std::size_t kFew = 192;  // token copies
using Polynomial = std::array<double, kFew + 1>;

// a·b up to degree n.
Polynomial product(const Polynomial& a, const Polynomial& b, std::size_t n) noexcept {
  Polynomial out{};
  for (std::size_t i = 0; i <= n; ++i)
    if (a[i] > 0)
      for (std::size_t j = 0; i + j <= n; ++j) out[i + j] += a[i] * b[j];
  return out;
}

// The probability weight of `ranks` counts, none above `most`, adding up to n.
double weight_of_sum(const Polynomial& count, std::size_t most, std::size_t n, std::int64_t ranks) noexcept {
  Polynomial base{}, power{};
  std::copy_n(count.begin(), std::min(most, n) + 1, base.begin());
  power[0] = 1;
  for (auto left = ranks; left > 0; left /= 2) {
    if (left % 2 == 1) power = product(power, base, n);
    if (left > 1) base = product(base, base, n);
  }
  return power[n];
}

double maximum_given_sum(std::size_t n, const Count& shape, std::int64_t ranks) noexcept {
  Polynomial count{};
  count[0] = 1;
  double total = 1;
  for (std::size_t x = 0; x < n; ++x) total += count[x + 1] = count[x] * shape.ratio(static_cast<double>(x));
  for (double& probability : count) probability /= total;
  const double all = weight_of_sum(count, n, n, ranks);
  double expected = 0;  // Σ P(max > x)
  for (std::size_t x = 0; x < n; ++x) {
    const double above = 1 - weight_of_sum(count, x, n, ranks) / all;
    if (above < 1e-7) break;
    expected += above;
  }
  return expected;
}

// --- Many tokens: the sum is left free. Independent counts of variance mean·f spread R/(R−1) times as far as
// the true ones, but the surplus moves all ranks alike and so leaves the expected maximum where it is.

double maximum_of_independent(const Count& shape, double spread, double ranks) noexcept {
  constexpr double kReach = 12;  // standard deviations
  const double first = std::max(0.0, std::floor(shape.mean - kReach * spread));
  const double last = std::ceil(shape.mean + kReach * spread + kReach);
  double weight = 1e-280, total = 0;
  for (double x = first; x <= last && weight > 0; ++x) {
    total += weight;
    weight *= shape.ratio(x);
  }
  double expected = first, below = 0;
  weight = 1e-280;
  for (double x = first; x <= last && weight > 0; ++x) {
    below += weight;
    expected += 1 - std::pow(std::min(1.0, below / total), ranks);
    weight *= shape.ratio(x);
  }
  return expected;
}

// Expected maximum of R standard normals, and its square; ∫ z dΦ^R by the trapezoidal rule.
struct NormalMaximum {
  double first = 0, second = 0;
};
NormalMaximum normal_maximum(double ranks) noexcept {
  constexpr double kEnd = 10;
  constexpr int kSteps = 2000;
  const auto power = [&](double z) { return std::pow(0.5 * std::erfc(-z / std::sqrt(2.0)), ranks); };
  NormalMaximum out;
  double previous = power(-kEnd);
  for (int i = 0; i < kSteps; ++i) {
    const double middle = -kEnd + 2 * kEnd * (i + 0.5) / kSteps;
    const double next = power(-kEnd + 2 * kEnd * (i + 1.0) / kSteps);
    out.first += middle * (next - previous);
    out.second += middle * middle * (next - previous);
    previous = next;
  }
  return out;
}

double maximum(std::int64_t tokens, double top_k, double experts, std::int64_t rank_count) noexcept {
  const auto ranks = static_cast<double>(rank_count);
  const double copies = static_cast<double>(tokens) * top_k;
  if (copies <= 0) return 0;
  const double mean = copies / ranks;
  const double without_replacement = experts > 1 ? (experts - top_k) / (experts - 1) : 0;
  if (without_replacement <= 0) return mean;  // every token visits every expert
  const double success = 1 - without_replacement;

  if (copies <= kFew) {
    // The size for which one draw of all copies has the variance of t draws of k.
    const double population = success > 0 ? (copies - without_replacement) / success : INFINITY;
    return maximum_given_sum(static_cast<std::size_t>(std::llround(copies)), {population / ranks, mean},
                             rank_count);
  }
  const double spread = std::sqrt(mean * without_replacement);
  constexpr double kWide = 60;  // standard deviation from which one token's width is nothing
  if (spread < kWide)
    return maximum_of_independent({success > 0 ? mean / success : INFINITY, mean}, spread, ranks);
  // Cornish and Fisher's correction for the skewness (1 − 2·success)/spread.
  const NormalMaximum normal = normal_maximum(ranks);
  return mean + spread * normal.first + (1 - 2 * success) / 6 * (normal.second - 1);
}

}  // namespace

double expected_max_rank_tokens(double tokens, std::int64_t top_k, std::int64_t experts,
                                std::int64_t ranks) noexcept {
  if (!(tokens > 0) || top_k <= 0 || experts <= 0 || ranks <= 0) return 0;
  const auto k = static_cast<double>(std::min(top_k, experts));
  if (ranks == 1) return tokens * k;
  // Between whole numbers of tokens, linear.
  const double whole = std::floor(tokens);
  const auto at = [&](double t) {
    return maximum(static_cast<std::int64_t>(t), k, static_cast<double>(experts), ranks);
  };
  const double low = at(whole);
  return whole == tokens ? low : low + (tokens - whole) * (at(whole + 1) - low);
}

double expected_distinct(double groups, double k) noexcept {
  if (!(groups > 1)) return k > 0 ? std::max(0.0, groups) : 0;
  return -groups * std::expm1(k * std::log1p(-1 / groups));
}

}  // namespace tessera
