#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "command.h"
#include "tessera/train/execution_plan/plan_file.h"
#include "tessera/train/planner/plan.h"

namespace tessera::apps {

void JobFlags::declare(CLI::App& command, bool letters) {
  constexpr std::array<std::array<const char*, 3>, 15> flags{{
      {"--gpus", "cluster.gpus", "number of GPUs"},
      {"--gpu", "cluster.preset", "GPU preset, such as H100"},
      {"--tp", "layout.tp", "tensor parallel"},
      {"--pp", "layout.pp", "pipeline parallel"},
      {"--vp", "layout.vp", "virtual stages per rank"},
      {"--ep", "layout.ep", "expert parallel"},
      {"--etp", "layout.etp", "tensor parallel inside an expert"},
      {"--cp", "layout.cp", "context parallel"},
      {"--dp", "layout.dp", "data parallel"},
      {"--microbatches", "layout.microbatches", "microbatches per pipeline and step"},
      {"--global-batch", "layout.global_batch", "sequences per step, instead"},
      {"--microbatch-size", "layout.microbatch_size", "sequences per microbatch"},
      {"--sequence", "layout.sequence", "tokens per sequence"},
      {"--template", "schedule.template", "schedule, such as 1f1b, interleaved or zb-v"},
      {"--group", "schedule.group", "microbatches per group of the interleaved templates"},
  }};
  for (const auto& [flag, key, help] : flags) {
    named_.push_back(std::make_unique<Named>(Named{.key = key, .value = {}}));
    const std::string_view key_of(key);
    const std::string_view letter = !letters                          ? ""
                                    : key_of == "layout.pp"           ? "-p,"
                                    : key_of == "layout.vp"           ? "-v,"
                                    : key_of == "layout.microbatches" ? "-m,"
                                    : key_of == "schedule.group"      ? "-n,"
                                                                      : "";
    command.add_option(std::string(letter) + flag, named_.back()->value, help)->group("Over the job file");
  }
  command.add_option("--set", set_, "any key, as in --set layout.dtype=fp8")
      ->group("Over the job file")
      ->allow_extra_args(false);
}

Result<std::vector<train::JobOverride>> JobFlags::overrides() const {
  std::vector<train::JobOverride> out;
  for (const auto& named : named_)
    if (!named->value.empty()) out.push_back({named->key, named->value});
  for (const std::string& pair : set_) {
    const auto equals = pair.find('=');
    if (equals == std::string::npos || equals == 0)
      return bad_input(fmt::format("--set {}: expected KEY=VALUE", pair),
                       "For example --set layout.dtype=fp8.");
    out.push_back({pair.substr(0, equals), pair.substr(equals + 1)});
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (out[i].key == out[k].key)
        return bad_input(fmt::format("{} is given twice: {} and {}", out[i].key, out[k].value, out[i].value),
                         "Keep one.");
  // Two ways to say the batch: the one given here takes the place of the one in the file.
  const auto given = [&](std::string_view key) {
    return std::ranges::find(out, key, &train::JobOverride::key) != out.end();
  };
  const bool count = given("layout.microbatches");
  const bool batch = given("layout.global_batch");
  if (count && !batch) out.push_back({"layout.global_batch", "null"});
  if (batch && !count) out.push_back({"layout.microbatches", "null"});
  return out;
}

Result<train::ExecutionPlan> load_plan(const std::string& path, const JobFlags& flags, bool check) {
  TESSERA_TRY(const auto overrides, flags.overrides());
  TESSERA_TRY(const Document document, Document::read(path));
  if (!document.root().find("tessera_plan")) {
    TESSERA_TRY(const train::Job job, train::read_job_file(path, overrides));
    TESSERA_TRY(train::PlanReport report, train::make_plan(job, {.slices = false, .baselines = false}));
    return std::move(report.plan);
  }
  if (!overrides.empty())
    return bad_input(fmt::format("{}: a plan is fixed; flags stand over a job file only", path),
                     "Plan the job again with these flags.");
  return check ? train::read_plan(document.root()) : train::parse_plan(document.root());
}

Status write_outputs(const std::vector<FileToWrite>& files, const std::vector<std::string>& inputs) {
  namespace fs = std::filesystem;
  const auto same = [](const std::string& a, const std::string& b) {
    std::error_code failure;
    return fs::equivalent(a, b, failure) ||
           fs::weakly_canonical(fs::absolute(a), failure) == fs::weakly_canonical(fs::absolute(b), failure);
  };
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const std::string& input : inputs)
      if (same(files[i].path, input))
        return bad_input(fmt::format("{}: would overwrite the input {}", files[i].path, input),
                         "Give another name.");
    for (std::size_t k = 0; k < i; ++k)
      if (same(files[i].path, files[k].path))
        return bad_input(fmt::format("{}: two outputs have the same name", files[i].path),
                         "Give another name.");
  }
  return write_files(files);
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

bool color_terminal() {
  return isatty(STDOUT_FILENO) == 1;
}

}  // namespace tessera::apps
