#include "tessera/train/planner/pair_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tessera::train {
namespace {

// Sums in another order differ in the last bits.
constexpr double kRounding = 1e-9;

bool on_comm(const TaskGraph& graph, TaskId task) noexcept {
  return graph.tasks[task.index()].resource == Resource::comm;
}

PairStage describe(const ExecutionPlan& plan, StageId stage) {
  PairStage out{.stage = stage, .rank = plan.actions.rank_of_stage[stage.index()].value()};
  const BlockRange range = plan.partition.stages[stage.index()];
  std::vector<std::pair<std::string, int>> runs;
  for (std::int32_t b = range.begin; b < range.end; ++b) {
    const PlanBlock& block = plan.blocks[static_cast<std::size_t>(b)];
    if (block.layer >= 0) out.layers.push_back(block.layer);
    const std::string& kind = plan.costs[static_cast<std::size_t>(block.cost)].name;
    if (!runs.empty() && runs.back().first == kind)
      ++runs.back().second;
    else
      runs.emplace_back(kind, 1);
  }
  for (const auto& [kind, count] : runs)
    out.holds += (out.holds.empty() ? "" : " ") + (count == 1 ? kind : fmt::format("{}×{}", kind, count));
  if (runs.empty()) out.holds = "(empty)";
  return out;
}

Status check_stage(const ExecutionPlan& plan, std::string_view which, StageId stage) {
  const auto stages = static_cast<std::int64_t>(plan.partition.stages.size());
  if (stage.value() >= 0 && stage.value() < stages) return {};
  return bad_input(fmt::format("{} stage {} is outside 0 … {}", which, stage.value(), stages - 1),
                   fmt::format("There are PP × VP = {} × {} stages, numbered in model order from 0.",
                               plan.layout.pp, plan.layout.vp));
}

Status check_options(const PairReportOptions& options) {
  if (!(options.pool_credit.value() >= 0) || !std::isfinite(options.pool_credit.value()))
    return bad_input(fmt::format("a pool credit of {} ms is no time", milliseconds(options.pool_credit)),
                     "Give the milliseconds of weight gradients that may be left to the pool, 0 or more.");
  if (!(options.ilp_time_limit.value() > 0) || !std::isfinite(options.ilp_time_limit.value()))
    return bad_input(fmt::format("a time limit of {} s leaves no time", options.ilp_time_limit.value()),
                     "Give seconds above 0.");
  if (options.labels < 1)
    return bad_input(fmt::format("a limit of {} labels leaves nothing to search", options.labels),
                     "Give 1 or more.");
  return {};
}

PairRow row_of(const TaskGraph& graph, std::string name, const PairResult& result) {
  return {.name = std::move(name),
          .makespan = result.schedule.makespan,
          .exposed = exposed_communication(graph, result.schedule),
          .slowed = result.slowed,
          .reason = result.reason,
          .bound = result.bound,
          .work = result.work,
          .solve_time = result.solve_time,
          .left = result.schedule.left};
}

// The task among those that end when `time` comes.
std::optional<TaskId> ends_at(const PairSchedule& schedule, std::span<const TaskId> tasks, Seconds time) {
  const double slack = kRounding * schedule.makespan.value();
  for (const TaskId task : tasks)
    if (std::abs((schedule.end[task.index()] - time).value()) <= slack) return task;
  return std::nullopt;
}

std::vector<ComputeGap> compute_gaps(const TaskGraph& graph, const PairSchedule& schedule) {
  const double slack = kRounding * schedule.makespan.value();
  std::vector<ComputeGap> gaps;
  const auto add = [&](Seconds begin, Seconds end, std::optional<TaskId> next,
                       std::optional<TaskId> awaited) {
    if ((end - begin).value() <= slack) return;
    ComputeGap gap{.begin = begin, .end = end, .next = next, .awaited = awaited};
    if (awaited && on_comm(graph, *awaited)) {
      const Seconds started = schedule.start[awaited->index()];
      std::optional<TaskId> before;
      for (const TaskId task : schedule.order) {
        if (task == *awaited) break;
        if (on_comm(graph, task)) before = task;
      }
      // It queued when its own predecessors were done before the stream was free.
      if (before && ends_at(schedule, std::span(&*before, 1), started) &&
          !ends_at(schedule, graph.tasks[awaited->index()].after, started))
        gap.queued_behind = before;
    }
    gaps.push_back(gap);
  };
  Seconds free;
  for (const TaskId task : schedule.order) {
    if (on_comm(graph, task)) continue;
    const Seconds start = schedule.start[task.index()];
    add(free, start, task, ends_at(schedule, graph.tasks[task.index()].after, start));
    free = schedule.end[task.index()];
  }
  add(free, schedule.makespan, std::nullopt, ends_at(schedule, schedule.order, schedule.makespan));
  std::ranges::stable_sort(gaps, std::ranges::greater{},
                           [](const ComputeGap& gap) { return gap.end - gap.begin; });
  return gaps;
}

// The plan's own sequence, which may be by hand.
Status add_plan_row(const ExecutionPlan& plan, PairReport& report) {
  const PairPlan* own = plan.pair(report.forward.stage, report.backward.stage);
  report.overlapped = own != nullptr;
  if (own == nullptr || report.pool_credit > Seconds(0)) return {};
  TESSERA_TRY(const std::vector<TaskId> order, order_by_names(report.graph, own->sequence));
  const PairSchedule schedule = run_order(report.graph, order);
  report.rows.push_back({.name = "plan",
                         .makespan = schedule.makespan,
                         .exposed = exposed_communication(report.graph, schedule),
                         .slowed = run_order(report.graph, order, report.interference).makespan,
                         .bound = own->bound});
  return {};
}

void add_rules(PairReport& report) {
  for (const PairMethod rule : {PairMethod::serial, PairMethod::fifo, PairMethod::align,
                                PairMethod::defer_literal, PairMethod::defer}) {
    const PairResult result = schedule_pair(
        report.graph,
        {.method = rule, .pool_credit = report.pool_credit, .interference = report.interference});
    PairRow row = row_of(report.graph, std::string(name(rule)), result);
    if (rule == PairMethod::serial) row.slowed = row.makespan;  // nothing runs beside it
    report.rows.push_back(std::move(row));
  }
}

// The shortest order, and the one that is best under interference.
PairSchedule add_exact(const PairReportOptions& options, PairReport& report) {
  const PairOptions nominal{.pool_credit = options.pool_credit, .work_limit = options.labels};
  PairResult shortest = schedule_pair(report.graph, nominal);
  PairRow row = row_of(report.graph, "exact", shortest);
  row.slowed = run_order(report.graph, shortest.schedule.order, report.interference).makespan;
  report.rows.push_back(row);
  std::vector<TaskId> shown = shortest.schedule.order;
  if (report.slows()) {
    PairOptions slowed = nominal;
    slowed.interference = report.interference;
    PairResult best = schedule_pair(report.graph, slowed);
    if (best.slowed.value() < row.slowed.value() * (1 - kRounding)) {
      PairRow other = row_of(report.graph, "exact-slowed", best);
      other.reason = PairReason::feasible;
      report.rows.push_back(std::move(other));
    }
    if (best.slowed <= row.slowed) shown = std::move(best.schedule.order);
  }
  report.slowed = run_order(report.graph, shown, report.interference);
  report.nominal = run_order(report.graph, shown);
  return run_order(report.graph, shortest.schedule.order);
}

}  // namespace

