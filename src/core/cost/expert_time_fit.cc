// Max-affine fit: each sample belongs to the branch that is larger there, each branch is a non-negative least
// squares fit of its samples, and the two steps alternate. The result depends on where one starts, so several
// starts are tried: the samples in order of tokens per expert, cut in two at different places.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "nonnegative_fit.h"
#include "tessera/core/cost/expert_time.h"

namespace tessera {

namespace {

// Residuals beyond this many times their median lose weight in proportion (Huber's estimator: 1.345 standard
// deviations keep 95 % efficiency on normal errors, and a standard deviation is 1.4826 median deviations).
constexpr double kHuber = 1.345 * 1.4826;
// With exact samples the median residual is rounding noise, which must not decide what an outlier is.
constexpr double kFinestResidual = 1e-6;
constexpr int kCuts = 9;  // at 0 %, 12.5 % … 100 % of the samples

enum class Branch : bool { memory, compute };

class Fitter {
 public:
  Fitter(std::span<const ExpertSample> samples, const ExpertFitOptions& options)
      : samples_(samples), options_(options), branch_(samples.size()), weight_(samples.size()) {}

  ExpertFit fit() {
    std::vector<std::size_t> order(samples_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto tokens_per_expert = [&](std::size_t i) {
      return samples_[i].load.tokens / static_cast<double>(samples_[i].load.active);
    };
    std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(tokens_per_expert(i), i); });
    ExpertFit best;
    double best_loss = 0;
    for (int cut = 0; cut < kCuts; ++cut) {
      const std::size_t flat = order.size() * static_cast<std::size_t>(cut) / (kCuts - 1);
      for (std::size_t i = 0; i < order.size(); ++i)
        branch_[order[i]] = i < flat ? Branch::memory : Branch::compute;
      const ExpertFit candidate = alternate();
      const double loss = candidate.mean_residual;
      if (cut == 0 || loss < best_loss * (1 - 1e-9)) {
        best = candidate;
        best_loss = loss;
      }
    }
    return best;
  }

 private:
  ExpertFit alternate() {
    std::ranges::fill(weight_, 1.0);
    ExpertFit best, current;
    for (int iteration = 0; iteration < options_.max_iterations; ++iteration) {
      current.model = solve();
      judge(current);
      // An alternation may circle between two assignments; the best round counts.
      if (iteration == 0 || current.mean_residual < best.mean_residual) {
        best = current;
        best.converged = false;
      }
      if (!reassign(current)) {
        best.converged = true;
        break;
      }
    }
    return best;
  }

  [[nodiscard]] ExpertTimeModel solve() const {
    // In the columns 1, G, E, T − G the conditions b ≥ d ≥ 0 are signs: b·G + d·(E − G) = (b − d)·G + d·E.
    NonnegativeFit memory, compute;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      const ExpertLoad& load = samples_[i].load;
      const double time = samples_[i].time.value();
      const double weight = weight_[i] / (time * time);
      const auto active = static_cast<double>(load.active);
      if (branch_[i] == Branch::memory) {
        memory.add({1, active, options_.idle_slots ? static_cast<double>(load.slots) : 0,
                    options_.tile > 0 ? load.tiles - active : 0},
                   time, weight);
      } else {
        compute.add({load.tokens, 1, 0, 0}, time, weight);
      }
    }
    const NonnegativeFit::Row m = memory.solve(), k = compute.solve();
    ExpertTimeModel model;
    model.a = Seconds(m[0]);
    model.b = Seconds(m[1] + m[2]);
    model.d = Seconds(m[2]);
    model.b2 = Seconds(m[3]);
    model.beta = Seconds(k[0]);
    model.c = Seconds(k[1]);
    model.tile = options_.tile;
    return model;
  }

