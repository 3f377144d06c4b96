#include "command.h"
#include "tessera/core/model/import.h"
#include "tessera/train/explain/explain.h"

namespace tessera::apps {

void add_import(CLI::App& app, Common& common, Outcome& outcome) {
  CLI::App* command =
      app.add_subcommand("import", "Read a model and count its layers and parameters, or read a schedule.");
  command->footer(
      "Example: tessera import data/models/Qwen3-Next-80B-A3B.json\n         tessera import --schedule "
      "schedule.csv");
  auto path = std::make_shared<std::string>();
  auto schedule = std::make_shared<bool>(false);
  command->add_option("FILE", *path, "a Hugging Face config.json, native YAML, or a schedule")->required();
  command->add_flag("--schedule", *schedule, "FILE is a schedule of torch.distributed.pipelining (CSV)");
  command->add_flag("--json", common.json, "print JSON");
  command->callback([path, schedule, &common, &outcome] {
    if (*schedule) {
      outcome = import_schedule(*path, common);
      return;
    }
    auto model = import_model_file(*path);
    if (!model) {
      outcome = std::unexpected(model.error());
      return;
    }
    print(common.json ? train::model_json(*model) : train::model_text(*model, {.color = color_terminal()}));
  });
}

}  // namespace tessera::apps
