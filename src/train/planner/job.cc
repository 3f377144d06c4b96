#include "tessera/train/planner/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tessera/core/base/text.h"
#include "tessera/core/model/import.h"
#include "tessera/train/partition/rivals.h"
#include "tessera/train/schedule/megatron_layout.h"

namespace tessera::train {

namespace {

constexpr std::int64_t kMostLayers = 4096;
// Stages × microbatches; beyond it a schedule takes gigabytes, and no training step is near it.
constexpr std::int64_t kMostStageMicrobatches = std::int64_t{1} << 22;

// An error from below that knows no file gets the job's line and key.
std::unexpected<Error> located(Cursor where, Error error) {
  if (error.file.empty()) {
    error.file = where.file();
    error.line = where.line();
    error.key = where.path();
  }
  return std::unexpected(std::move(error));
}

std::string layer_span(std::int64_t first, std::int64_t last) {
  return first == last ? fmt::format("Layer {}", first) : fmt::format("Layers {} … {}", first, last);
}

// Where every stage is on two ranks, vp counts none of its own.
std::string_view stages_formula(const Job& job) noexcept {
  return distinct_stages(job) == job.layout.stages() ? "pp × vp" : "pp";
}

Result<Partition> layers_per_stage(Cursor list, const Job& job) {
  const ModelSpec& model = job.model;
  if (static_cast<std::int64_t>(list.size()) != distinct_stages(job))
    return list.error(
        fmt::format("{} entries for {} stages ({})", list.size(), distinct_stages(job), stages_formula(job)));
  Partition partition;
  std::int64_t next = 0;
  std::int64_t layers = 0;
  for (std::size_t s = 0; s < list.size(); ++s) {
    TESSERA_TRY(const std::int64_t count, list.item(s).integer(0, kMostLayers));
    const std::int64_t begin = next;
    next += count + (s == 0 ? 1 : 0);
    layers += count;
    if (s + 1 == list.size()) next += model.mtp_blocks() + 1;
    partition.stages.push_back({static_cast<std::int32_t>(begin), static_cast<std::int32_t>(next)});
  }
  if (layers != model.layers())
    return list.error(fmt::format("the stages hold {} layers, the model has {}", layers, model.layers()),
                      layers < model.layers()
                          ? fmt::format("{} would be lost.", layer_span(layers, model.layers() - 1))
                          : fmt::format("{} do not exist.", layer_span(model.layers(), layers - 1)));
  return partition;
}

Result<MegatronSplit> read_split(Cursor node, const Job& job) {
  TESSERA_CHECK(node.only_keys({"first_stage_layers", "last_stage_layers", "layers_per_virtual_stage",
                                "account_for_embedding", "account_for_loss"}));
  MegatronSplit split{.pp = job.layout.pp, .vp = distinct_stages(job) / job.layout.pp};
  if (node.present("first_stage_layers")) {
    TESSERA_TRY(split.first_stage_layers, node.required_integer("first_stage_layers", 0, kMostLayers));
  }
  if (node.present("last_stage_layers")) {
    TESSERA_TRY(split.last_stage_layers, node.required_integer("last_stage_layers", 0, kMostLayers));
  }
  if (node.present("layers_per_virtual_stage")) {
    TESSERA_TRY(split.layers_per_virtual_stage,
                node.required_integer("layers_per_virtual_stage", 1, kMostLayers));
  }
  TESSERA_TRY(split.account_for_embedding, node.boolean_or("account_for_embedding", false));
  TESSERA_TRY(split.account_for_loss, node.boolean_or("account_for_loss", false));
  return split;
}

Result<MegatronTarget> read_target(Cursor schedule) {
  TESSERA_TRY(const std::string target, schedule.string_or("megatron_target", "released"));
  if (target == "released") return MegatronTarget{};
  if (target == "development") return MegatronTarget{.split_mtp = true, .several_losses = true};
  return schedule.find("megatron_target")
      ->error(fmt::format("unknown target {}", target), "Known are released and development.");
}

// `placement: {empty_stages: true, uncut: [12], pinned: [{stage: 3, first_layer: 10}]}`.
Status read_placement(Cursor schedule, Job& job, const MegatronTarget& target) {
  job.placement.split_mtp = target.split_mtp;
  const auto section = schedule.present("placement");
  if (!section) return {};
  TESSERA_CHECK(section->only_keys({"empty_stages", "uncut", "pinned"}));
  TESSERA_TRY(job.placement.empty_stages, section->boolean_or("empty_stages", false));
  // Layers follow the embedding, MTP blocks follow the layers.
  const std::int64_t last = job.model.layers() + job.model.mtp_blocks() - 1;
  if (const auto uncut = section->present("uncut")) {
    if (!uncut->is_list()) return uncut->error("expected a list of layers", "For example [12, 13].");
    for (std::size_t i = 0; i < uncut->size(); ++i) {
      TESSERA_TRY(const std::int64_t layer, uncut->item(i).integer(0, last));
      job.placement.uncut.push_back(static_cast<std::int32_t>(layer) + 1);
    }
  }
  if (const auto pinned = section->present("pinned")) {
    if (!pinned->is_list())
      return pinned->error("expected a list of pinned stages", "For example [{stage: 3, first_layer: 10}].");
    for (std::size_t i = 0; i < pinned->size(); ++i) {
      TESSERA_CHECK(pinned->item(i).only_keys({"stage", "first_layer"}));
      TESSERA_TRY(
          const std::int64_t stage,
          pinned->item(i).required_integer("stage", 1, std::max<std::int64_t>(1, distinct_stages(job) - 1)));
      TESSERA_TRY(const std::int64_t layer, pinned->item(i).required_integer("first_layer", 0, last));
      job.placement.pinned.emplace_back(StageId(stage), static_cast<std::int32_t>(layer) + 1);
    }
  }
  return {};
}

Status read_partition(Cursor schedule, Job& job) {
  const auto rule = schedule.present("partition");
  const auto layout_string = schedule.present("megatron_layout");
  const auto split = schedule.present("megatron_split");
  if ((rule ? 1 : 0) + (layout_string ? 1 : 0) + (split ? 1 : 0) > 1)
    return (layout_string ? *layout_string : *split)
        .error("partition, megatron_layout and megatron_split exclude each other", "Keep one of them.");
  TESSERA_TRY(const MegatronTarget target, read_target(schedule));
  TESSERA_CHECK(read_placement(schedule, job, target));
  Result<Partition> given = bad_input("");
  if (layout_string) {
    TESSERA_TRY(const std::string text, layout_string->string());
    given = read_megatron_layout(text, job.model,
                                 {.pp = job.layout.pp,
                                  .declared_vp = distinct_stages(job) / job.layout.pp,
                                  .layers = job.model.layers(),
                                  .mtp = job.model.mtp_blocks()},
                                 target);
    if (!given) return located(*layout_string, given.error());
  } else if (split) {
    TESSERA_TRY(const MegatronSplit options, read_split(*split, job));
    given = megatron_split(job.model, options);
    if (!given) return located(*split, given.error());
  } else if (rule && rule->is_list()) {
    given = layers_per_stage(*rule, job);
    if (!given) return located(*rule, given.error());
  } else if (rule) {
    TESSERA_TRY(const std::string name, rule->string());
    constexpr std::array<std::pair<std::string_view, PartitionRule>, 6> kRules{
        {{"overlap-aware", PartitionRule::overlap_aware},
         {"serial-balanced", PartitionRule::serial_balanced},
         {"even", PartitionRule::even},
         {"parameter-balanced", PartitionRule::parameter_balanced},
         {"flop-balanced", PartitionRule::flop_balanced},
         {"alpa", PartitionRule::alpa}}};
    const auto known = std::ranges::find(kRules, name, &std::pair<std::string_view, PartitionRule>::first);
    if (known == kRules.end())
      return rule->error(fmt::format("unknown partition rule {}", name),
                         "Known are overlap-aware, serial-balanced, even, parameter-balanced, flop-balanced "
                         "and alpa; or give a list of layers per stage.");
    job.partition_rule = known->second;
    return {};
  } else {
    return {};
  }
  job.partition_rule = PartitionRule::given;
  job.partition = *std::move(given);
  return {};
}

Status read_pairs(Cursor schedule, Job& job) {
  const auto list = schedule.present("pairs");
  if (!list) return {};
  if (!list->is_list()) return list->error(fmt::format("expected a list, found {}", describe(list->kind())));
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Cursor node = list->item(i);
    TESSERA_CHECK(node.only_keys({"forward", "backward", "sequence"}));
    HandWrittenPair pair{.line = node.line()};
    TESSERA_TRY(const std::int64_t f, node.required_integer("forward", 0, job.layout.stages() - 1));
    TESSERA_TRY(const std::int64_t b, node.required_integer("backward", 0, job.layout.stages() - 1));
    pair.forward = static_cast<std::int32_t>(f);
    pair.backward = static_cast<std::int32_t>(b);
    TESSERA_TRY(const Cursor sequence, node.required_list("sequence"));
    for (std::size_t k = 0; k < sequence.size(); ++k) {
      TESSERA_TRY(std::string task, sequence.item(k).string());
      pair.sequence.push_back(std::move(task));
    }
    const auto twin = std::ranges::find_if(job.pairs, [&](const HandWrittenPair& other) {
      return other.forward == pair.forward && other.backward == pair.backward;
    });
    if (twin != job.pairs.end())
      return node.error(fmt::format("the pair of forward {} and backward {} is given twice, first in line {}",
                                    pair.forward, pair.backward, twin->line));
    job.pairs.push_back(std::move(pair));
  }
  return {};
}

Status read_shadows(Cursor schedule, Job& job) {
  const auto node = schedule.present("shadows");
  if (!node) return {};
  TESSERA_TRY(const std::string rule, node->string());
  constexpr std::array<std::pair<std::string_view, ShadowRule>, 5> kRules{{{"auto", ShadowRule::automatic},
                                                                           {"none", ShadowRule::none},
                                                                           {"first", ShadowRule::first},
                                                                           {"last", ShadowRule::last},
                                                                           {"spread", ShadowRule::spread}}};
  const auto known = std::ranges::find(kRules, rule, &std::pair<std::string_view, ShadowRule>::first);
  if (known == kRules.end())
    return node->error(fmt::format("unknown rule for shadow microbatches {}", rule),
                       "Known are auto, none, first, last and spread.");
  job.shadows = known->second;
  return {};
}

Status read_schedule(Cursor root, Job& job) {
  const auto schedule = root.present("schedule");
  if (!schedule) return {};
  TESSERA_CHECK(schedule->only_keys({"template", "group", "shadows", "partition", "megatron_layout",
                                     "megatron_split", "megatron_target", "placement", "pairs"}));
  if (const auto node = schedule->present("template")) {
    TESSERA_TRY(const std::string name, node->string());
    auto found = template_by_name(name);
    if (!found) return located(*node, found.error());
    job.schedule = *found;
  }
  TESSERA_TRY(const std::int64_t group, schedule->integer_or("group", 0, 1 << 20, 0));
  job.group = static_cast<std::int32_t>(group);
  TESSERA_CHECK(read_shadows(*schedule, job));
  TESSERA_CHECK(read_partition(*schedule, job));
  if (const auto placement = schedule->present("placement");
      placement && job.partition_rule != PartitionRule::overlap_aware)
    return placement->error("only a searched partition has a choice of places",
                            "Use partition: overlap-aware, or remove placement.");
  TESSERA_CHECK(read_pairs(*schedule, job));
  if (job.pairs.empty() || job.partition_rule != PartitionRule::overlap_aware) return {};
  // A sequence by hand names the layers of its stages: they must not move.
  if (const auto rule = schedule->present("partition"))
    return rule->error("pairs are given by hand, and a searched partition would move their layers",
                       "Give the partition that they were written for.");
  job.partition_rule = PartitionRule::serial_balanced;
  return {};
}

Status read_stage_durations(Cursor cost, Job& job) {
  const auto list = cost.present("stages");
  if (!list) return {};
  if (!list->is_list()) return list->error(fmt::format("expected a list, found {}", describe(list->kind())));
  if (static_cast<std::int64_t>(list->size()) != distinct_stages(job))
    return list->error(fmt::format("{} entries for {} stages ({})", list->size(), distinct_stages(job),
                                   stages_formula(job)));
  for (std::size_t s = 0; s < list->size(); ++s) {
    const Cursor node = list->item(s);
    TESSERA_CHECK(node.only_keys({"forward", "backward", "weight"}));
    StageDurations stage;
    const std::pair<std::string_view, Seconds*> passes[] = {
        {"forward", &stage.forward}, {"backward", &stage.backward}, {"weight", &stage.weight}};
    for (const auto& [key, time] : passes) {
      // W may be left out: then backward is the whole of it.
      TESSERA_TRY(const double milliseconds,
                  time == &stage.weight ? node.number_or(key, 0, 1e9, 0) : node.required_number(key, 0, 1e9));
      *time = Seconds(milliseconds * 1e-3);
    }
    job.stage_durations.push_back(stage);
  }
  return {};
}

Status read_cost(Cursor root, Job& job, const std::string& directory) {
  const auto cost = root.present("cost");
  if (!cost) return {};
  TESSERA_CHECK(cost->only_keys({"tables", "constants", "given", "stages", "transfer", "profile"}));
  TESSERA_TRY(job.tables, cost->boolean_or("tables", true));
  if (const auto constants = cost->present("constants")) {
    TESSERA_TRY(job.constants, read_constants(*constants));
  }
  if (cost->present("transfer")) {
    TESSERA_TRY(const double milliseconds, cost->required_number("transfer", 0, 1e9));
    job.transfer_time = Seconds(milliseconds * 1e-3);
  }
  if (const auto profile = cost->present("profile")) {
    TESSERA_TRY(const std::string file, profile->string());
    if (file.empty()) return profile->error("expected the name of a profile database");
    job.profile_file = (std::filesystem::path(directory) / file).lexically_normal().string();
  }
  return read_stage_durations(*cost, job);
}

}  // namespace

