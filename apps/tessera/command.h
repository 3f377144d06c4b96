// The commands of `tessera`: each declares its arguments and says what to run. No logic lives here.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/core/base/text.h"
#include "tessera/train/execution_plan/execution_plan.h"
#include "tessera/train/planner/job.h"

namespace tessera::apps {

/// What a command returns when it did not fail: 0, or 1 for "no" (infeasible, a check failed).
using Outcome = Result<int>;

/// Options every command has.
struct Common {
  bool json = false;
};

void add_import(CLI::App& app, Common& common, Outcome& outcome);
void add_plan(CLI::App& app, Common& common, Outcome& outcome);
void add_pair(CLI::App& app, Common& common, Outcome& outcome);
void add_simulate(CLI::App& app, Common& common, Outcome& outcome);
void add_check(CLI::App& app, Common& common, Outcome& outcome);
void add_profile(CLI::App& app, Common& common, Outcome& outcome);
void add_export(CLI::App& app, Common& common, Outcome& outcome);
void add_schedules(CLI::App& app, Common& common, Outcome& outcome);

/// Flags that stand over a job file: --set KEY=VALUE and the usual sizes by name.
class JobFlags {
 public:
  /// With `letters` the sizes of a schedule have one-letter names too: -p, -v, -m and -n.
  void declare(CLI::App& command, bool letters = false);
  [[nodiscard]] Result<std::vector<train::JobOverride>> overrides() const;

 private:
  struct Named {
    std::string key;
    std::string value;
  };
  std::vector<std::unique_ptr<Named>> named_;
  std::vector<std::string> set_;
};

/// The plan in a plan file, or the one that a job file makes; `check` false leaves a plan file's check to the
/// caller.
[[nodiscard]] Result<train::ExecutionPlan> load_plan(const std::string& path, const JobFlags& flags,
                                                     bool check = true);

/// Is the file a schedule in CSV, by its name?
[[nodiscard]] bool is_schedule_file(const std::string& path);
/// `tessera import --schedule` and `tessera check` of a schedule in CSV; `as_torch` gives torch's verdict.
[[nodiscard]] Outcome import_schedule(const std::string& path, const Common& common);
/// `placement` is "loop", "v" or empty: where the program that runs it has its stages.
[[nodiscard]] Outcome check_schedule_file(const std::string& path, bool as_torch,
                                          const std::string& placement, const Common& common);
/// The text that `tessera export --template` writes, from the flags' template and sizes.
[[nodiscard]] Result<std::string> export_template(const std::vector<train::JobOverride>& flags,
                                                  const std::string& target);

/// Writes the files, unless one of them is an input or another output.
[[nodiscard]] Status write_outputs(const std::vector<FileToWrite>& files,
                                   const std::vector<std::string>& inputs);

void print(const std::string& text);
[[nodiscard]] bool color_terminal();

}  // namespace tessera::apps
