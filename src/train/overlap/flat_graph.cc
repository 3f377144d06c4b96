#include "flat_graph.h"

#include <algorithm>

namespace tessera::train {

FlatGraph::FlatGraph(const TaskGraph& graph) {
  const std::size_t n = graph.tasks.size();
  duration.resize(n);
  tail.resize(n);
  stream.resize(n);
  movable.resize(n);
  first_before_.assign(n + 1, 0);
  first_after_.assign(n + 2, 0);
  std::size_t edges = 0;
  for (const Task& task : graph.tasks) edges += task.after.size();
  before_.reserve(edges);
  for (std::size_t i = 0; i < n; ++i) {
    const Task& task = graph.tasks[i];
    duration[i] = task.duration.value();
    stream[i] = task.resource == Resource::comm ? 1 : 0;
    movable[i] = task.movable ? 1 : 0;
    load[stream[i]] += duration[i];
    for (const TaskId needed : task.after) {
      before_.push_back(needed.value());
      ++first_after_[needed.index() + 2];
    }
    first_before_[i + 1] = static_cast<std::int32_t>(before_.size());
  }
  // Counting sort of the edges by their origin; afterwards first_after_[i + 1] has moved to the end of i.
  for (std::size_t i = 2; i < n + 2; ++i) first_after_[i] += first_after_[i - 1];
  after_.resize(edges);
  for (std::size_t i = 0; i < n; ++i)
    for (const std::int32_t needed : before(static_cast<std::int32_t>(i)))
      after_[static_cast<std::size_t>(first_after_[static_cast<std::size_t>(needed) + 1]++)] =
          static_cast<std::int32_t>(i);
  for (std::size_t i = 0; i < n; ++i)
    deferrable.push_back(movable[i] != 0 && after(static_cast<std::int32_t>(i)).empty() ? 1 : 0);
  for (std::size_t i = n; i-- > 0;) {
    double longest = 0;
    for (const std::int32_t next : after(static_cast<std::int32_t>(i)))
      longest = std::max(longest, tail[static_cast<std::size_t>(next)]);
    tail[i] = duration[i] + longest;
    longest_chain = std::max(longest_chain, tail[i]);
  }
}

double start_times(const FlatGraph& graph, std::span<const std::int32_t> order, std::vector<double>& start) {
  start.assign(static_cast<std::size_t>(graph.size()), 0.0);
  double free[2] = {0, 0};
  for (const std::int32_t task : order) {
    double& stream_free = free[graph.stream[task]];
    double begin = stream_free;
    for (const std::int32_t needed : graph.before(task))
      begin = std::max(begin, start[needed] + graph.duration[needed]);
    start[task] = begin;
    stream_free = begin + graph.duration[task];
  }
  return std::max(free[0], free[1]);
}

void leave_to_pool(const FlatGraph& graph, Seconds credit, LaunchOrder& order) {
  double left = credit.value();
  if (left <= 0) return;
  for (std::size_t i = order.size(); i-- > 0;) {
    const std::int32_t task = order[i];
    if (graph.stream[task] != 0) continue;
    if (graph.deferrable[task] == 0 || graph.duration[task] > left) return;
    left -= graph.duration[task];
    order.erase(order.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace tessera::train
