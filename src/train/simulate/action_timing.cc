#include "action_timing.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace tessera::train {
namespace {

// Communication outside every compute interval. Both streams run one task at a time, in order of start.
Seconds exposed(const std::vector<TaskTiming>& tasks) {
  std::vector<std::pair<Seconds, Seconds>> streams[2];
  for (const TaskTiming& task : tasks)
    streams[task.stream == Resource::comm].emplace_back(task.start, task.end);
  for (auto& stream : streams) std::ranges::sort(stream);
  Seconds sum;
  std::size_t c = 0;
  for (const auto& [start, end] : streams[1]) {
    Seconds at = start;
    while (c < streams[0].size() && streams[0][c].second <= start) ++c;
    for (std::size_t i = c; i < streams[0].size() && streams[0][i].first < end; ++i) {
      if (streams[0][i].first > at) sum += streams[0][i].first - at;
      at = std::max(at, streams[0][i].second);
    }
    if (at < end) sum += end - at;
  }
  return sum;
}

ActionTiming summed(std::vector<TaskTiming> tasks, Seconds duration) {
  ActionTiming timing{.duration = duration};
  for (const TaskTiming& task : tasks)
    (task.stream == Resource::comm ? timing.comm_busy : timing.comp_busy) += task.end - task.start;
  timing.exposed_comm = exposed(tasks);
  timing.tasks = std::move(tasks);
  return timing;
}

// A chunk alone: one task after another, but for a shared expert that the software runs beside the all-to-all
// that stands right before it, with what is computed again for it.
ActionTiming serial_timing(const TaskGraph& graph, bool forward) {
  std::vector<TaskTiming> tasks;
  tasks.reserve(graph.tasks.size());
  Seconds now;
  for (const Task& task : graph.tasks) {
    Seconds start = now;
    if (task.name.kind == TaskKind::shared && task.name.pass != Pass::weight && !tasks.empty()) {
      const TaskTiming& before = tasks.back();
      if (before.stream == Resource::comm) start = before.start;
      if (before.name.kind == TaskKind::shared && before.name.pass == Pass::recompute) start = before.end;
    }
    tasks.push_back({task.name, task.resource, forward, start, start + task.duration});
    now = std::max(now, start + task.duration);
  }
  return summed(std::move(tasks), now);
}

// The pair of the action where its time was measured; else null.
const PairPlan* measured(const ExecutionPlan& plan, const Action& action) {
  if (action.kind != ActionKind::overlap || !is_measured(action)) return nullptr;
  const PairPlan* pair = plan.pair(action.stage, action.backward_stage);
  return pair != nullptr && pair->measured ? pair : nullptr;
}

Result<ActionTiming> pair_timing(const ExecutionPlan& plan, const Action& action) {
  TESSERA_TRY(PairRun run, pair_run(plan, action));
  run.graph = at_rank_speed(plan, action.stage, std::move(run.graph));
  const PairSchedule schedule = run_order(run.graph, run.order, plan.interference);
  const PairPlan* pair = measured(plan, action);
  const double stretch = pair != nullptr ? measured_stretch(*pair, schedule.makespan) : 1;
  std::vector<TaskTiming> tasks;
  tasks.reserve(run.order.size());
  for (const TaskId id : run.order) {
    const Task& task = run.graph.tasks[id.index()];
    tasks.push_back({task.name, task.resource, id.value() < run.graph.forward_tasks,
                     schedule.start[id.index()] * stretch, schedule.end[id.index()] * stretch});
  }
  return summed(std::move(tasks), schedule.makespan * stretch);
}

// What is offloaded leaves while the forward runs and comes back while the backward does, in a pair both at
// once; no action is over before its copies.
Seconds copies(const ExecutionPlan& plan, const Action& action) {
  const Seconds one_way = plan.copy_time(action.stage);
  if (action.kind == ActionKind::weight_gradient) return {};
  return action.kind == ActionKind::overlap ? std::max(one_way, plan.copy_time(action.backward_stage))
                                            : one_way;
}

Result<ActionTiming> timing_of(const ExecutionPlan& plan, const Action& action) {
  const auto serial = [&](TaskGraph graph, bool forward) {
    return serial_timing(at_rank_speed(plan, action.stage, std::move(graph)), forward);
  };
  switch (action.kind) {
    case ActionKind::forward:
      return serial(plan.forward_graph(action.stage), true);
    case ActionKind::full_backward:
      return serial(plan.backward_graph(action.stage), false);
    case ActionKind::input_gradient:
      return serial(plan.backward_graph(action.stage, Backward::input_gradient), false);
    case ActionKind::weight_gradient:
      return serial(plan.backward_graph(action.stage, Backward::weight_gradient), false);
    case ActionKind::overlap:
      break;
  }
  return pair_timing(plan, action);
}

}  // namespace

double measured_stretch(const PairPlan& pair, Seconds composed) noexcept {
  return pair.measured && composed > Seconds(0) ? pair.measured->makespan / composed : 1.0;
}

TaskGraph at_rank_speed(const ExecutionPlan& plan, StageId stage, TaskGraph graph) {
  if (plan.rank_speed.empty()) return graph;
  const double speed = plan.rank_speed[plan.actions.rank_of_stage[stage.index()].index()];
  if (speed == 1.0) return graph;
  for (Task& task : graph.tasks)
    if (task.resource == Resource::comp) task.duration /= speed;
  return graph;
}

Result<ActionTimings> ActionTimings::build(const ExecutionPlan& plan) {
  constexpr std::int32_t kUnknown = -1;
  const std::size_t stages = plan.actions.stages();
  std::vector<std::int32_t> alone(4 * stages, kUnknown);
  std::int32_t nothing = kUnknown;  // what a shadow does
  std::map<std::tuple<StageId, StageId, ActionKind>, std::int32_t> paired;
  ActionTimings timings;
  timings.of.resize(plan.actions.ranks.size());
  for (std::size_t r = 0; r < plan.actions.ranks.size(); ++r) {
    timings.of[r].reserve(plan.actions.ranks[r].size());
    for (const Action& cell : plan.actions.ranks[r]) {
      const std::optional<Action> real = plan.actions.real_part(cell);
      if (!real) {
        if (nothing == kUnknown) {
          nothing = static_cast<std::int32_t>(timings.distinct.size());
          timings.distinct.emplace_back();
        }
        timings.of[r].push_back(nothing);
        continue;
      }
      const Action& action = *real;
      std::int32_t& known =
          action.kind == ActionKind::overlap
              ? paired.try_emplace({action.stage, action.backward_stage, action.backward_kind}, kUnknown)
                    .first->second
              : alone[4 * action.stage.index() + static_cast<std::size_t>(action.kind)];
      if (known == kUnknown) {
        TESSERA_TRY(ActionTiming timing, timing_of(plan, action));
        // What was measured has its copies in it.
        if (!measured(plan, action)) timing.duration = std::max(timing.duration, copies(plan, action));
        known = static_cast<std::int32_t>(timings.distinct.size());
        timings.distinct.push_back(std::move(timing));
      }
      timings.of[r].push_back(known);
    }
  }
  return timings;
}

}  // namespace tessera::train
