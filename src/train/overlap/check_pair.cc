#include "tessera/train/overlap/check_pair.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::train {
namespace {

// Starts are sums of durations: allow for their rounding.
constexpr double kRounding = 1e-9;

}  // namespace

Status check_pair(const TaskGraph& graph, const PairSchedule& schedule, Seconds pool_credit) {
  const std::size_t n = graph.tasks.size();
  const auto name = [&](std::size_t i) {
    const TaskName& t = graph.tasks[i].name;
    return task_name(t.pass, t.kind, t.layer);
  };
  const auto start = [&](std::size_t i) { return schedule.start[i].value(); };
  const auto end = [&](std::size_t i) { return start(i) + graph.tasks[i].duration.value(); };
  const double slack = kRounding * std::max(schedule.makespan.value(), 0.0);

  if (schedule.start.size() != n || schedule.order.size() + schedule.left.size() != n)
    return infeasible(fmt::format("{} tasks, but {} starts, {} launches and {} left to the pool", n,
                                  schedule.start.size(), schedule.order.size(), schedule.left.size()));
  std::vector<int> seen(n, 0);
  for (const auto* tasks : {&schedule.order, &schedule.left})
    for (const TaskId id : *tasks) {
      if (id.value() < 0 || id.index() >= n)
        return infeasible(fmt::format("task {} of {} is launched", id.value(), n));
      if (++seen[id.index()] > 1) return infeasible(fmt::format("{} is launched twice", name(id.index())));
    }
  Seconds credit = pool_credit;
  std::vector<bool> left(n, false);
  for (const TaskId id : schedule.left) {
    credit -= graph.tasks[id.index()].duration;
    left[id.index()] = true;
    if (!graph.tasks[id.index()].movable)
      return infeasible(fmt::format("{} is left to the pool, but cannot be moved", name(id.index())));
  }
  if (credit.value() < -slack)
    return infeasible(fmt::format("{:.9g} s of weight gradients are left to the pool, {:.9g} s too much",
                                  (pool_credit - credit).value(), -credit.value()));

  double last_end = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (left[i]) continue;
    if (!(start(i) >= 0)) return infeasible(fmt::format("{} starts at {:.9g} s", name(i), start(i)));
    for (const TaskId needed : graph.tasks[i].after)
      if (left[needed.index()] || start(i) < end(needed.index()) - slack)
        return infeasible(fmt::format("{} starts at {:.9g} s, before {} ends at {:.9g} s", name(i), start(i),
                                      name(needed.index()), end(needed.index())));
    last_end = std::max(last_end, end(i));
  }
  for (std::size_t k = 1; k < schedule.order.size(); ++k)
    if (start(schedule.order[k].index()) < start(schedule.order[k - 1].index()))
      return infeasible(fmt::format("{} is launched after {} but starts before it",
                                    name(schedule.order[k].index()), name(schedule.order[k - 1].index())));
  for (const Resource resource : {Resource::comp, Resource::comm, Resource::p2p, Resource::copy}) {
    std::size_t previous = n;
    for (const TaskId id : schedule.order) {
      if (graph.tasks[id.index()].resource != resource) continue;
      if (previous != n && start(id.index()) < end(previous) - slack)
        return infeasible(fmt::format("{} starts at {:.9g} s, while {} runs until {:.9g} s", name(id.index()),
                                      start(id.index()), name(previous), end(previous)));
      previous = id.index();
    }
  }
  if (std::abs(last_end - schedule.makespan.value()) > slack)
    return infeasible(
        fmt::format("the makespan is {:.9g} s, not {:.9g} s", last_end, schedule.makespan.value()));
  return {};
}

}  // namespace tessera::train
