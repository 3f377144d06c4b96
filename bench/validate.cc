// Plans 94 published training runs as `tessera plan` does, with no constant fitted to them, and says how far
// off the tokens/s are, whether the simulator agrees with the closed form, and which layouts memory is said
// not to hold.
//   validate [models directory]

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "tessera/train/planner/plan.h"
#include "validate/closed_form.h"
#include "validate/runs.h"

namespace tessera::bench {
namespace {

struct Prediction {
  const Run* run = nullptr;
  double tokens_per_second = 0;       ///< per GPU
  double peak_seconds_per_token = 0;  ///< model FLOPs / peak: what a constant MFU is applied to
  double host_share = 0, all_to_all_share = 0, traffic_share = 0;  ///< of the slowest rank's microbatch
  double formula = 0;                                              ///< simulated step / closed form
  double memory = 0;  ///< peak of the fullest rank / its device's
  Bytes peak_memory, activation;
  train::RankMemory resident;  ///< of that rank
  bool fits = true;
  [[nodiscard]] double error() const { return tokens_per_second / run->tokens_per_second_per_gpu - 1; }
};

Result<Prediction> predict(const Run& run, const ModelSpec& model) {
  TESSERA_TRY(train::Job job, job_of(run, model));
  constexpr train::PlanOptions kFigures{.slices = false, .baselines = false};
  TESSERA_TRY(const train::PlanReport report, train::make_plan(job, kFigures));
  const ClosedForm formula = closed_form(report.plan);
  Prediction out{.run = &run};
  out.tokens_per_second = report.figures.tokens_per_second_per_gpu;
  out.formula = report.figures.iteration / formula.step;
  out.memory = report.figures.peak_memory / report.plan.memory_limit;
  out.peak_memory = report.figures.peak_memory;
  out.fits = report.usable;
  out.peak_seconds_per_token = report.plan.flops_per_token / report.plan.peak.value();
  out.host_share = formula.host / formula.slowest_rank;
  out.all_to_all_share = formula.all_to_all / formula.slowest_rank;
  // Elementwise traffic is what the price loses when it costs nothing.
  job.constants.memory_traffic = 0;
  TESSERA_TRY(const train::PlanReport without, train::make_plan(job, kFigures));
  out.traffic_share = 1 - closed_form(without.plan).slowest_rank / formula.slowest_rank;
  out.resident = report.plan.memory[static_cast<std::size_t>(report.figures.peak_rank)];
  out.activation = report.simulated.ranks[static_cast<std::size_t>(report.figures.peak_rank)].peak_activation;
  return out;
}

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> out(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t j = i;
    while (j < order.size() && values[order[j]] == values[order[i]]) ++j;
    for (std::size_t k = i; k < j; ++k) out[order[k]] = static_cast<double>(i + j - 1) / 2;
    i = j;
  }
  return out;
}

double spearman(const std::vector<double>& a, const std::vector<double>& b) {
  const auto x = ranks_of(a), y = ranks_of(b);
  const double mean = static_cast<double>(x.size() - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xy / std::sqrt(xx * yy);
}

double mean_absolute(const std::vector<double>& errors) {
  double sum = 0;
  for (const double error : errors) sum += std::abs(error);
  return sum / static_cast<double>(errors.size());
}

double median_absolute(std::vector<double> errors) {
  for (double& error : errors) error = std::abs(error);
  std::ranges::sort(errors);
  const std::size_t n = errors.size();
  return n % 2 == 1 ? errors[n / 2] : (errors[n / 2 - 1] + errors[n / 2]) / 2;
}

// One MFU for all runs, the one that fits them best (their geometric mean): a generous rival.
std::vector<double> constant_mfu(const std::vector<Prediction>& predictions, double& mfu) {
  double log_sum = 0;
  for (const Prediction& p : predictions)
    log_sum += std::log(p.run->tokens_per_second_per_gpu * p.peak_seconds_per_token);
  mfu = std::exp(log_sum / static_cast<double>(predictions.size()));
  std::vector<double> out;
  for (const Prediction& p : predictions) out.push_back(mfu / p.peak_seconds_per_token);
  return out;
}

void print_row(const Prediction& p) {
  const Run& run = *p.run;
  const Layout& l = run.layout;
  const auto layout = fmt::format("TP{} PP{} VP{} EP{} mbs{}", l.tp, l.pp, l.vp, l.ep, l.microbatch_size);
  fmt::print(
      "{:6.2f} {:24} {:6}×{:<4} {:5} {:26} {:8.0f} {:9.0f} {:+7.1f} {:5.0f} {:4.0f} {:5.0f} {:+8.1f} {:7.0f} "
      "{:4.0f}{}\n",
      run.release, run.model, run.system, run.gpus, name(l.dtype), layout, run.tokens_per_second_per_gpu,
      p.tokens_per_second, 100 * p.error(), 100 * p.host_share, 100 * p.all_to_all_share,
      100 * p.traffic_share, 100 * (p.formula - 1), gibibytes(p.peak_memory), 100 * p.memory,
      p.fits ? "" : " !");
}

// What the memory model denies though it ran.
void print_misfits(const std::vector<Prediction>& predictions) {
  for (const Prediction& p : predictions) {
    if (p.fits) continue;
    const train::RankMemory& m = p.resident;
    fmt::print(
        "\n{} {} on {}: {:.0f} GiB, {:.0f} % of the device (weights {:.0f}, gradients {:.0f}, optimizer "
        "{:.0f}, "
        "activations {:.0f}, workspace {:.0f})",
        p.run->release, p.run->model, p.run->system, gibibytes(p.peak_memory), 100 * p.memory,
        gibibytes(m.weights), gibibytes(m.gradients), gibibytes(m.optimizer), gibibytes(p.activation),
        gibibytes(m.workspace));
  }
  const auto fit = std::ranges::count_if(predictions, &Prediction::fits);
  fmt::print("\nmemory: {} of {} published layouts are said to fit (at most {:.0f} % of the device)\n", fit,
             predictions.size(), 100 * train::kUsableMemory);
}

void print_groups(const std::vector<Prediction>& predictions, std::string_view title,
                  const std::function<std::string(const Run&)>& key) {
  std::map<std::string, std::vector<double>> groups;
  for (const Prediction& p : predictions) groups[key(*p.run)].push_back(p.error());
  fmt::print("\nby {:21} runs  MAPE %  bias %\n", title);
  for (const auto& [group, errors] : groups) {
    double log_sum = 0;
    for (const double error : errors) log_sum += std::log1p(error);
    fmt::print("{:24} {:4} {:7.1f} {:+7.1f}\n", group, errors.size(), 100 * mean_absolute(errors),
               100 * std::expm1(log_sum / static_cast<double>(errors.size())));
  }
}

Status run_all(const std::string& models) {
  TESSERA_TRY(const std::vector<Run> runs, read_runs(TESSERA_SOURCE "/data/training"));
  std::map<std::string, ModelSpec> loaded;
  std::vector<Prediction> predictions;
  fmt::print("{}\n",
             "release model                    system      dtype layout                     measured "
             "predicted error %  host  A2A traffic %  formula     GiB    %");
  for (const Run& run : runs) {
    if (!loaded.contains(run.model)) {
      TESSERA_TRY(ModelSpec model, read_model(models, run));
      loaded.emplace(run.model, std::move(model));
    }
    TESSERA_TRY(const Prediction prediction, predict(run, loaded.at(run.model)));
    predictions.push_back(prediction);
    print_row(predictions.back());
  }
  print_groups(predictions, "model", [](const Run& run) { return run.model; });
  print_groups(predictions, "system", [](const Run& run) { return run.system; });
  print_groups(predictions, "dtype", [](const Run& run) { return std::string(name(run.layout.dtype)); });

  print_misfits(predictions);
  const auto furthest =
      std::ranges::max(predictions, {}, [](const Prediction& p) { return std::abs(p.formula - 1); });
  fmt::print("simulator and closed form: at most {:.1f} % apart\n", 100 * std::abs(furthest.formula - 1));
  const double fit = static_cast<double>(std::ranges::count_if(predictions, &Prediction::fits)) /
                     static_cast<double>(predictions.size());

  std::vector<double> measured, predicted, errors, baseline_errors;
  double log_sum = 0, mfu = 0;
  const std::vector<double> baseline = constant_mfu(predictions, mfu);
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    measured.push_back(predictions[i].run->tokens_per_second_per_gpu);
    predicted.push_back(predictions[i].tokens_per_second);
    errors.push_back(predictions[i].error());
    baseline_errors.push_back(baseline[i] / measured[i] - 1);
    log_sum += std::log(predicted[i] / measured[i]);
  }
  const double bias = std::expm1(log_sum / static_cast<double>(errors.size()));
  fmt::print("\n                        MAPE %  median %  bias %  Spearman\n");
  fmt::print("tessera plan, no fit   {:7.1f} {:9.1f} {:+7.1f} {:9.3f}\n", 100 * mean_absolute(errors),
             100 * median_absolute(errors), 100 * bias, spearman(measured, predicted));
  fmt::print("constant MFU {:4.1f} %    {:7.1f} {:9.1f}     0.0 {:9.3f}   (fitted to these runs)\n\n",
             100 * mfu, 100 * mean_absolute(baseline_errors), 100 * median_absolute(baseline_errors),
             spearman(measured, baseline));
  fmt::print(
      "{{\"rows\":{},\"mape\":{:.2f},\"median\":{:.2f},\"spearman\":{:.4f},\"bias\":{:.2f},\"baseline_mape\":"
      "{:.2f},\"memory_fit\":{:.4f}}}\n",
      errors.size(), 100 * mean_absolute(errors), 100 * median_absolute(errors),
      spearman(measured, predicted), 100 * bias, 100 * mean_absolute(baseline_errors), fit);
  return {};
}

}  // namespace
}  // namespace tessera::bench

int main(int count, char** arguments) {
  const std::string models = count > 1 ? arguments[1] : TESSERA_SOURCE "/data/models";
  if (const auto status = tessera::bench::run_all(models); !status) {
    fmt::print(stderr, "{}\n", status.error().text());
    return 2;
  }
  return 0;
}
