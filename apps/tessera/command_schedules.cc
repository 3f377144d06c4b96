// Schedules without a plan: files in CSV, templates by name, and the table of all templates.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "command.h"
#include "tessera/train/explain/schedules.h"
#include "tessera/train/schedule/megatron_flags.h"
#include "tessera/train/schedule/placement.h"
#include "tessera/train/schedule/schedule_times.h"
#include "tessera/train/schedule/torch_csv.h"

namespace tessera::apps {

namespace {

constexpr std::int64_t kMostSize = 1 << 16;  // of each of pp, vp, microbatches and group
constexpr std::int64_t kMostActions = 1 << 24;

std::unexpected<Error> in_file(Error error, const std::string& path) {
  if (error.file.empty()) error.file = path;
  return std::unexpected(std::move(error));
}

Result<std::int32_t> size_flag(std::string_view flag, const std::string& text) {
  const auto value = to_integer(text);
  if (!value || *value < 1 || *value > kMostSize)
    return bad_input(fmt::format("{} {}: expected a whole number, 1 … {}", flag, text, kMostSize));
  return static_cast<std::int32_t>(*value);
}

Status check_amount(const train::TemplateSizes& sizes) {
  const std::int64_t chunks = std::int64_t{sizes.pp} * sizes.vp;
  if (chunks * sizes.microbatches <= kMostActions) return {};
  return bad_input(fmt::format("{} stages of {} microbatches are more than {} chunks", chunks,
                               sizes.microbatches, with_thousands(kMostActions)));
}

struct SchedulesArguments {
  std::string pp, vp = "1", microbatches, group;
  double forward = 1, input_gradient = 1, weight_gradient = 1, transfer = 0, pair_share = 1;
};

Outcome run(const SchedulesArguments& arguments, const Common& common) {
  train::SchedulesQuestion question;
  TESSERA_TRY(question.sizes.pp, size_flag("--pp", arguments.pp));
  TESSERA_TRY(question.sizes.vp, size_flag("--vp", arguments.vp));
  TESSERA_TRY(question.sizes.microbatches, size_flag("--microbatches", arguments.microbatches));
  if (!arguments.group.empty()) {
    TESSERA_TRY(question.sizes.group, size_flag("--group", arguments.group));
  }
  // Templates in a V have two chunks whatever vp says.
  train::TemplateSizes largest = question.sizes;
  largest.vp = std::max(largest.vp, 2);
  TESSERA_CHECK(check_amount(largest));
  for (const auto& [flag, value] :
       {std::pair{"--forward", arguments.forward}, std::pair{"--input-gradient", arguments.input_gradient},
        std::pair{"--weight-gradient", arguments.weight_gradient},
        std::pair{"--transfer", arguments.transfer}, std::pair{"--pair-share", arguments.pair_share}})
    if (!(value >= 0 && value <= 1e9)) return bad_input(fmt::format("{} {}: expected 0 … 1e9", flag, value));
  question.chunk = {.forward = Seconds(arguments.forward),
                    .input_gradient = Seconds(arguments.input_gradient),
                    .weight_gradient = Seconds(arguments.weight_gradient)};
  question.transfer = Seconds(arguments.transfer);
  question.pair_share = arguments.pair_share;
  print(common.json ? train::schedules_json(question) : train::schedules_text(question));
  return 0;
}

}  // namespace

bool is_schedule_file(const std::string& path) {
  return path.ends_with(".csv");
}

Outcome import_schedule(const std::string& path, const Common& common) {
  TESSERA_TRY(const std::string text, read_file(path));
  TESSERA_TRY(const train::TorchCsv csv, train::read_torch_csv(text, path));
  print(common.json ? train::schedule_json(path, csv) : train::schedule_text(path, csv));
  return 0;
}

Outcome check_schedule_file(const std::string& path, bool as_torch, const std::string& placement,
                            const Common& common) {
  TESSERA_TRY(const std::string text, read_file(path));
  if (as_torch) {
    const train::TorchVerdict verdict = train::torch_loads(text);
    print(common.json ? train::torch_verdict_json(path, verdict) : train::torch_verdict_text(path, verdict));
    return verdict.accepted ? 0 : 1;
  }
  TESSERA_TRY(const train::TorchCsv csv, train::read_torch_csv(text, path));
  auto facts = train::check_torch_csv(csv);
  if (!facts) return in_file(std::move(facts).error(), path);
  if (!placement.empty()) {
    const auto held = placement == "v" ? train::StagePlacement::v_shape : train::StagePlacement::linear;
    auto placed = train::check_placement(csv.list.rank_of_stage,
                                         static_cast<std::int32_t>(csv.list.ranks.size()), held);
    if (!placed) return in_file(std::move(placed).error(), path);
  }
  print(common.json ? train::schedule_check_json(path, csv, *facts)
                    : train::schedule_check_text(path, csv, *facts));
  return 0;
}

Result<std::string> export_template(const std::vector<train::JobOverride>& flags, const std::string& target) {
  train::TemplateSizes sizes;
  std::string template_name;
  bool has_pp = false, has_microbatches = false;
  for (const train::JobOverride& flag : flags) {
    if (flag.key == "schedule.template") {
      template_name = flag.value;
    } else if (flag.key == "layout.pp") {
      TESSERA_TRY(sizes.pp, size_flag("--pp", flag.value));
      has_pp = true;
    } else if (flag.key == "layout.vp") {
      TESSERA_TRY(sizes.vp, size_flag("--vp", flag.value));
    } else if (flag.key == "layout.microbatches") {
      TESSERA_TRY(sizes.microbatches, size_flag("--microbatches", flag.value));
      has_microbatches = true;
    } else if (flag.key == "schedule.group") {
      TESSERA_TRY(sizes.group, size_flag("--group", flag.value));
    } else if (flag.value != "null") {
      return bad_input(fmt::format("{} belongs to a job; a template takes sizes only", flag.key),
                       "Give a plan or job file, or leave it out.");
    }
  }
  if (template_name.empty() || !has_pp || !has_microbatches)
    return bad_input("nothing to export: expected FILE, or --template with -p and -m",
                     "For example tessera export --template interleaved -p 4 -v 2 -m 8 --to torch-csv.");
  TESSERA_TRY(const train::Template schedule, train::template_by_name(template_name));
  if (sizes.vp == 1 && train::traits(schedule).chunks > 1) sizes.vp = train::traits(schedule).chunks;
  TESSERA_CHECK(check_amount(sizes));
  if (target == "megatron") return train::megatron_schedule_flags(schedule, sizes);
  if (target == "torchtitan")
    return bad_input("--to torchtitan needs a plan: a template does not say which stage holds which layer",
                     "Use --to torch-csv.");
  TESSERA_TRY(const train::ActionList list, train::make_schedule(schedule, sizes));
  if (target == "torch-csv") return train::write_torch_csv(list);
  if (target == "torch-csv-comms") {
    TESSERA_TRY(const train::LoweredList lowered, train::lower(list, {.shard = true}));
    return train::write_torch_csv(lowered);
  }
  // A unit is a millisecond, so that a viewer shows it well.
  train::ScheduleCosts costs;
  costs.stages.assign(list.stages(), {Seconds(1e-3), Seconds(1e-3), Seconds(1e-3)});
  TESSERA_TRY(const train::ScheduleTimes times, train::time_schedule(list, costs));
  return train::schedule_trace(list, times);
}

void add_schedules(CLI::App& app, Common& common, Outcome& outcome) {
  CLI::App* command =
      app.add_subcommand("schedules", "Compare every schedule template: time, both bubbles, memory.");
  command->footer("Example: tessera schedules -p 4 -v 2 -m 12");
  auto arguments = std::make_shared<SchedulesArguments>();
  command->add_option("-p,--pp", arguments->pp, "pipeline ranks")->required();
  command->add_option("-v,--vp", arguments->vp, "chunks per rank, where the template leaves it open")
      ->capture_default_str();
  command->add_option("-m,--microbatches", arguments->microbatches, "microbatches per step")->required();
  command->add_option("-n,--group", arguments->group, "microbatches per group of the interleaved templates");
  command->add_option("--forward", arguments->forward, "time of one chunk's forward")->capture_default_str();
  command->add_option("--input-gradient", arguments->input_gradient, "of its input gradient")
      ->capture_default_str();
  command->add_option("--weight-gradient", arguments->weight_gradient, "of its weight gradients")
      ->capture_default_str();
  command->add_option("--transfer", arguments->transfer, "of an activation between ranks")
      ->capture_default_str();
  command->add_option("--pair-share", arguments->pair_share, "time of a pair over that of its halves in turn")
      ->capture_default_str();
  command->add_flag("--json", common.json, "print JSON");
  command->callback([arguments, &common, &outcome] { outcome = run(*arguments, common); });
}

}  // namespace tessera::apps
