#include <fmt/format.h>

#include "command.h"
#include "tessera/train/execution_plan/export.h"
#include "tessera/train/explain/explain.h"
#include "tessera/train/simulate/audit.h"
#include "tessera/train/simulate/simulate.h"
#include "tessera/train/simulate/simulation_trace.h"

namespace tessera::apps {

namespace {

struct FileArguments {
  std::string file;
  std::string target = "chrome";
  std::string output;
  bool chrome = false;
  JobFlags flags;
};

Outcome simulate_file(const FileArguments& arguments, const Common& common) {
  TESSERA_TRY(const train::ExecutionPlan plan, load_plan(arguments.file, arguments.flags));
  TESSERA_TRY(const train::SimulateResult result, train::simulate(plan));
  print(common.json ? train::simulation_json(plan, result)
                    : train::simulation_text(plan, result, {.color = color_terminal()}));
  return 0;
}

Outcome check_file(const FileArguments& arguments, const Common& common) {
  TESSERA_TRY(const train::ExecutionPlan plan, load_plan(arguments.file, arguments.flags, false));
  auto audit = train::audit_plan(plan);
  if (!audit) {
    Error error = std::move(audit).error();
    error.file = arguments.file;
    return std::unexpected(std::move(error));
  }
  print(common.json ? train::audit_json(plan, *audit) : train::audit_text(arguments.file, plan, *audit));
  return 0;
}

Outcome export_file(const FileArguments& arguments, const Common&) {
  TESSERA_TRY(const train::ExecutionPlan plan, load_plan(arguments.file, arguments.flags));
  std::string text;
  if (arguments.chrome || arguments.target == "chrome") {
    TESSERA_TRY(const train::SimulateResult result, train::simulate(plan, {.slices = true}));
    text = train::chrome_trace(plan, result);
  } else {
    TESSERA_TRY(text, train::megatron_layout(plan));
    text += "\n";
  }
  if (arguments.output.empty() || arguments.output == "-") {
    print(text);
    return 0;
  }
  TESSERA_CHECK(write_outputs({{arguments.output, text}}, {arguments.file}));
  print(fmt::format("wrote {}\n", arguments.output));
  return 0;
}

}  // namespace

void add_simulate(CLI::App& app, Common& common, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("simulate", "Simulate one training step of a plan.");
  command->footer("Example: tessera simulate plan.yaml");
  auto arguments = std::make_shared<FileArguments>();
  command->add_option("FILE", arguments->file, "plan file, or a job file")->required();
  command->add_flag("--json", common.json, "print JSON");
  arguments->flags.declare(*command);
  command->callback([arguments, &common, &outcome] { outcome = simulate_file(*arguments, common); });
}

void add_check(CLI::App& app, Common& common, Outcome& outcome) {
  CLI::App* command = app.add_subcommand(
      "check", "Check a plan or a job: complete, in order, free of deadlock, within memory.");
  command->footer("Example: tessera check plan.yaml\nExit code 1 when the check fails.");
  auto arguments = std::make_shared<FileArguments>();
  command->add_option("FILE", arguments->file, "plan file, or a job file")->required();
  command->add_flag("--json", common.json, "print JSON");
  arguments->flags.declare(*command);
  command->callback([arguments, &common, &outcome] { outcome = check_file(*arguments, common); });
}

void add_export(CLI::App& app, Common& common, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("export", "Write a plan in another program's format.");
  command->footer(
      "Example: tessera export plan.yaml --chrome -o plan.trace.json\n         tessera export plan.yaml --to "
      "megatron");
  auto arguments = std::make_shared<FileArguments>();
  command->add_option("FILE", arguments->file, "plan file, or a job file")->required();
  command
      ->add_option("--to", arguments->target,
                   "chrome (trace for Perfetto) or megatron (pipeline layout string)")
      ->check(CLI::IsMember({"chrome", "megatron"}))
      ->capture_default_str();
  command->add_flag("--chrome", arguments->chrome, "the same as --to chrome");
  command->add_option("-o,--output", arguments->output, "file to write; standard output without it");
  arguments->flags.declare(*command);
  command->callback([arguments, &common, &outcome] { outcome = export_file(*arguments, common); });
}

}  // namespace tessera::apps