std::int64_t distinct_stages(const Job& job) noexcept {
  const bool twice = traits(job.schedule).placement == StagePlacement::two_ways;
  return twice ? job.layout.pp : job.layout.stages();
}

Result<Job> read_job(const Document& document, const std::string& directory) {
  const Cursor root = document.root();
  if (root.find("tessera_plan"))
    return root.error("this is a plan, not a job", "Use it with: tessera simulate, check or export.");
  TESSERA_CHECK(root.only_keys({"model", "cluster", "layout", "schedule", "software", "cost"}));
  Job job;
  job.file = root.file();
  job.document = document;
  TESSERA_TRY(const Cursor model, root.required("model"));
  TESSERA_TRY(const std::string model_file, model.string());
  if (model_file.find('\0') != std::string::npos) return model.error("a file name holds no NUL character");
  const std::filesystem::path path = std::filesystem::path(directory) / model_file;
  if (std::error_code failure; !std::filesystem::exists(path, failure))
    return model.error(fmt::format("no such file: {}", path.lexically_normal().string()),
                       "The path is taken from the job file's folder.");
  job.model_file = path.lexically_normal().string();
  auto imported = import_model_file(job.model_file);
  if (!imported) return located(model, std::move(imported).error());
  job.model = *std::move(imported);
  TESSERA_TRY(const Cursor cluster, root.required_map("cluster"));
  TESSERA_TRY(job.cluster, read_cluster(cluster));
  TESSERA_TRY(const Cursor layout, root.required_map("layout"));
  TESSERA_TRY(job.layout, read_layout(layout, job.cluster.gpus));
  job.memory_open = leaves_memory_open(layout);
  if (auto legal = check_layout(job.layout, job.cluster.gpus, &job.model); !legal) {
    // The rule names a size; point at the line where it stands.
    Error error = std::move(legal).error();
    const std::string_view key = std::string_view(error.key).substr(error.key.find_last_of('.') + 1);
    const auto at = layout.find(key);
    error.file = root.file();
    error.line = at ? at->line() : layout.line();
    return std::unexpected(std::move(error));
  }
  if (job.layout.stages() * job.layout.microbatches > kMostStageMicrobatches)
    return layout.error(fmt::format("{} stages × {} microbatches are more than {} chunks",
                                    job.layout.stages(), job.layout.microbatches, kMostStageMicrobatches),
                        "Use larger microbatches or fewer stages.");
  if (!job.cluster.rank_speed.empty() &&
      static_cast<std::int64_t>(job.cluster.rank_speed.size()) != job.layout.pp)
    return cluster.find("rank_speed")
        .value_or(cluster)
        .error(fmt::format("{} entries for pp = {} ranks", job.cluster.rank_speed.size(), job.layout.pp));
  job.software = default_software(job.cluster);
  if (const auto software = root.present("software")) {
    TESSERA_TRY(job.software, read_software(*software, job.cluster));
  }
  TESSERA_CHECK(read_schedule(root, job));
  if (job.software.expert_overlap && traits(job.schedule).pairs)
    return root.find("software")
        .value_or(root)
        .error(fmt::format("expert_overlap and the template {} would hide the same all-to-all twice",
                           name(job.schedule)),
               "expert_overlap is the framework's own hiding: set it to false, or use template interleaved.");
  TESSERA_CHECK(read_cost(root, job, directory));
  return job;
}

Result<Job> read_job_file(const std::string& path, const std::vector<JobOverride>& overrides) {
  TESSERA_TRY(const std::string text, read_file(path));
  TESSERA_TRY(Document document, Document::parse(text, path, DocumentFormat::yaml));
  for (const JobOverride& change : overrides) {
    TESSERA_TRY(document, document.with(change.key, change.value));
  }
  return read_job(document, std::filesystem::path(path).parent_path().string());
}

}  // namespace tessera::train
