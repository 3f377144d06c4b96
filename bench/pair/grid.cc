#include "grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace tessera::bench {
namespace {

constexpr std::array<std::string_view, 8> kModels{"qwen3-next-80b",   "qwen3-235b", "deepseek-v3",
                                                  "nemotron-3-super", "glm-4.5",    "kimi-linear",
                                                  "gpt-oss-120b",     "minimax-m2"};

// Context parallel ranks keep a rank's tokens where a GPU holds them.
struct Length {
  std::int64_t sequence, cp;
};
constexpr std::array<Length, 3> kLengths{{{4096, 1}, {32768, 4}, {262144, 32}}};
constexpr std::array<std::int64_t, 3> kExpertParallel{8, 32, 64};

// 64 ranks of one stage hold TP 2 × CP 32, and fold into EP 64.
constexpr std::int64_t kGpus = 512, kPipeline = 8;

bool has_shared_task(const BlockCost& cost) {
  return cost.task(Pass::forward, TaskKind::shared).exists;
}

bool has_shared_experts(const ModelSpec& model) {
  return std::ranges::any_of(model.layer_types,
                             [](const Layer& layer) { return layer.moe && layer.moe->shared_width > 0; });
}

// The job file of the model with the setting's sizes over its own. H100 and H20 have no MXFP8 units: what is
// published in MXFP8 runs there in FP8.
Result<train::Job> job_of(const Setting& setting, const std::vector<train::JobOverride>& more = {}) {
  const std::string path = fmt::format("{}/bench/plan/{}.yaml", TESSERA_SOURCE, setting.model);
  const auto length = std::ranges::find(kLengths, setting.sequence, &Length::sequence);
  std::vector<train::JobOverride> changes{
      {"cluster.preset", setting.device},
      {"cluster.gpus", std::to_string(kGpus)},
      {"layout.pp", std::to_string(kPipeline)},
      {"layout.cp", std::to_string(length == kLengths.end() ? 1 : length->cp)},
      {"layout.ep", std::to_string(setting.ep)},
      {"layout.sequence", std::to_string(setting.sequence)},
      {"software.shared_beside_dispatch", setting.shared_beside_dispatch ? "true" : "false"}};
  if (setting.model == "nemotron-3-super") changes.push_back({"layout.dtype", "fp8"});
  changes.insert(changes.end(), more.begin(), more.end());
  return train::read_job_file(path, changes);
}

}  // namespace

Result<std::vector<Setting>> grid_settings() {
  std::vector<Setting> settings;
  for (const std::string_view model : kModels) {
    TESSERA_TRY(const train::Job job, job_of({.model = std::string(model)}));
    for (const Length& length : kLengths)
      for (const std::int64_t ep : kExpertParallel) {
        Setting setting{.model = std::string(model), .sequence = length.sequence, .ep = ep};
        if (!job_of(setting)) continue;
        settings.push_back(setting);
        setting.shared_beside_dispatch = true;
        if (has_shared_experts(job.model)) settings.push_back(setting);
      }
  }
  return settings;
}

std::vector<std::string> grid_omissions() {
  std::vector<std::string> out;
  for (const std::string_view model : kModels)
    for (const std::int64_t ep : kExpertParallel)
      if (const auto job = job_of({.model = std::string(model), .ep = ep}); !job)
        out.push_back(fmt::format("{} EP{}: {}", model, ep, job.error().message));
  return out;
}

Signature Cell::window(std::int64_t first_layer, std::int64_t layers) const {
  Signature out;
  for (std::size_t b = 0; b < model.blocks.size(); ++b) {
    const Block& block = model.blocks[b];
    const bool inside = block.kind == BlockKind::embedding ? first_layer == 0
                        : block.kind == BlockKind::layer
                            ? block.layer >= first_layer && block.layer < first_layer + layers
                            : first_layer + layers == model.layers();
    if (inside) out.push_back(cost.kind_of_block[b]);
  }
  return out;
}

std::vector<Signature> Cell::windows(std::int64_t layers) const {
  std::vector<Signature> out;
  std::set<Signature> seen;
  for (std::int64_t first = 0; first + layers <= model.layers(); ++first)
    if (Signature signature = window(first, layers); seen.insert(signature).second)
      out.push_back(std::move(signature));
  return out;
}

Result<Cell> price_cell(const Setting& setting, const std::vector<train::JobOverride>& changes) {
  TESSERA_TRY(train::Job job, job_of(setting, changes));
  const CostInput input{.model = &job.model,
                        .cluster = &job.cluster,
                        .layout = &job.layout,
                        .software = job.software,
                        .constants = job.constants,
                        .table = job.tables ? &KernelTable::builtin() : nullptr};
  TESSERA_TRY(ModelCost cost, price_model(input));
  return Cell{.setting = setting,
              .layout = job.layout,
              .model = std::move(job.model),
              .cost = std::move(cost),
              .interference = interference(input)};
}

Result<std::vector<Cell>> price_grid(std::string_view device) {
  TESSERA_TRY(const std::vector<Setting> settings, grid_settings());
  std::vector<Cell> cells;
  for (Setting setting : settings) {
    setting.device = device;
    TESSERA_TRY(Cell cell, price_cell(setting));
    cells.push_back(std::move(cell));
  }
  return cells;
}

std::vector<train::PairKey> pairs_of(const Cell& cell) {
  std::vector<Signature> all;
  for (int layers = 1; layers <= kLargestWindow; ++layers)
    std::ranges::move(cell.windows(layers), std::back_inserter(all));
  const auto shared = [&](const Signature& window) {
    return std::ranges::any_of(window, [&](std::int32_t kind) {
      return has_shared_task(cell.cost.kinds[static_cast<std::size_t>(kind)]);
    });
  };
  std::vector<train::PairKey> out;
  for (const Signature& forward : all)
    for (const Signature& backward : all)
      if (!cell.setting.shared_beside_dispatch || shared(forward) || shared(backward))
        out.push_back({forward, backward});
  return out;
}

std::string name(const Setting& setting) {
  return fmt::format("{} {}K EP{}{}{}", setting.model, setting.sequence / 1024, setting.ep,
                     setting.shared_beside_dispatch ? " shared beside" : "",
                     setting.device == "H100" ? "" : " on " + setting.device);
}

}  // namespace tessera::bench
