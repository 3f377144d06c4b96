#include "tessera/train/simulate/simulation_trace.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <unordered_map>

#include "tessera/core/report/trace.h"

namespace tessera::train {

namespace {

enum Lane : std::int32_t { kCompute = 0, kExperts = 1, kTransfers = 2 };

constexpr std::array<std::string_view, kPasses> kCategories{"F", "B", "W", "R"};

// Which action consumes a transfer: by stage, microbatch and direction.
std::uint64_t arrival_key(StageId stage, MicrobatchId microbatch, bool backward) {
  return (static_cast<std::uint64_t>(stage.index()) << 33) |
         (static_cast<std::uint64_t>(microbatch.index()) << 1) | (backward ? 1U : 0U);
}

std::string_view category(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return "F";
    case ActionKind::full_backward:
    case ActionKind::input_gradient:
      return "B";
    case ActionKind::weight_gradient:
      return "W";
    case ActionKind::overlap:
      return "overlap";
  }
  return "";
}

// Inside the last nanosecond of a slice, where an arrow that leaves at its end must start.
Seconds just_before(Seconds end) {
  return end - Seconds(1e-9);
}

}  // namespace

std::string chrome_trace(const ExecutionPlan& plan, const SimulateResult& result) {
  TraceWriter trace;
  for (std::size_t r = 0; r < result.ranks.size(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    trace.process(rank, fmt::format("pipeline rank {}", r));
    trace.thread(rank, kCompute, "compute");
    trace.thread(rank, kExperts, "expert all-to-all");
    trace.thread(rank, kTransfers, "stage transfers");
  }

  std::unordered_map<std::uint64_t, const ActionSpan*> consumer;
  std::unordered_map<std::uint64_t, const ActionSpan*> producer;
  for (const ActionSpan& span : result.actions) {
    const Action& action =
        plan.actions.ranks[static_cast<std::size_t>(span.rank)][static_cast<std::size_t>(span.index)];
    const bool is_backward =
        action.kind == ActionKind::full_backward || action.kind == ActionKind::input_gradient;
    if (action.kind == ActionKind::forward || action.kind == ActionKind::overlap || is_backward) {
      consumer[arrival_key(action.stage, action.microbatch, is_backward)] = &span;
      producer[arrival_key(action.stage, action.microbatch, is_backward)] = &span;
    }
    if (action.kind == ActionKind::overlap) {
      consumer[arrival_key(action.backward_stage, action.backward_microbatch, true)] = &span;
      producer[arrival_key(action.backward_stage, action.backward_microbatch, true)] = &span;
    }
    const std::optional<Action> real = plan.actions.real_part(action);
    std::string label = text(action);
    if (real != action) label += real ? fmt::format(", only {} is no shadow", text(*real)) : " shadow";
    trace.slice({.process = span.rank,
                 .thread = kCompute,
                 .name = label,
                 .category = real ? category(real->kind) : "shadow"},
                span.start, span.end);
  }
  for (const Slice& slice : result.slices) {
    const std::string label = task_name(slice.task.pass, slice.task.kind, slice.task.layer);
    const std::string arguments =
        fmt::format("\"stage\":{},\"microbatch\":{}", slice.stage.value(), slice.microbatch.value());
    trace.slice({.process = slice.rank,
                 .thread = slice.stream == Resource::comm ? kExperts : kCompute,
                 .name = label,
                 .category = kCategories[static_cast<std::size_t>(slice.task.pass)],
                 .arguments = arguments},
                slice.start, slice.end);
  }
  std::int64_t flow = 0;
  for (const TransferSpan& span : result.transfers) {
    const std::string label =
        fmt::format("{} {}→{} mb {}", span.backward ? "gradient" : "activation", span.from_stage.value(),
                    span.to_stage.value(), span.microbatch.value());
    // The slice is the bytes on the link; the latency after it occupies nothing.
    trace.slice({.process = span.from_rank, .thread = kTransfers, .name = label, .category = "p2p"},
                span.start, span.end - plan.transfer_latency);
    const auto from = producer.find(arrival_key(span.from_stage, span.microbatch, span.backward));
    const auto to = consumer.find(arrival_key(span.to_stage, span.microbatch, span.backward));
    if (from == producer.end() || to == consumer.end()) continue;
    // An arrow needs a slice of some length at both ends.
    if (from->second->end - from->second->start < Seconds(2e-9) ||
        to->second->end - to->second->start < Seconds(2e-9))
      continue;
    trace.flow(flow++,
               {.process = span.from_rank,
                .thread = kCompute,
                .name = span.backward ? "gradient" : "activation",
                .category = "p2p"},
               just_before(from->second->end), {.process = span.to_rank, .thread = kCompute},
               to->second->start);
  }
  for (std::size_t r = 0; r < result.ranks.size(); ++r)
    for (const MemoryPoint& point : result.ranks[r].memory)
      trace.counter(static_cast<std::int32_t>(r), "memory GiB", point.time, gibibytes(point.used));
  return std::move(trace).finish();
}

}  // namespace tessera::train
