#include "tessera/train/overlap/pair_bounds.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tessera::train {
namespace {

// Sums in another order differ in the last bits.
constexpr double kRounding = 1e-9;

bool on_comm(const Task& task) noexcept {
  return task.resource == Resource::comm;
}

}  // namespace

Seconds PairBounds::longest() const noexcept {
  return std::max({compute, communication, forward_chain, backward_chain});
}

PairBounds pair_bounds(const TaskGraph& graph, Seconds pool_credit) {
  PairBounds bounds;
  std::vector<Seconds> path(graph.tasks.size());  // longest path up to and with each task
  Seconds movable;
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    for (const TaskId needed : task.after) path[i] = std::max(path[i], path[needed.index()]);
    path[i] += task.duration;
    (on_comm(task) ? bounds.communication : bounds.compute) += task.duration;
    if (task.movable) movable += task.duration;
    if (task.movable && task.duration <= pool_credit) continue;  // may be left out
    Seconds& chain = std::cmp_less(i, graph.forward_tasks) ? bounds.forward_chain : bounds.backward_chain;
    chain = std::max(chain, path[i]);
  }
  bounds.compute -= std::min(pool_credit, movable);
  return bounds;
}

Seconds pair_bound(const TaskGraph& graph) {
  return pair_bounds(graph).longest();
}

Binding binding(const PairBounds& bounds, Seconds makespan) noexcept {
  const std::array<std::pair<Seconds, Binding>, 4> all{{{bounds.compute, Binding::compute},
                                                        {bounds.communication, Binding::communication},
                                                        {bounds.backward_chain, Binding::backward_chain},
                                                        {bounds.forward_chain, Binding::forward_chain}}};
  for (const auto& [bound, what] : all)
    if (makespan.value() <= bound.value() * (1 + kRounding)) return what;
  return Binding::order;
}

std::vector<CriticalTask> critical_path(const TaskGraph& graph, const PairSchedule& schedule) {
  const double slack = kRounding * schedule.makespan.value();
  const auto touches = [&](TaskId before, TaskId after) {
    return schedule.start[after.index()].value() - schedule.end[before.index()].value() <= slack;
  };
  // Position in the order, and the task before it on its stream.
  std::vector<std::ptrdiff_t> previous(graph.tasks.size(), -1);
  std::ptrdiff_t last[2] = {-1, -1};
  std::ptrdiff_t at = -1;
  for (const TaskId id : schedule.order) {
    std::ptrdiff_t& stream = last[on_comm(graph.tasks[id.index()])];
    previous[id.index()] = stream;
    stream = static_cast<std::ptrdiff_t>(id.index());
    if (at < 0 || schedule.end[id.index()] > schedule.end[static_cast<std::size_t>(at)]) at = stream;
  }
  std::vector<CriticalTask> path;
  while (at >= 0) {
    const TaskId task(at);
    path.push_back({.task = task});
    at = -1;
    for (const TaskId needed : graph.tasks[task.index()].after)
      if (touches(needed, task) && std::cmp_greater(needed.index() + 1, at)) at = needed.value();
    if (at >= 0) continue;
    const std::ptrdiff_t before = previous[task.index()];
    if (before >= 0 && touches(TaskId(before), task)) {
      at = before;
      path.back().waited_for_stream = true;
    }
  }
  std::ranges::reverse(path);
  return path;
}

Seconds exposed_communication(const TaskGraph& graph, const PairSchedule& schedule) {
  std::vector<std::pair<double, double>> busy[2];
  for (const TaskId id : schedule.order)
    busy[on_comm(graph.tasks[id.index()])].emplace_back(schedule.start[id.index()].value(),
                                                        schedule.end[id.index()].value());
  double exposed = 0;
  for (const auto& [begin, end] : busy[1]) {
    double covered = 0;
    for (const auto& [from, to] : busy[0])
      covered += std::max(0.0, std::min(end, to) - std::max(begin, from));
    exposed += end - begin - covered;
  }
  return Seconds(std::max(exposed, 0.0));
}

}  // namespace tessera::train
