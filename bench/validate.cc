// Predicts 94 published training runs with no constant fitted to them, and says how far off it is.
//   validate [models directory]

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>

#include "tessera/core/model/count.h"
#include "tessera/core/model/import.h"
#include "validate/runs.h"
#include "validate/step_time.h"

namespace tessera::bench {
namespace {

struct Prediction {
  const Run* run = nullptr;
  double tokens_per_second = 0;       ///< per GPU
  double peak_seconds_per_token = 0;  ///< model FLOPs / peak: what a constant MFU is applied to
  double host_share = 0, all_to_all_share = 0, traffic_share = 0;  ///< of the slowest stage
  [[nodiscard]] double error() const { return tokens_per_second / run->tokens_per_second_per_gpu - 1; }
};

// Published name by prefix → file in the models directory.
constexpr std::pair<std::string_view, std::string_view> kModels[] = {
    {"DeepSeekV3", "DeepSeek-V3"},
    {"DeepSeekV4 Flash", "DeepSeek-V4-Flash"},
    {"GPT OSS 120B", "gpt-oss-120b"},
    {"Qwen3_235B", "Qwen3-235B-A22B"},
    {"Qwen3_30B", "Qwen3-30B-A3B"},
    {"Kimi_K2", "Kimi-K2"},
    {"Nemotron_3_Nano", "Nemotron-3-Nano-30B-A3B"},
    {"Nemotron_3_Super", "Nemotron-3-Super"},
    {"Nemotron_3_Ultra", "Nemotron-3-Ultra-550B-A55B"},
    {"Nemotron_3_5_Lightning", "Nemotron-3.5-Lightning-30B-A3B"},
};

Result<ModelSpec> load_model(const std::string& directory, const Run& run) {
  for (const auto& [published, stem] : kModels) {
    if (!run.model.starts_with(published)) continue;
    for (const std::string_view extension : {".json", ".yaml"}) {
      const std::string path = fmt::format("{}/{}{}", directory, stem, extension);
      if (!std::filesystem::exists(path)) continue;
      TESSERA_TRY(ModelSpec model, import_model_file(path));
      if (run.model.contains("w/o MTP"))
        std::erase_if(model.blocks, [](const Block& block) { return block.kind == BlockKind::mtp; });
      return model;
    }
    return bad_input(fmt::format("{} holds no file {}.json or .yaml", directory, stem));
  }
  return bad_input(fmt::format("no model file is known for {}", run.model));
}

Result<Prediction> predict(const Run& run, const ModelSpec& model) {
  TESSERA_TRY(Cluster cluster, cluster_preset(run.system));
  cluster.gpus = run.gpus;
  TESSERA_CHECK(check_layout(run.layout, run.gpus, &model));
  CostInput input{.model = &model,
                  .cluster = &cluster,
                  .layout = &run.layout,
                  .software = run.software,
                  .table = &KernelTable::builtin()};
  TESSERA_TRY(const ModelCost cost, price_model(input));
  const StepTime step = step_time(input, cost);
  Prediction out{.run = &run};
  const double tokens = static_cast<double>(run.global_batch * run.layout.sequence);
  out.tokens_per_second = tokens / step.total.value() / static_cast<double>(run.gpus);
  out.peak_seconds_per_token = training_flops_per_token(model, run.layout.sequence).value() /
                               cluster.gpu.peak_of(run.layout.dtype).value();
  out.host_share = step.host / step.slowest_stage;
  out.all_to_all_share = step.all_to_all / step.slowest_stage;
  // Elementwise traffic is what the price loses when it costs nothing.
  input.constants.memory_traffic = 0;
  TESSERA_TRY(const ModelCost without, price_model(input));
  out.traffic_share = 1 - step_time(input, without).slowest_stage / step.slowest_stage;
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
  fmt::print("{:6.2f} {:24} {:6}×{:<4} {:5} {:26} {:8.0f} {:9.0f} {:+7.1f} {:5.0f} {:4.0f} {:5.0f}\n",
             run.release, run.model, run.system, run.gpus, name(l.dtype), layout,
             run.tokens_per_second_per_gpu, p.tokens_per_second, 100 * p.error(), 100 * p.host_share,
             100 * p.all_to_all_share, 100 * p.traffic_share);
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
             "predicted error %  host  A2A traffic %");
  for (const Run& run : runs) {
    if (!loaded.contains(run.model)) {
      TESSERA_TRY(ModelSpec model, load_model(models, run));
      loaded.emplace(run.model, std::move(model));
    }
    TESSERA_TRY(const Prediction prediction, predict(run, loaded.at(run.model)));
    predictions.push_back(prediction);
    print_row(predictions.back());
  }
  print_groups(predictions, "model", [](const Run& run) { return run.model; });
  print_groups(predictions, "system", [](const Run& run) { return run.system; });
  print_groups(predictions, "dtype", [](const Run& run) { return std::string(name(run.layout.dtype)); });

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
  fmt::print("cost model, no fit     {:7.1f} {:9.1f} {:+7.1f} {:9.3f}\n", 100 * mean_absolute(errors),
             100 * median_absolute(errors), 100 * bias, spearman(measured, predicted));
  fmt::print("constant MFU {:4.1f} %    {:7.1f} {:9.1f}     0.0 {:9.3f}   (fitted to these runs)\n\n",
             100 * mfu, 100 * mean_absolute(baseline_errors), 100 * median_absolute(baseline_errors),
             spearman(measured, baseline));
  fmt::print(
      "{{\"rows\":{},\"mape\":{:.2f},\"median\":{:.2f},\"spearman\":{:.4f},\"bias\":{:.2f},\"baseline_mape\":"
      "{:.2f}}}\n",
      errors.size(), 100 * mean_absolute(errors), 100 * median_absolute(errors),
      spearman(measured, predicted), 100 * bias, 100 * mean_absolute(baseline_errors));
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
