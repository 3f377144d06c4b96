#include <cstdio>

#include "command.h"

namespace {

int report(const tessera::Error& error) {
  const std::string text = error.text() + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
  return error.kind == tessera::ErrorKind::bad_input ? 2 : 1;
}

bool has_command(CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands({}))
    if (command->get_name() == name) return true;
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Tessera plans pipeline-parallel training of Mixture-of-Experts models.", "tessera"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "tessera 0.1.0");
  app.footer(
      "Exit codes: 0 ok, 1 infeasible or check failed, 2 bad input.\nEach command has --help with an "
      "example.");
  tessera::apps::Common common;
  tessera::apps::Outcome outcome = 0;
  tessera::apps::add_import(app, common, outcome);
  tessera::apps::add_plan(app, common, outcome);
  tessera::apps::add_pair(app, common, outcome);
  tessera::apps::add_simulate(app, common, outcome);
  tessera::apps::add_check(app, common, outcome);
  tessera::apps::add_export(app, common, outcome);
  tessera::apps::add_schedules(app, common, outcome);
  tessera::apps::add_profile(app, common, outcome);
  // The parser itself only says that a command is missing.
  if (argc > 1 && argv[1][0] != '-' && !has_command(app, argv[1]))
    return report(tessera::Error{
        .message = std::string("there is no command ") + argv[1],
        .hint = "Commands are import, plan, pair, simulate, check, export, schedules and profile."});
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& failure) {
    const int code = app.exit(failure);
    return code == 0 ? 0 : 2;
  }
  if (!outcome) return report(outcome.error());
  // Output that did not arrive is a failure, as on a full disk.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return report(tessera::Error{.kind = tessera::ErrorKind::infeasible,
                                 .message = "standard output cannot be written"});
  return *outcome;
}
