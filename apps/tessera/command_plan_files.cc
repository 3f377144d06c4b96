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
  std::string as;
  std::string placement;
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
  if (is_schedule_file(arguments.file)) {
    TESSERA_TRY(const auto overrides, arguments.flags.overrides());
    if (!overrides.empty())
      return bad_input(
          fmt::format("{}: flags stand over a job file only, not over a schedule", arguments.file));
    return check_schedule_file(arguments.file, arguments.as == "torch", arguments.placement, common);
  }
  if (!arguments.placement.empty())
    return bad_input(fmt::format("--placement {}: expected a schedule in CSV, found {}", arguments.placement,
                                 arguments.file));
  if (!arguments.as.empty())
    return bad_input(
        fmt::format("--as {}: expected a schedule in CSV, found {}", arguments.as, arguments.file));
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

// A name beside the output file; for standard output, one that the reader can take.
std::string csv_beside(const std::string& output) {
  const std::size_t slash = output.rfind('/');
  const std::size_t dot = output.rfind('.');
  if (output.empty() || output == "-") return "schedule.csv";
  return output.substr(0, dot == std::string::npos || (slash != std::string::npos && dot < slash)
                              ? output.size()
                              : dot) +
         ".csv";
}

Result<std::string> exported(const train::ExecutionPlan& plan, const FileArguments& arguments) {
  if (arguments.chrome || arguments.target == "chrome") {
    TESSERA_TRY(const train::SimulateResult result, train::simulate(plan, {.slices = true}));
    return train::chrome_trace(plan, result);
  }
  if (arguments.target == "torch-csv") return train::torch_csv(plan, train::CsvForm::compute_only);
  if (arguments.target == "torch-csv-comms") return train::torch_csv(plan, train::CsvForm::compute_comms);
  if (arguments.target == "torchtitan") return train::torchtitan_settings(plan, csv_beside(arguments.output));
  TESSERA_TRY(std::string layout, train::megatron_layout(plan));
  return layout + "\n";
}

Outcome export_file(const FileArguments& arguments, const Common&) {
  std::vector<FileToWrite> files;
  std::vector<std::string> inputs;
  std::string text, order;
  if (arguments.file.empty()) {
    TESSERA_TRY(const auto flags, arguments.flags.overrides());
    TESSERA_TRY(text, export_template(flags, arguments.chrome ? "chrome" : arguments.target));
  } else {
    TESSERA_TRY(const train::ExecutionPlan plan, load_plan(arguments.file, arguments.flags));
    TESSERA_TRY(text, exported(plan, arguments));
    inputs.push_back(arguments.file);
    // torchtitan's settings name the file with the order, so both are written.
    if (arguments.target == "torchtitan" && !arguments.chrome) {
      TESSERA_TRY(order, train::torch_csv(plan, train::CsvForm::compute_only));
    }
  }
  if (arguments.output.empty() || arguments.output == "-") {
    print(text);
    return 0;
  }
  files.push_back({arguments.output, text});
  const std::string csv = csv_beside(arguments.output);
  if (!order.empty()) files.push_back({csv, order});
  TESSERA_CHECK(write_outputs(files, inputs));
  print(order.empty() ? fmt::format("wrote {}\n", arguments.output)
                      : fmt::format("wrote {}, {}\n", arguments.output, csv));
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
      "check", "Check a plan, a job or a schedule: complete, in order, free of deadlock, within memory.");
  command->footer(
      "Example: tessera check plan.yaml\n         tessera check schedule.csv\nExit code 1 when the check "
      "fails.");
  auto arguments = std::make_shared<FileArguments>();
  command->add_option("FILE", arguments->file, "plan file, job file, or schedule of torch (.csv)")
      ->required();
  command->add_option("--as", arguments->as, "torch: what torch's own loader says of a schedule")
      ->check(CLI::IsMember({"torch"}));
  command
      ->add_option(
          "--placement", arguments->placement,
          "where the program that runs a schedule has its stages: in a loop over the ranks or in a v")
      ->check(CLI::IsMember({"loop", "v"}));
  command->add_flag("--json", common.json, "print JSON");
  arguments->flags.declare(*command);
  command->callback([arguments, &common, &outcome] { outcome = check_file(*arguments, common); });
}

void add_export(CLI::App& app, Common& common, Outcome& outcome) {
  CLI::App* command =
      app.add_subcommand("export", "Write a plan, or a schedule template, in another program's format.");
  command->footer(
      "Example: tessera export plan.yaml --chrome -o plan.trace.json\n         tessera export plan.yaml --to "
      "megatron\n         tessera export --template interleaved -p 4 -v 2 -m 8 --to torch-csv");
  auto arguments = std::make_shared<FileArguments>();
  command->add_option("FILE", arguments->file, "plan file, or a job file; none with --template");
  command
      ->add_option(
          "--to", arguments->target,
          "chrome (trace for Perfetto), megatron (pipeline layout string; flags of a template), torch-csv, "
          "torch-csv-comms (with communication) or torchtitan (settings, and the order beside them)")
      ->check(CLI::IsMember({"chrome", "megatron", "torch-csv", "torch-csv-comms", "torchtitan"}))
      ->capture_default_str();
  command->add_flag("--chrome", arguments->chrome, "the same as --to chrome");
  command->add_option("-o,--output", arguments->output, "file to write; standard output without it");
  arguments->flags.declare(*command, true);
  command->callback([arguments, &common, &outcome] { outcome = export_file(*arguments, common); });
}

}  // namespace tessera::apps
