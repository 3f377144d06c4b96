#include "tessera/train/overlap/pair_schedule.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "attempt.h"
#include "flat_graph.h"
#include "tessera/train/overlap/pair_bounds.h"

namespace tessera::train {
namespace {

using Clock = std::chrono::steady_clock;

// Sums in another order differ in the last bits; a schedule this close to its bound is at it.
constexpr double kRounding = 1e-12;
// A proof in ticks or by a MILP is as good as their rounding.
constexpr double kProofRounding = 1e-7;

LaunchOrder order_of(const FlatGraph& graph, PairMethod rule) {
  switch (rule) {
    case PairMethod::fifo:
      return fifo_order(graph);
    case PairMethod::align:
      return align_order(graph);
    case PairMethod::defer_literal:
      return defer_order(graph, false);
    case PairMethod::serial: {
      LaunchOrder order(graph.duration.size());
      std::iota(order.begin(), order.end(), 0);
      return order;
    }
    default:
      break;
  }
  LaunchOrder deferred = defer_order(graph, true);
  LaunchOrder aligned = align_order(graph);
  std::vector<double> start;
  return start_times(graph, deferred, start) <= start_times(graph, aligned, start) ? deferred : aligned;
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
  schedule.start.assign(start.size(), schedule.makespan);
  schedule.end.assign(start.size(), schedule.makespan);
  schedule.order.reserve(order.size());
  std::vector<bool> launched(start.size(), false);
  for (const auto& [time, place] : launches) {
    const std::int32_t task = order[static_cast<std::size_t>(place)];
    schedule.start[static_cast<std::size_t>(task)] = Seconds(time);
    schedule.end[static_cast<std::size_t>(task)] = Seconds(time + graph.duration[task]);
    schedule.order.emplace_back(task);
    launched[static_cast<std::size_t>(task)] = true;
  }
  for (std::size_t i = 0; i < launched.size(); ++i)
    if (!launched[i]) schedule.left.emplace_back(static_cast<std::int64_t>(i));
  return schedule;
}

PairSchedule one_after_another(const FlatGraph& graph, const LaunchOrder& order) {
  PairSchedule schedule = streams(graph, order);
  schedule.makespan = Seconds();
  schedule.order.clear();
  for (const std::int32_t task : order) {
    schedule.start[static_cast<std::size_t>(task)] = schedule.makespan;
    schedule.makespan += Seconds(graph.duration[static_cast<std::size_t>(task)]);
    schedule.end[static_cast<std::size_t>(task)] = schedule.makespan;
    schedule.order.emplace_back(task);
  }
  for (const TaskId task : schedule.left)
    schedule.start[task.index()] = schedule.end[task.index()] = schedule.makespan;
  return schedule;
}

// Each task once, after those it needs, none of them left out.
bool legal(const FlatGraph& graph, const LaunchOrder& order) {
  std::vector<bool> launched(graph.duration.size(), false);
  for (const std::int32_t task : order) {
    if (launched[static_cast<std::size_t>(task)]) return false;
    for (const std::int32_t needed : graph.before(task))
      if (!launched[static_cast<std::size_t>(needed)]) return false;
    launched[static_cast<std::size_t>(task)] = true;
  }
  return true;
}

Attempt attempt(const TaskGraph& graph, const FlatGraph& flat, const PairOptions& options) {
  switch (options.method) {
    case PairMethod::exact:
      return solve_exact(graph, options);
    case PairMethod::ilp:
      return solve_ilp(graph, options);
    case PairMethod::brute_force:
      return solve_brute_force(graph, options);
    default: {
      Attempt rule;
      rule.orders.push_back(order_of(flat, options.method));
      leave_to_pool(flat, options.pool_credit, rule.orders.front());
      return rule;
    }
  }
}

bool has_search(PairMethod method) noexcept {
  return method == PairMethod::exact || method == PairMethod::ilp || method == PairMethod::brute_force;
}

}  // namespace

std::string_view name(PairMethod method) noexcept {
  switch (method) {
    case PairMethod::serial:
      return "serial";
    case PairMethod::fifo:
      return "fifo";
    case PairMethod::align:
      return "align";
    case PairMethod::defer_literal:
      return "defer-literal";
    case PairMethod::defer:
      return "defer";
    case PairMethod::exact:
      return "exact";
    case PairMethod::ilp:
      return "ilp";
    case PairMethod::brute_force:
      return "brute-force";
  }
  return "unknown";
}

std::string_view name(PairReason reason) noexcept {
  switch (reason) {
    case PairReason::optimal:
      return "optimal";
    case PairReason::feasible:
      return "feasible";
    case PairReason::limit:
      return "stopped at its limit";
    case PairReason::too_big:
      return "too big";
  }
  return "unknown";
}

PairResult schedule_pair(const TaskGraph& graph, const PairOptions& options) {
  const auto began = Clock::now();
  const FlatGraph flat(graph);
  Attempt tried = attempt(graph, flat, options);
  // A wrong order must never carry a proof.
  if (std::erase_if(tried.orders, [&](const LaunchOrder& order) { return !legal(flat, order); }) > 0)
    tried.complete = false;
  if (tried.orders.empty()) {
    tried.orders.push_back(order_of(flat, PairMethod::defer));
    leave_to_pool(flat, options.pool_credit, tried.orders.front());
  }

  PairResult result;
  result.work = tried.work;
  for (std::size_t k = 0; k < tried.orders.size(); ++k) {
    PairSchedule schedule = options.method == PairMethod::serial ? one_after_another(flat, tried.orders[k])
                                                                 : streams(flat, tried.orders[k]);
    const Seconds slowed = run_order(graph, schedule.order, options.interference).makespan;
    const bool better =
        slowed < result.slowed || (slowed == result.slowed && schedule.makespan < result.schedule.makespan);
    result.best_nominal = k == 0 ? schedule.makespan : std::min(result.best_nominal, schedule.makespan);
    if (k > 0 && !better) continue;
    result.slowed = slowed;
    result.schedule = std::move(schedule);
  }

  const double makespan = result.best_nominal.value();
  const double simple = pair_bounds(graph, options.pool_credit).longest().value();
  const bool proved = tried.complete && (tried.bound <= 0 || makespan <= tried.bound * (1 + kProofRounding));
  const double bound = proved ? makespan : std::max(simple, tried.bound);
  result.bound = Seconds(std::min(bound, makespan));
  if (makespan <= bound * (1 + kRounding)) {
    result.reason = PairReason::optimal;
  } else {
    result.gap = makespan / bound - 1;
    result.reason = tried.too_big                               ? PairReason::too_big
                    : has_search(options.method) && tried.whole ? PairReason::limit
                                                                : PairReason::feasible;
  }
  result.solve_time = Seconds(std::chrono::duration<double>(Clock::now() - began).count());
  return result;
}

}  // namespace tessera::train
