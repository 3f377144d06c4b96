#include "tessera/train/overlap/pair_schedule.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <optional>
#include <utility>

#include "flat_graph.h"

namespace tessera::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array kRules = {PairRule::serial, PairRule::fifo, PairRule::align, PairRule::defer_literal,
                               PairRule::defer};

// Sums in another order differ in the last bits; a schedule this close to its bound is at it.
constexpr double kRounding = 1e-12;

double bound_of(const FlatGraph& graph) noexcept {
  return std::max({graph.load[0], graph.load[1], graph.longest_chain});
}

LaunchOrder order_of(const FlatGraph& graph, PairRule rule) {
  switch (rule) {
    case PairRule::fifo:
      return fifo_order(graph);
    case PairRule::align:
      return align_order(graph);
    case PairRule::defer_literal:
      return defer_order(graph, false);
    case PairRule::defer: {
      LaunchOrder deferred = defer_order(graph, true);
      LaunchOrder aligned = align_order(graph);
      std::vector<double> start;
      return start_times(graph, deferred, start) <= start_times(graph, aligned, start) ? deferred : aligned;
    }
    case PairRule::serial:
      break;
  }
  LaunchOrder order(graph.duration.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Launch order by start; what starts together keeps its order, in which a task stands after those it needs.
PairSchedule streams(const FlatGraph& graph, const LaunchOrder& order) {
  std::vector<double> start;
  PairSchedule schedule;
  schedule.makespan = Seconds(start_times(graph, order, start));
  std::vector<std::pair<double, std::int32_t>> launches(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    launches[i] = {start[static_cast<std::size_t>(order[i])], static_cast<std::int32_t>(i)};
  std::ranges::sort(launches);
  schedule.start.reserve(start.size());
  schedule.end.reserve(start.size());
  for (std::size_t i = 0; i < start.size(); ++i) {
    schedule.start.emplace_back(start[i]);
    schedule.end.emplace_back(start[i] + graph.duration[i]);
  }
  schedule.order.reserve(order.size());
  for (const auto& [time, place] : launches)
    schedule.order.emplace_back(order[static_cast<std::size_t>(place)]);
  return schedule;
}

PairSchedule one_after_another(const FlatGraph& graph) {
  PairSchedule schedule;
  for (std::int32_t task = 0; task < graph.size(); ++task) {
    schedule.start.push_back(schedule.makespan);
    schedule.order.emplace_back(task);
    schedule.makespan += Seconds(graph.duration[static_cast<std::size_t>(task)]);
    schedule.end.push_back(schedule.makespan);
  }
  return schedule;
}

PairResult judged(const FlatGraph& graph, PairSchedule schedule, Clock::time_point began) {
  PairResult result;
  const double makespan = schedule.makespan.value();
  result.bound = Seconds(std::min(bound_of(graph), makespan));
  if (makespan <= result.bound.value() * (1 + kRounding))
    result.reason = PairReason::optimal;
  else
    result.gap = makespan / result.bound.value() - 1;
  result.schedule = std::move(schedule);
  result.solve_time = Seconds(std::chrono::duration<double>(Clock::now() - began).count());
  return result;
}

}  // namespace

std::string_view name(PairRule rule) noexcept {
  switch (rule) {
    case PairRule::serial:
      return "serial";
    case PairRule::fifo:
      return "fifo";
    case PairRule::align:
      return "align";
    case PairRule::defer_literal:
      return "defer-literal";
    case PairRule::defer:
      return "defer";
  }
  return "unknown";
}

PairResult schedule_pair(const TaskGraph& graph, const PairOptions& options) {
  const auto began = Clock::now();
  const FlatGraph flat(graph);
  return judged(flat,
                options.rule == PairRule::serial ? one_after_another(flat)
                                                 : streams(flat, order_of(flat, options.rule)),
                began);
}

PairResult best_pair(const TaskGraph& graph, const Interference& interference) {
  const auto began = Clock::now();
  const FlatGraph flat(graph);
  std::optional<PairSchedule> best;
  Seconds best_time;
  for (const PairRule rule : kRules) {
    PairSchedule schedule = streams(flat, order_of(flat, rule));
    const Seconds time = run_order(graph, schedule.order, interference).makespan;
    if (best && (time > best_time || (time == best_time && schedule.makespan >= best->makespan))) continue;
    best = std::move(schedule);
    best_time = time;
  }
  return judged(flat, *std::move(best), began);
}

Seconds pair_bound(const TaskGraph& graph) {
  return Seconds(bound_of(FlatGraph(graph)));
}

}  // namespace tessera::train