  void judge(ExpertFit& fit) const {
    fit.residuals.resize(samples_.size());
    fit.mean_residual = fit.worst_residual = 0;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      fit.residuals[i] = fit.model.evaluate(samples_[i].load) / samples_[i].time - 1;
      const double size = std::abs(fit.residuals[i]);
      fit.mean_residual += size / static_cast<double>(samples_.size());
      fit.worst_residual = std::max(fit.worst_residual, size);
    }
  }

  // New branches and weights from the fit; false when nothing moved any more.
  bool reassign(const ExpertFit& fit) {
    std::vector<double> sizes(fit.residuals.size());
    std::ranges::transform(fit.residuals, sizes.begin(), [](double r) { return std::abs(r); });
    const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
    std::ranges::nth_element(sizes, middle);
    const double limit = kHuber * std::max(*middle, kFinestResidual);
    bool moved = false;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      ExpertTimeModel memory_only = fit.model;
      memory_only.beta = memory_only.c = Seconds(0);
      const Branch branch =
          memory_only.evaluate(samples_[i].load) >= fit.model.c + fit.model.beta * samples_[i].load.tokens
              ? Branch::memory
              : Branch::compute;
      const double weight = std::min(1.0, limit / std::max(std::abs(fit.residuals[i]), limit * 1e-9));
      moved = moved || branch != branch_[i] || std::abs(weight - weight_[i]) > 1e-6;
      branch_[i] = branch;
      weight_[i] = weight;
    }
    return moved;
  }

  std::span<const ExpertSample> samples_;
  const ExpertFitOptions& options_;
  std::vector<Branch> branch_;
  std::vector<double> weight_;
};

Status check(std::span<const ExpertSample> samples, const ExpertFitOptions& options) {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto& [load, time] = samples[i];
    if (!(time.value() > 0) || !std::isfinite(time.value()))
      return bad_input(fmt::format("sample {}: a time of {} s, expected a positive one", i, time.value()));
    if (load.slots < 0 || load.active < 0 || load.active > load.slots)
      return bad_input(fmt::format("sample {}: {} active of {} expert slots", i, load.active, load.slots));
    if (!(load.tokens >= static_cast<double>(load.active)) || !std::isfinite(load.tokens))
      return bad_input(fmt::format("sample {}: {} tokens for {} active experts, which need one each", i,
                                   load.tokens, load.active));
    if (load.active == 0 && load.tokens > 0)
      return bad_input(fmt::format("sample {}: {} tokens, but no active expert", i, load.tokens));
    if (options.tile > 0 && !(load.tiles >= static_cast<double>(load.active)))
      return bad_input(fmt::format("sample {}: {} tiles for {} active experts, which need one each", i,
                                   load.tiles, load.active));
  }
  return {};
}

}  // namespace

Result<ExpertFit> fit_expert_time(std::span<const ExpertSample> samples, const ExpertFitOptions& options) {
  TESSERA_CHECK(check(samples, options));
  std::vector<ExpertSample> busy;
  std::vector<double> idle;
  for (const ExpertSample& sample : samples)
    if (sample.load.active > 0)
      busy.push_back(sample);
    else
      idle.push_back(sample.time.value());
  constexpr std::size_t kFewest = 4;
  if (busy.size() < kFewest)
    return bad_input(fmt::format("{} samples with tokens, at least {} are needed", busy.size(), kFewest),
                     "Measure over a grid of active experts and tokens.");

  ExpertFit fit = Fitter(busy, options).fit();
  if (!idle.empty()) {
    const auto middle = idle.begin() + static_cast<std::ptrdiff_t>(idle.size() / 2);
    std::ranges::nth_element(idle, middle);
    fit.model.idle = Seconds(*middle);
  }
  // Residuals of all samples, in the caller's order.
  fit.residuals.clear();
  fit.mean_residual = fit.worst_residual = 0;
  for (const ExpertSample& sample : samples) {
    fit.residuals.push_back(fit.model.evaluate(sample.load) / sample.time - 1);
    fit.mean_residual += std::abs(fit.residuals.back()) / static_cast<double>(samples.size());
    fit.worst_residual = std::max(fit.worst_residual, std::abs(fit.residuals.back()));
  }
  return fit;
}

}  // namespace tessera
