#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runs.h"
#include "tessera/core/model/import.h"
#include "tessera/train/schedule/megatron_layout.h"

namespace tessera::bench {
namespace {

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

// Megatron-Bridge's layout strings for DeepSeek and Kimi: equal stages of 64/n layers, the last takes what is
// left
// ("Et*4|(tttt|)*14tmL"). The Qwen3-235B recipes count embedding and loss as a layer each
// (account_for_embedding_in_pipeline_split, …_loss_…), which is the only way its 94 layers divide. The others
// divide.
Result<train::Partition> published_partition(const ModelSpec& model, const Layout& layout) {
  const std::int64_t stages = layout.stages(), layers = model.layers();
  if (layers == 61 && stages > 1 && 64 % stages == 0) {
    train::Partition out;
    const std::int64_t each = 64 / stages;
    for (std::int64_t s = 0; s < stages; ++s) {
      const std::int64_t begin = s == 0 ? 0 : 1 + each * s;
      const auto end = s + 1 == stages ? static_cast<std::int64_t>(model.blocks.size()) : 1 + each * (s + 1);
      out.stages.push_back({static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end)});
    }
    TESSERA_CHECK(train::check_partition(model, out));
    return out;
  }
  const bool ends = layers % stages != 0;
  return train::megatron_split(
      model, {.pp = layout.pp, .vp = layout.vp, .account_for_embedding = ends, .account_for_loss = ends});
}

}  // namespace

Result<ModelSpec> read_model(const std::string& directory, const Run& run) {
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

Result<train::Job> job_of(const Run& run, const ModelSpec& model) {
  train::Job job{.file = fmt::format("training-rows.csv:{}", run.line), .model = model};
  TESSERA_TRY(job.cluster, cluster_preset(run.system));
  job.cluster.gpus = run.gpus;
  job.layout = run.layout;
  TESSERA_CHECK(check_layout(job.layout, run.gpus, &job.model));
  job.schedule = run.layout.vp > 1 ? train::Template::interleaved : train::Template::one_f_one_b;
  job.software = run.software;
  TESSERA_TRY(job.partition, published_partition(model, run.layout));
  job.partition_rule = train::PartitionRule::given;
  return job;
}

}  // namespace tessera::bench
