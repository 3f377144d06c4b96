// A TaskGraph as flat arrays, for the schedulers' inner loops.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/train/overlap/task_graph.h"

namespace tessera::train {

struct FlatGraph {
  explicit FlatGraph(const TaskGraph& graph);

  [[nodiscard]] std::int32_t size() const noexcept { return static_cast<std::int32_t>(duration.size()); }
  [[nodiscard]] std::span<const std::int32_t> before(std::int32_t task) const noexcept {
    return {before_.data() + first_before_[task], before_.data() + first_before_[task + 1]};
  }
  [[nodiscard]] std::span<const std::int32_t> after(std::int32_t task) const noexcept {
    return {after_.data() + first_after_[task], after_.data() + first_after_[task + 1]};
  }

  std::vector<double> duration;      ///< seconds
  std::vector<double> tail;          ///< longest chain from the task's start to the end of the graph
  std::vector<std::uint8_t> stream;  ///< 0 comp, 1 comm
  std::vector<std::uint8_t> movable;
  std::vector<std::uint8_t> deferrable;  ///< movable, and needed by nobody
  double load[2] = {0, 0};               ///< per stream
  double longest_chain = 0;

 private:
  std::vector<std::int32_t> first_before_, before_, first_after_, after_;
};

/// What the schedulers decide: all tasks, each after the ones it needs. The streams then say when.
using LaunchOrder = std::vector<std::int32_t>;

[[nodiscard]] LaunchOrder fifo_order(const FlatGraph& graph);
[[nodiscard]] LaunchOrder align_order(const FlatGraph& graph);
/// `overshoot`: a task filled back may push later ones on as long as the pair does not grow.
[[nodiscard]] LaunchOrder defer_order(const FlatGraph& graph, bool overshoot);

/// Takes the weight gradients at the end of compute out of an order, as far as the credit goes.
void leave_to_pool(const FlatGraph& graph, Seconds credit, LaunchOrder& order);

/// Starts of an order on two in-order streams, nominal durations; returns the makespan.
double start_times(const FlatGraph& graph, std::span<const std::int32_t> order, std::vector<double>& start);

/// Puts `waiting` (in order of deferral) into the idle time of the compute stream of `order`.
void fill_back(const FlatGraph& graph, std::span<const std::int32_t> waiting, bool overshoot,
               LaunchOrder& order);

}  // namespace tessera::train
