#include <fmt/format.h>

#include "command.h"
#include "tessera/core/cost/profile_database.h"
#include "tessera/core/cost/profile_file.h"
#include "tessera/train/explain/explain.h"

namespace tessera::apps {

namespace {

struct ProfileArguments {
  std::string database;
  std::string file;
};

Outcome list(const ProfileArguments& arguments, const Common& common) {
  TESSERA_TRY(const ProfileDatabase database, ProfileDatabase::open(arguments.database, ProfileAccess::read));
  TESSERA_TRY(const std::vector<ProfileCell> cells, database.cells());
  print(common.json ? train::profile_json(cells) : train::profile_text(cells));
  return 0;
}

Outcome add(const ProfileArguments& arguments, const Common& common) {
  TESSERA_TRY(const Document document, Document::read(arguments.file));
  TESSERA_TRY(const std::vector<ProfileCell> cells, read_profile_cells(document.root()));
  TESSERA_TRY(ProfileDatabase database, ProfileDatabase::open(arguments.database, ProfileAccess::write));
  TESSERA_TRY(const ProfileAdded added, database.add(cells));
  if (common.json) {
    print(fmt::format("{{\"added\": {}, \"replaced\": {}}}\n", added.fresh, added.replaced));
  } else {
    print(fmt::format("{}: {} values added, {} replaced\n", arguments.database, added.fresh, added.replaced));
  }
  return 0;
}

}  // namespace

void add_profile(CLI::App& app, Common& common, Outcome& outcome) {
  CLI::App* profile =
      app.add_subcommand("profile", "Keep measured times of overlapped pairs in a profile database.");
  profile->footer(
      "Example: tessera profile add profile.db cells.yaml\n         tessera plan "
      "examples/qwen3-next-80b.yaml --profile profile.db");
  profile->require_subcommand(1);
  auto arguments = std::make_shared<ProfileArguments>();

  CLI::App* listing = profile->add_subcommand("list", "Print what a profile database holds.");
  listing->footer("Example: tessera profile list profile.db");
  listing->add_option("DB", arguments->database, "profile database")->required();
  listing->add_flag("--json", common.json, "print JSON, in the form that profile add reads");
  listing->callback([arguments, &common, &outcome] { outcome = list(*arguments, common); });

  CLI::App* adding = profile->add_subcommand(
      "add", "Add measured values; one of the same pair and source takes the place of the old one.");
  adding->footer("Example: tessera profile add profile.db cells.yaml");
  adding->add_option("DB", arguments->database, "profile database, made when it is not there")->required();
  adding->add_option("FILE", arguments->file, "list of values, JSON or YAML (docs/profile.md)")->required();
  adding->add_flag("--json", common.json, "print JSON");
  adding->callback([arguments, &common, &outcome] { outcome = add(*arguments, common); });
}

}  // namespace tessera::apps
