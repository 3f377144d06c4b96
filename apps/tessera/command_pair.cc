#include <fmt/format.h>

#include <limits>

#include "command.h"
#include "tessera/train/explain/explain.h"
#include "tessera/train/planner/pair_report.h"

namespace tessera::apps {

namespace {

struct PairArguments {
  std::string file;
  std::string forward, backward;
  bool ilp = false;
  std::string time_limit = "60";
  std::string pool_credit = "0";
  std::string labels = "20000000";
  std::string width = "100";
  JobFlags flags;
};

Result<std::int64_t> integer(std::string_view flag, const std::string& text, std::int64_t least,
                             std::int64_t most, std::string hint) {
  const auto value = to_integer(text);
  if (!value || *value < least || *value > most)
    return bad_input(
        fmt::format("{} {}: expected a whole number{}", flag, text,
                    most == std::numeric_limits<std::int64_t>::max() ? fmt::format(", at least {}", least)
                                                                     : fmt::format(", {} … {}", least, most)),
        std::move(hint));
  return *value;
}

Result<StageId> stage(std::string_view flag, const std::string& text, std::size_t stages) {
  TESSERA_TRY(const std::int64_t value,
              integer(flag, text, 0, static_cast<std::int64_t>(stages) - 1,
                      fmt::format("It names one of the {} stages (PP × VP), in model order from 0; tessera "
                                  "plan lists what each holds.",
                                  stages)));
  return StageId(value);
}

Result<double> number(std::string_view flag, const std::string& text, std::string_view unit, bool zero) {
  const auto value = to_number(text);
  if (!value || *value < 0 || (*value == 0 && !zero))
    return bad_input(fmt::format("{} {}: expected {}, {}", flag, text, unit, zero ? "0 or more" : "above 0"));
  return *value;
}

Outcome run(const PairArguments& arguments, const Common& common) {
  TESSERA_TRY(const std::int64_t columns,
              integer("--width", arguments.width, train::kLeastColumns, train::kMostColumns, ""));
  train::PairReportOptions options{.ilp = arguments.ilp};
  TESSERA_TRY(const double seconds, number("--time-limit", arguments.time_limit, "seconds", false));
  TESSERA_TRY(const double credit, number("--pool-credit", arguments.pool_credit, "milliseconds", true));
  TESSERA_TRY(options.labels,
              integer("--labels", arguments.labels, 1, std::numeric_limits<std::int64_t>::max(), ""));
  options.ilp_time_limit = Seconds(seconds);
  options.pool_credit = Seconds(credit / 1e3);
  TESSERA_TRY(const train::ExecutionPlan plan, load_plan(arguments.file, arguments.flags));
  const std::size_t stages = plan.partition.stages.size();
  TESSERA_TRY(const StageId forward, stage("--forward", arguments.forward, stages));
  TESSERA_TRY(const StageId backward, stage("--backward", arguments.backward, stages));
  TESSERA_TRY(const train::PairReport report, train::report_pair(plan, forward, backward, options));
  print(common.json ? train::pair_json(report)
                    : train::pair_text(
                          report, {.columns = static_cast<std::size_t>(columns), .labels = options.labels}));
  return 0;
}

}  // namespace

void add_pair(CLI::App& app, Common& common, Outcome& outcome) {
  CLI::App* command = app.add_subcommand(
      "pair", "Interleave one forward with one backward stage: the optimum, and why it is no shorter.");
  command->footer("Example: tessera pair examples/qwen3-next-80b.yaml --forward 3 --backward 11");
  auto arguments = std::make_shared<PairArguments>();
  command->add_option("FILE", arguments->file, "plan file, or a job file")->required();
  command->add_option("--forward", arguments->forward, "stage whose forward runs, from 0")->required();
  command->add_option("--backward", arguments->backward, "stage whose backward runs beside it")->required();
  command->add_flag("--ilp", arguments->ilp, "solve it by a MILP on HiGHS too");
  command->add_option("--time-limit", arguments->time_limit, "seconds for the MILP")->capture_default_str();
  command->add_option("--labels", arguments->labels, "labels the exact search may make")
      ->capture_default_str();
  command
      ->add_option("--pool-credit", arguments->pool_credit,
                   "milliseconds of weight gradients that may be left to the pool")
      ->capture_default_str();
  command->add_option("--width", arguments->width, "columns of the chart")->capture_default_str();
  command->add_flag("--json", common.json, "print JSON");
  arguments->flags.declare(*command);
  command->callback([arguments, &common, &outcome] { outcome = run(*arguments, common); });
}

}  // namespace tessera::apps
