#include <fmt/format.h>

#include <algorithm>

#include "decision_text.h"
#include "model_words.h"

namespace tessera::train {
namespace {

// Moves told in full; the rest are counted.
constexpr std::size_t kToldMoves = 4;

std::string ms(Seconds time) {
  return fmt::format("{:.2f} ms", milliseconds(time));
}

// A pair by its stages, or a stage that no pair covers.
std::string_view slowest_what(const PlanReport& report) {
  return report.plan.pairs.empty() ? "stage" : "pair";
}

std::string certificate(const PlanReport& report) {
  const PartitionSearch& search = *report.search;
  const PartitionResult& solved = search.solved;
  const std::string_view what = slowest_what(report);
  std::string out =
      fmt::format("Partition: the slowest {} takes {} under serial balance and {} in this plan; ", what,
                  ms(search.serial_slowest), ms(search.chosen_slowest));
  if (solved.reason == PartitionReason::limit)
    out += fmt::format("none of the partitions near it has one below {}, and one with {} is known.",
                       ms(solved.bound), ms(solved.best.front().value.slowest));
  else
    out += fmt::format("none of the partitions near it has one below {}, which is proved.", ms(solved.bound));
  out += fmt::format(
      " That bounds the slowest {}, not the step: of {} partitions simulated this one has the shortest", what,
      search.simulated);
  const double added = search.proxy.iteration / search.chosen.iteration - 1;
  if (added > 0.0005)
    out += fmt::format(", {:.1f} % shorter than where the slowest {} is fastest", 100 * added, what);
  return out + ".\n";
}

std::string move_text(const PlanReport& report, const BoundaryMove& move) {
  const std::int64_t stage = move.stage.value();
  const bool later = move.to > move.from;  // the stage begins later: blocks went to the one before
  const BlockRange moved{std::min(move.from, move.to), std::max(move.from, move.to)};
  std::string out =
      fmt::format("  {} ({}) went from stage {} to stage {}: ", blocks_by_number(report.model, moved),
                  blocks_by_run(report.model, moved), later ? stage : stage - 1, later ? stage - 1 : stage);
  const std::string pair =
      move.forward == move.backward && report.plan.pairs.empty()
          ? fmt::format("stage {}", move.forward.value())
          : fmt::format("forward {} beside backward {}", move.forward.value(), move.backward.value());
  if (move.after < move.before)
    return out + fmt::format("{}, the slowest there, took {} and takes {}.\n", pair, ms(move.before),
                             ms(move.after));
  if (move.after > move.before)
    return out + fmt::format("{}, the slowest there, grows from {} to {}, and the step is shorter for it.\n",
                             pair, ms(move.before), ms(move.after));
  return out + fmt::format("{}, the slowest there, stays at {}.\n", pair, ms(move.before));
}

}  // namespace

std::string partition_text(const PlanReport& report) {
  if (!report.search) return {};
  const PartitionSearch& search = *report.search;
  if (search.solved.best.empty())
    return fmt::format("Partition: balanced by serial time, since none fits the memory: {}.\n",
                       search.solved.obstacle);
  std::string out = certificate(report);
  if (!search.serial.usable)
    out += fmt::format("  Serial balance does not fit: it needs {:.1f} GiB.\n",
                       gibibytes(search.serial.peak_memory));
  if (search.moved.empty()) return out + "  Its boundaries are those of serial balance.\n";
  for (std::size_t i = 0; i < std::min(search.moved.size(), kToldMoves); ++i)
    out += move_text(report, search.moved[i]);
  if (search.moved.size() > kToldMoves)
    out += fmt::format("  {} more {} moved.\n", search.moved.size() - kToldMoves,
                       search.moved.size() - kToldMoves == 1 ? "boundary" : "boundaries");
  return out;
}

}  // namespace tessera::train
