// BENCH=partition: the overlap-aware partition. How large the problems are and what an incumbent prunes, how
// fast the sweep answers, whether the MILP agrees, what the rivals lose, and how little has to be measured.
//   make bench BENCH=partition PARTS=instances,milp    of instances, plan, placements, milp, measure
//
// Every partition is held to the checker before a figure is printed. One wrong answer ends the benchmark.
#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "partition/instance.h"
#include "partition/parts.h"
#include "report.h"

namespace tessera::bench {
namespace {

struct Part {
  std::string_view name;
  Status (*run)(Figures&);
};
constexpr std::array<Part, 5> kParts{{{"instances", run_instances},
                                      {"plan", run_plan},
                                      {"placements", run_placements},
                                      {"milp", run_milp},
                                      {"measure", run_measure}}};

constexpr std::array<std::string_view, 8> kKeys{"sweep_max_ms",        "l_pp8_c4_plan_s", "prune_factor",
                                                "milp_agrees",         "tdom_gain_mean",  "tdom_gain_max",
                                                "iteration_gain_mean", "to_measure_share"};

// "milp,measure" → {"milp", "measure"}
std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    out.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return out;
}

Status run(const std::vector<std::string>& wanted) {
  for (const std::string& name : wanted)
    if (std::ranges::find(kParts, name, &Part::name) == kParts.end())
      return bad_input(
          fmt::format("{} is no part; there are instances, plan, placements, milp, measure", name));
  const auto begin = std::chrono::steady_clock::now();
  Figures figures;
  for (const Part& part : kParts) {
    if (!wanted.empty() && std::ranges::find(wanted, part.name) == wanted.end()) {
      fmt::print("[{}: not run, its figures are null]\n", part.name);
      continue;
    }
    const auto part_begin = std::chrono::steady_clock::now();
    TESSERA_CHECK(part.run(figures));
    fmt::print("[{}: {:.0f} s]\n\n", part.name, seconds_since(part_begin));
    static_cast<void>(std::fflush(stdout));
  }
  fmt::print("in all {:.1f} minutes\n", seconds_since(begin) / 60);
  Json json;
  for (const std::string_view key : kKeys)
    if (const auto found = figures.find(key); found != figures.end())
      std::visit([&](auto number) { json.add(key, number); }, found->second);
    else
      json.add_null(key);
  json.print();
  return {};
}

}  // namespace
}  // namespace tessera::bench

int main(int count, char** arguments) {
  const char* parts = count > 1 ? arguments[1] : std::getenv("PARTS");
  if (const auto status = tessera::bench::run(tessera::bench::split(parts == nullptr ? "" : parts));
      !status) {
    fmt::print(stderr, "{}\n", status.error().text());
    return 2;
  }
  return 0;
}
