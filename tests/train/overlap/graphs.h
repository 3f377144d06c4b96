// Graphs for the pair schedulers' tests, hand-made and random, and the optimum of a small one.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tessera/train/overlap/pair_schedule.h"
#include "train/testing.h"

namespace tessera::train::testing {

inline Task make_task(TaskName name, Resource resource, double duration, std::vector<int> after,
                      bool movable = false) {
  Task task{.name = name, .resource = resource, .duration = Seconds(duration), .movable = movable};
  task.leaf = movable;
  for (const int needed : after) task.after.emplace_back(needed);
  return task;
}

/// Any acyclic graph on the two streams, not only chains with leaves; every third task may be movable.
/// `whole`: durations are small integers, so that many schedules tie and some tasks take no time.
inline TaskGraph random_graph(Random& random, int tasks, bool whole) {
  TaskGraph graph;
  const double comm = random.unit(), dense = 0.6 * random.unit();
  for (int i = 0; i < tasks; ++i) {
    const bool on_comm = random.chance(comm), movable = !on_comm && random.chance(0.3);
    const Pass pass = movable ? Pass::weight : i % 2 == 0 ? Pass::forward : Pass::backward;
    std::vector<int> after;
    for (int k = 0; k < i; ++k)
      if (!graph.tasks[static_cast<std::size_t>(k)].movable && random.chance(dense)) after.push_back(k);
    graph.tasks.push_back(make_task({pass, on_comm ? TaskKind::dispatch : TaskKind::mlp, i},
                                    on_comm ? Resource::comm : Resource::comp,
                                    whole ? random.between(0, 4) : 0.05 + random.unit(), after, movable));
  }
  return graph;
}

inline std::string text(const TaskGraph& graph) {
  std::string out = "\n";
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    out += fmt::format("{:3} {:14} {} {:.17g}{} after", i,
                       task_name(task.name.pass, task.name.kind, task.name.layer),
                       task.resource == Resource::comm ? "comm" : "comp", task.duration.value(),
                       task.movable ? " movable" : "");
    for (const TaskId before : task.after) out += fmt::format(" {}", before.value());
    out += '\n';
  }
  return out;
}

/// The shortest makespan by brute force, in seconds; not a number when the graph is too big for it.
inline double shortest_makespan(const TaskGraph& graph, Seconds pool_credit = {}) {
  const PairResult result =
      schedule_pair(graph, {.method = PairMethod::brute_force, .pool_credit = pool_credit});
  return result.reason == PairReason::optimal ? result.schedule.makespan.value()
                                              : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace tessera::train::testing
