#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "command.h"
#include "tessera/core/base/text.h"

namespace tessera::apps {

void JobFlags::declare(CLI::App& command) {
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
      {"--template", "schedule.template", "1f1b, interleaved or interleaved-overlap"},
      {"--group", "schedule.group", "microbatches per group of the interleaved templates"},
  }};
  for (const auto& [flag, key, help] : flags) {
    named_.push_back(std::make_unique<Named>(Named{.key = key, .value = {}}));
    command.add_option(flag, named_.back()->value, help)->group("Over the job file");
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

Result<Input> read_input(const std::string& path) {
  TESSERA_TRY(Document document, Document::read(path));
  const bool is_plan = document.root().find("tessera_plan").has_value();
  return Input{.document = std::move(document), .is_plan = is_plan};
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

bool color_terminal() {
  return isatty(STDOUT_FILENO) == 1;
}

}  // namespace tessera::apps
