#include <fmt/format.h>

#include <algorithm>

#include "decision_text.h"

namespace tessera::train {
namespace {

// Of what comes next in price.
constexpr std::size_t kToldLeft = 2;

std::string means_text(const MemoryMeans& means) {
  const std::string what = means.unit == "offload" ? fmt::format("offload {:.0f} %", 100 * means.share)
                                                   : fmt::format("recompute {}", means.unit);
  const double saved = gibibytes(means.saved);
  if (means.time <= Seconds(0))
    return fmt::format("{} of {} layers (saves {:.2f} GiB a layer and microbatch, hidden behind compute)",
                       what, means.kind, saved);
  return fmt::format("{} of {} layers (saves {:.2f} GiB a layer and microbatch for {:.2f} ms: {:.1f} ms/GiB)",
                     what, means.kind, saved, milliseconds(means.time), milliseconds(means.time) / saved);
}

}  // namespace

std::string memory_text(const PlanReport& report) {
  if (!report.memory) return {};
  const MemoryDecision& memory = *report.memory;
  std::string out =
      memory.iteration_without
          ? fmt::format(
                "Memory: a partition that fits as it is takes {:.3f} s, a faster one would need {:.1f} GiB.",
                memory.iteration_without->value(), gibibytes(memory.without))
          : fmt::format("Memory: without help the fullest rank would need {:.1f} GiB.",
                        gibibytes(memory.without));
  out += " Taken, cheapest first:\n";
  for (const MemoryMeans& means : memory.taken) out += "  " + means_text(means) + "\n";
  for (std::size_t i = 0; i < std::min(memory.left.size(), kToldLeft); ++i)
    out += (i == 0 ? "  next would be " : "  then ") + means_text(memory.left[i]) + "\n";
  return out;
}

}  // namespace tessera::train
