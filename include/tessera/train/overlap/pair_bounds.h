// Why a pair cannot be shorter: bounds that can be said in a sentence, and what a schedule waits for.
//
// Pure and thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/train/overlap/pair_schedule.h"
#include "tessera/train/overlap/task_graph.h"

namespace tessera::train {

/// Each bounds every schedule from below, whatever the order.
struct PairBounds {
  Seconds compute;         ///< all work on comp, less the pool credit
  Seconds communication;   ///< all work on comm
  Seconds forward_chain;   ///< longest path through the forward chunk
  Seconds backward_chain;  ///< the same of the backward chunk, its last weight gradient included
  [[nodiscard]] Seconds longest() const noexcept;
};
[[nodiscard]] PairBounds pair_bounds(const TaskGraph& graph, Seconds pool_credit = {});
/// pair_bounds(graph).longest()
[[nodiscard]] Seconds pair_bound(const TaskGraph& graph);

/// What makes an optimal makespan as long as it is.
enum class Binding : std::uint8_t { compute, communication, forward_chain, backward_chain, order };
/// The bound that `makespan` meets; `order` when it is above all four: then only a search can prove it.
[[nodiscard]] Binding binding(const PairBounds& bounds, Seconds makespan) noexcept;

/// One task of a critical path: tasks without a pause between them, from time 0 to the makespan.
struct CriticalTask {
  TaskId task;
  /// True when the task before it in the path is merely the one before it on the stream; false when it needs
  /// that task, or is the first.
  bool waited_for_stream = false;
};
/// Of a schedule whose tasks start as early as their order lets them, as run_order gives.
[[nodiscard]] std::vector<CriticalTask> critical_path(const TaskGraph& graph, const PairSchedule& schedule);

/// Time during which comm works and comp does not.
[[nodiscard]] Seconds exposed_communication(const TaskGraph& graph, const PairSchedule& schedule);

}  // namespace tessera::train
