#include <fmt/format.h>

#include <filesystem>

#include "command.h"
#include "tessera/core/base/text.h"
#include "tessera/train/execution_plan/plan_file.h"
#include "tessera/train/explain/explain.h"
#include "tessera/train/planner/plan.h"
#include "tessera/train/schedule/check_schedule.h"
#include "tessera/train/schedule/megatron_layout.h"
#include "tessera/train/simulate/simulate.h"
#include "tessera/train/simulate/simulation_trace.h"

namespace tessera::apps {

namespace {

// The plan in the file, or the one its job makes.
Result<train::ExecutionPlan> load(const std::string& path) {
  TESSERA_TRY(const Input input, read_input(path));
  if (input.is_plan) return train::read_plan(input.document.root());
  TESSERA_TRY(const train::Job job,
              train::read_job(input.document, std::filesystem::path(path).parent_path().string()));
  TESSERA_TRY(train::PlanReport report, train::make_plan(job, {.slices = false, .baselines = false}));
  return std::move(report.plan);
}

Outcome simulate_file(const std::string& path, const Common& common) {
  TESSERA_TRY(const train::ExecutionPlan plan, load(path));
  TESSERA_TRY(const train::SimulateResult result, train::simulate(plan));
  print(common.json ? train::simulation_json(plan, result)
                    : train::simulation_text(plan, result, {.color = color_terminal()}));
  return 0;
}

Outcome check_file(const std::string& path, const Common& common) {
  TESSERA_TRY(const Input input, read_input(path));
  Result<train::ExecutionPlan> plan = bad_input("");
  if (input.is_plan) {
    plan = train::parse_plan(input.document.root());
    if (!plan) return std::unexpected(plan.error());
    if (auto sound = train::check_plan(*plan); !sound) {
      Error error = std::move(sound).error();
      error.kind = ErrorKind::infeasible;
      error.file = path;
      const std::string_view key = error.key;
      if (const auto section = input.document.root().find(key.substr(0, key.find_first_of(".["))))
        error.line = section->line();
      return std::unexpected(std::move(error));
    }
  } else {
    plan = load(path);
    if (!plan) return std::unexpected(plan.error());
  }
  TESSERA_TRY(const train::ScheduleFacts facts, train::check_schedule(plan->actions));
  std::string peaks;
  for (const std::int32_t peak : facts.peak_live)
    peaks += fmt::format("{}{}", peaks.empty() ? "" : ", ", peak);
  if (common.json) {
    print(fmt::format(
        "{{\"ok\": true, \"actions\": {}, \"stages\": {}, \"ranks\": {}, \"pairs\": {}, \"peak_live\": "
        "[{}]}}\n",
        facts.actions, plan->actions.stages(), plan->actions.ranks.size(), plan->pairs.size(), peaks));
  } else {
    print(fmt::format(
        "{}: sound\n  {} actions on {} ranks, every stage and microbatch forward and backward once, no "
        "deadlock under "
        "eager sends\n  {} overlapped pairs, each a legal order of its tasks\n  live chunk activations at "
        "most {} (per "
        "rank)\n",
        path, with_thousands(facts.actions), plan->actions.ranks.size(), plan->pairs.size(), peaks));
  }
  return 0;
}

struct ExportArguments {
  std::string file;
  std::string target = "chrome";
  std::string output;
  bool chrome = false;
};

// The letters of the blocks are all the layout string needs.
Result<std::string> megatron_string(const train::ExecutionPlan& plan) {
  ModelSpec model;
  for (const train::PlanBlock& block : plan.blocks)
    model.blocks.push_back({.kind = block.kind, .layer = block.layer});
  return train::write_megatron_layout(model, plan.partition, plan.layout.pp);
}

Outcome export_file(const ExportArguments& arguments, const Common&) {
  TESSERA_TRY(const train::ExecutionPlan plan, load(arguments.file));
  const std::string target = arguments.chrome ? "chrome" : arguments.target;
  std::string text;
  if (target == "chrome") {
    TESSERA_TRY(const train::SimulateResult result, train::simulate(plan, {.slices = true}));
    text = train::chrome_trace(plan, result);
  } else {
    TESSERA_TRY(const std::string layout, megatron_string(plan));
    text = layout + "\n";
  }
  if (arguments.output.empty() || arguments.output == "-") {
    print(text);
  } else {
    TESSERA_CHECK(write_file(arguments.output, text));
    print(fmt::format("wrote {}\n", arguments.output));
  }
  return 0;
}

}  // namespace

void add_simulate(CLI::App& app, Common& common, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("simulate", "Simulate one training step of a plan.");
  command->footer("Example: tessera simulate plan.yaml");
  auto path = std::make_shared<std::string>();
  command->add_option("FILE", *path, "plan file, or a job file")->required();
  command->add_flag("--json", common.json, "print JSON");
  command->callback([path, &common, &outcome] { outcome = simulate_file(*path, common); });
}

void add_check(CLI::App& app, Common& common, Outcome& outcome) {
  CLI::App* command =
      app.add_subcommand("check", "Check a plan or a job: complete, in order, free of deadlock.");
  command->footer("Example: tessera check plan.yaml\nExit code 1 when the check fails.");
  auto path = std::make_shared<std::string>();
  command->add_option("FILE", *path, "plan file, or a job file")->required();
  command->add_flag("--json", common.json, "print JSON");
  command->callback([path, &common, &outcome] { outcome = check_file(*path, common); });
}

void add_export(CLI::App& app, Common& common, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("export", "Write a plan in another program's format.");
  command->footer(
      "Example: tessera export plan.yaml --chrome -o plan.trace.json\n         tessera export plan.yaml --to "
      "megatron");
  auto arguments = std::make_shared<ExportArguments>();
  command->add_option("FILE", arguments->file, "plan file, or a job file")->required();
  command
      ->add_option("--to", arguments->target,
                   "chrome (trace for Perfetto) or megatron (pipeline layout string)")
      ->check(CLI::IsMember({"chrome", "megatron"}))
      ->capture_default_str();
  command->add_flag("--chrome", arguments->chrome, "the same as --to chrome");
  command->add_option("-o,--output", arguments->output, "file to write; standard output without it");
  command->callback([arguments, &common, &outcome] { outcome = export_file(*arguments, common); });
}

}  // namespace tessera::apps
