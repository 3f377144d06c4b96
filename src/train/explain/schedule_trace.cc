#include <fmt/format.h>

#include "tessera/core/report/trace.h"
#include "tessera/train/explain/schedules.h"
#include "tessera/train/schedule/eager.h"

namespace tessera::train {
namespace {

std::string_view category(ActionKind kind) noexcept {
  switch (kind) {
    case ActionKind::forward:
      return "F";
    case ActionKind::weight_gradient:
      return "W";
    case ActionKind::overlap:
      return "overlap";
    default:
      return "B";
  }
}

}  // namespace

std::string schedule_trace(const ActionList& list, const ScheduleTimes& times) {
  TraceWriter trace;
  for (std::size_t r = 0; r < list.ranks.size(); ++r) {
    trace.process(static_cast<std::int32_t>(r), fmt::format("pipeline rank {}", r));
    trace.thread(static_cast<std::int32_t>(r), 0, "compute");
  }
  const auto index = ActionIndex::build(list);
  std::int64_t flow = 0;
  for (std::size_t r = 0; r < list.ranks.size(); ++r)
    for (std::size_t i = 0; i < list.ranks[r].size(); ++i) {
      const Action& action = list.ranks[r][i];
      const auto rank = static_cast<std::int32_t>(r);
      const Interval when = times.ranks[r][i];
      const std::string label = text(action);
      const std::string arguments =
          fmt::format("\"stage\":{},\"microbatch\":{}", action.stage.value(), action.microbatch.value());
      trace.slice({.process = rank, .name = label, .category = category(action.kind), .arguments = arguments},
                  when.start, when.end);
      if (!index) continue;
      const ActionInputs inputs = inputs_of(action, *index, list);
      for (const ActionAt input : {inputs.forward, inputs.backward}) {
        if (input.rank < 0 || input.rank == rank) continue;
        const Interval source =
            times.ranks[static_cast<std::size_t>(input.rank)][static_cast<std::size_t>(input.index)];
        // An arrow must begin inside its slice, so just before the slice ends.
        trace.flow(flow++,
                   {.process = input.rank,
                    .name = input == inputs.forward ? "activation" : "gradient",
                    .category = "p2p"},
                   source.start + (source.end - source.start) * 0.999, {.process = rank}, when.start);
      }
    }
  return std::move(trace).finish();
}

}  // namespace tessera::train
