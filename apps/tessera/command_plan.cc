#include <fmt/format.h>

#include "command.h"
#include "tessera/core/base/text.h"
#include "tessera/train/execution_plan/plan_file.h"
#include "tessera/train/explain/explain.h"
#include "tessera/train/planner/plan.h"
#include "tessera/train/planner/to_measure.h"
#include "tessera/train/simulate/simulation_trace.h"

namespace tessera::apps {

namespace {

struct PlanArguments {
  std::string job;
  std::string output = "plan.yaml";
  std::string trace = "plan.trace.json";
  bool no_trace = false;
  bool ignore_memory = false;
  bool to_measure = false;
  std::string profile;
  JobFlags flags;
};

Outcome run(const PlanArguments& arguments, const Common& common) {
  TESSERA_TRY(const auto overrides, arguments.flags.overrides());
  TESSERA_TRY(train::Job job, train::read_job_file(arguments.job, overrides));
  if (!arguments.profile.empty()) job.profile_file = arguments.profile;
  if (arguments.to_measure) {
    TESSERA_TRY(const train::MeasureReport report, train::pairs_to_measure(job));
    print(common.json ? train::measure_json(report) : train::measure_text(report));
    return 0;
  }
  TESSERA_TRY(const train::PlanReport report, train::make_plan(job, {.slices = !arguments.no_trace}));
  const bool write = report.usable || arguments.ignore_memory;
  if (write) {
    const std::string plan = train::write_plan(report.plan);
    const std::string trace = arguments.no_trace ? "" : train::chrome_trace(report.plan, report.simulated);
    std::vector<FileToWrite> files{{arguments.output, plan}};
    if (!arguments.no_trace) files.push_back({arguments.trace, trace});
    std::vector<std::string> inputs{arguments.job, job.model_file};
    if (!job.profile_file.empty()) inputs.push_back(job.profile_file);
    TESSERA_CHECK(write_outputs(files, inputs));
  }
  print(common.json ? train::plan_json(report, job)
                    : train::plan_text(report, job, {.color = color_terminal()}));
  if (!write) {
    if (!common.json)
      print("\nwrote nothing: the plan does not fit (--ignore-memory writes it all the same)\n");
    return 1;
  }
  if (!common.json)
    print(fmt::format("\nwrote {}{}   next: tessera simulate {} · tessera export {} --to megatron\n",
                      arguments.output, arguments.no_trace ? "" : ", " + arguments.trace, arguments.output,
                      arguments.output));
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, Common& common, Outcome& outcome) {
  CLI::App* command =
      app.add_subcommand("plan", "Plan a training job: partition, interleaving, predicted time and memory.");
  command->footer("Example: tessera plan examples/qwen3-next-80b.yaml --microbatches 128");
  auto arguments = std::make_shared<PlanArguments>();
  command->add_option("JOB", arguments->job, "job file (docs/job-file.md)")->required();
  CLI::Option* output =
      command->add_option("-o,--output", arguments->output, "plan file to write")->capture_default_str();
  CLI::Option* trace =
      command->add_option("--trace", arguments->trace, "Chrome trace to write, for ui.perfetto.dev")
          ->capture_default_str();
  command->add_flag("--no-trace", arguments->no_trace, "write no trace");
  command->add_flag("--ignore-memory", arguments->ignore_memory,
                    "write the plan even when it does not fit the device");
  command->add_option("--profile", arguments->profile,
                      "profile database with measured pairs (docs/profile.md)");
  command
      ->add_flag("--to-measure", arguments->to_measure,
                 "print which pairs are worth measuring; write no plan")
      ->excludes(output)
      ->excludes(trace);
  command->add_flag("--json", common.json, "print JSON");
  arguments->flags.declare(*command);
  command->callback([arguments, &common, &outcome] { outcome = run(*arguments, common); });
}

}  // namespace tessera::apps
