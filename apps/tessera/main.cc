#include <unistd.h>

#include <cstdio>

#include "command.h"

namespace {

int report(const tessera::Error& error) {
  const std::string text = error.text() + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
  return error.kind == tessera::ErrorKind::bad_input ? 2 : 1;
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
  tessera::apps::add_simulate(app, common, outcome);
  tessera::apps::add_check(app, common, outcome);
  tessera::apps::add_export(app, common, outcome);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& failure) {
    const int code = app.exit(failure);
    return code == 0 ? 0 : 2;
  }
  if (!outcome) return report(outcome.error());
  return *outcome;
}