const PairRow* PairReport::row(std::string_view wanted) const noexcept {
  const auto found = std::ranges::find(rows, wanted, &PairRow::name);
  return found == rows.end() ? nullptr : &*found;
}

Result<PairReport> report_pair(const ExecutionPlan& plan, StageId forward, StageId backward,
                               const PairReportOptions& options) {
  TESSERA_CHECK(check_stage(plan, "forward", forward));
  TESSERA_CHECK(check_stage(plan, "backward", backward));
  TESSERA_CHECK(check_options(options));
  PairReport report{.model = plan.model,
                    .device = plan.device,
                    .schedule = plan.schedule,
                    .forward = describe(plan, forward),
                    .backward = describe(plan, backward),
                    .graph = pair_graph(plan.forward_graph(forward), plan.backward_graph(backward)),
                    .pool_credit = options.pool_credit,
                    .interference = plan.interference};
  if (!plan.rank_speed.empty())
    report.rank_speed = plan.rank_speed[static_cast<std::size_t>(report.backward.rank)];
  report.bounds = pair_bounds(report.graph, options.pool_credit);
  add_rules(report);
  PairSchedule shortest = add_exact(options, report);
  if (options.ilp) {
    PairResult result = schedule_pair(report.graph, {.method = PairMethod::ilp,
                                                     .pool_credit = options.pool_credit,
                                                     .interference = report.interference,
                                                     .work_limit = std::numeric_limits<std::int64_t>::max(),
                                                     .time_limit = options.ilp_time_limit});
    report.rows.push_back(row_of(report.graph, "ilp", result));
    if (result.schedule.makespan < shortest.makespan) shortest = std::move(result.schedule);
  }
  TESSERA_CHECK(add_plan_row(plan, report));

  report.optimum = shortest.makespan;
  for (const PairRow& row : report.rows) {
    report.bound = std::max(report.bound, std::min(row.bound, report.optimum));
    report.proved = report.proved || (row.reason == PairReason::optimal &&
                                      row.makespan.value() <= report.optimum.value() * (1 + kRounding));
  }
  report.proved = report.proved || report.optimum.value() <= report.bound.value() * (1 + 1e-12);
  if (report.proved) report.bound = report.optimum;
  for (PairRow& row : report.rows)
    if (report.bound > Seconds(0)) row.above = std::max(0.0, row.makespan / report.bound - 1);
  report.binding = binding(report.bounds, report.optimum);
  const bool shown_is_shortest = report.nominal.makespan.value() <= report.optimum.value() * (1 + kRounding);
  report.explained = shown_is_shortest ? report.nominal : std::move(shortest);
  report.path = critical_path(report.graph, report.explained);
  report.gaps = compute_gaps(report.graph, report.explained);
  return report;
}

}  // namespace tessera::train
