// BENCH=pair: interleaving a forward and a backward chunk. How many pairs exact proves optimal and how fast,
// how far the list rules are from the optimum, and how the MILP compares.
//   make bench BENCH=pair PARTS=grid,ilp      of grid, mixed, random, ilp, interference, kinds; all without
//
// Every schedule is checked before a figure is printed: legal, not below its bound, and exact not longer than
// any list rule. One wrong answer ends the benchmark.
#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include "pair/parts.h"
#include "report.h"

namespace tessera::bench {
namespace {

struct Part {
  std::string_view name;
  Status (*run)(Figures&);
};
constexpr std::array<Part, 6> kParts{{{"grid", run_grid},
                                      {"mixed", run_mixed},
                                      {"random", run_random},
                                      {"ilp", run_ilp},
                                      {"interference", run_interference},
                                      {"kinds", run_kinds}}};

constexpr std::array<std::string_view, 12> kKeys{
    "pairs",     "proved_share",   "mean_gap",          "p50_ms",
    "p99_ms",    "hard_pairs",     "hard_proved_share", "fifo_gap",
    "align_gap", "defer_gap_ep32", "defer_gap_ep8",     "speedup_vs_ilp"};

// "grid,ilp" → {"grid", "ilp"}
std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    out.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return out;
}

void print_json(const Figures& figures, const std::string& skipped) {
  Json json;
  const auto add = [&](std::string_view key, const Figures::mapped_type& value) {
    std::visit([&](auto number) { json.add(key, number); }, value);
  };
  for (const std::string_view key : kKeys)
    if (const auto found = figures.find(key); found != figures.end())
      add(key, found->second);
    else
      json.add_null(key);
  for (const auto& [key, value] : figures)
    if (std::ranges::find(kKeys, key) == kKeys.end()) add(key, value);
  if (!skipped.empty()) json.add("reason", std::string_view("parts not run: " + skipped));
  json.print();
}

Status run(const std::vector<std::string>& wanted) {
  for (const std::string& name : wanted)
    if (std::ranges::find(kParts, name, &Part::name) == kParts.end())
      return bad_input(
          fmt::format("{} is no part; there are grid, mixed, random, ilp, interference, kinds", name));
  const auto begin = std::chrono::steady_clock::now();
  Figures figures;
  std::string skipped;
  for (const Part& part : kParts) {
    if (!wanted.empty() && std::ranges::find(wanted, part.name) == wanted.end()) {
      skipped += fmt::format("{}{}", skipped.empty() ? "" : ", ", part.name);
      continue;
    }
    const auto part_begin = std::chrono::steady_clock::now();
    TESSERA_CHECK(part.run(figures));
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - part_begin;
    fmt::print("[{}: {:.0f} s]\n", part.name, spent.count());
    static_cast<void>(std::fflush(stdout));
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  fmt::print("\nin all {:.1f} minutes (goal <= 25)\n", spent.count() / 60);
  print_json(figures, skipped);
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
