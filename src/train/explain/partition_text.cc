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

// Sums of the same numbers in another order differ by less.
constexpr double kSame = 1e-6;

// What is proved, of which partitions, and what it does not say.
std::string certificate(const PlanReport& report) {
  const PartitionSearch& search = *report.search;
  const PartitionResult& solved = search.solved;
  const std::string_view what = slowest_what(report);
  std::string out = fmt::format("Partition: the slowest {} takes {}", what, ms(search.chosen_slowest));
  if (search.serial_legal) out += fmt::format(" (serial balance: {})", ms(search.serial_slowest));
  out += "; ";
  const std::string proved =
      solved.reason == PartitionReason::limit
          ? fmt::format("is proved to be below {} (the search stopped at its limit)", ms(solved.bound))
          : fmt::format("is below {}, which is proved", ms(solved.bound));
  if (search.chosen_slowest < solved.bound * (1 - kSame))
    out += fmt::format(
        "of the partitions in the window searched, memory counted with caution, none {}; this one lies "
        "outside it and was found on the simulator.",
        proved);
  else
    out += fmt::format("of the partitions near it none {}.", proved);
  out += fmt::format(
      " That is about the slowest {}, not the step: of {} partitions simulated this one has the shortest",
      what, search.simulated);
  const double shorter = 1 - search.chosen.iteration / search.proxy.iteration;
  if (shorter > 0.0005)
    out += fmt::format(", {:.1f} % shorter than the one whose slowest {} is fastest", 100 * shorter, what);
  return out + ".\n";
}

std::string move_text(const PlanReport& report, const BoundaryMove& move) {
  const BlockRange passed{std::min(move.from, move.to), std::max(move.from, move.to)};
  std::string out = fmt::format("  stage {} begins {} {} ({}): ", move.stage.value(),
                                move.to > move.from ? "only after" : "already with",
                                blocks_by_number(report.model, passed), blocks_by_run(report.model, passed));
  const std::string pair =
      move.forward == move.backward && report.plan.pairs.empty()
          ? fmt::format("stage {}", move.forward.value())
          : fmt::format("forward {} beside backward {}", move.forward.value(), move.backward.value());
  if (move.after < move.before * (1 - kSame))
    return out + fmt::format("{}, the slowest at this boundary, took {} and takes {}.\n", pair,
                             ms(move.before), ms(move.after));
  if (move.after > move.before * (1 + kSame))
    return out +
           fmt::format(
               "{}, the slowest at this boundary, grows from {} to {}, which shortens the step elsewhere.\n",
               pair, ms(move.before), ms(move.after));
  return out + fmt::format("{}, the slowest at this boundary, stays at {}.\n", pair, ms(move.before));
}

}  // namespace

std::string partition_text(const PlanReport& report) {
  if (!report.search) return {};
  const PartitionSearch& search = *report.search;
  if (search.solved.best.empty())
    return fmt::format(
        "Partition: {} ({}); this is the one whose slowest {} would be fastest with room for it.\n",
        search.solved.reason == PartitionReason::infeasible ? "none fits the memory"
                                                            : "none was found that fits the memory",
        search.solved.obstacle, slowest_what(report));
  std::string out = certificate(report);
  if (!search.serial_legal)
    out +=
        "  Serial balance breaks the placement rules (what the job asks for; and MTP blocks stay together, "
        "unless\n"
        "  schedule.megatron_target is development), so it is not shown.\n";
  if (search.serial_legal && !search.serial.usable)
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
