#include <algorithm>
#include <optional>

#include "attempt.h"
#include "pair_mip.h"
#include "tessera/core/solver/mip.h"
#include "tessera/train/overlap/check_pair.h"

namespace tessera::train {
namespace {

// What a node of the MILP counts as, in labels of the exact scheduler: about their ratio in time.
constexpr std::int64_t kLabelsOfNode = 1000;
// HiGHS' own, 1e-6, is as much as the differences that are to be told apart.
constexpr double kTolerance = 1e-9;
// Each of a schedule's tasks may add a tolerance to what HiGHS takes for its length.
constexpr double kToleranceOfRows = 2;

LaunchOrder order_of(const PairSchedule& schedule) {
  LaunchOrder order;
  for (const TaskId task : schedule.order) order.push_back(task.value());
  return order;
}

LaunchOrder first_order(const TaskGraph& graph, const PairOptions& options) {
  if (options.warm_start != nullptr && check_pair(graph, *options.warm_start, options.pool_credit))
    return order_of(*options.warm_start);
  std::optional<PairSchedule> best;
  for (const PairMethod rule :
       {PairMethod::fifo, PairMethod::align, PairMethod::defer, PairMethod::defer_literal}) {
    PairSchedule schedule =
        schedule_pair(graph, {.method = rule, .pool_credit = options.pool_credit}).schedule;
    if (!best || schedule.makespan < best->makespan) best = std::move(schedule);
  }
  return order_of(*best);
}

}  // namespace

Attempt solve_ilp(const TaskGraph& graph, const PairOptions& options) {
  const FlatGraph flat(graph);
  Attempt attempt;
  attempt.orders.push_back(first_order(graph, options));
  std::vector<double> start;
  const double first = start_times(flat, attempt.orders.front(), start);
  if (first <= 0) {  // nothing takes any time
    attempt.complete = true;
    return attempt;
  }

  const PairMip mip(flat, options.pool_credit.value(), first);
  const std::vector<double> warm = mip.values_of(attempt.orders.front());
  const MipResult result =
      solve(mip.model(), {.time_limit = options.time_limit,
                          .node_limit = std::max<std::int64_t>(1, options.work_limit / kLabelsOfNode),
                          .tolerance = kTolerance,
                          .warm_start = warm});
  attempt.work = result.nodes;
  const double inexact = kToleranceOfRows * kTolerance * static_cast<double>(graph.tasks.size());
  attempt.bound = std::max(0.0, (result.bound - inexact) * mip.unit());
  double best = first;
  if (result.solved())
    if (std::optional<LaunchOrder> order = mip.order_of(result.values)) {
      const double makespan = start_times(flat, *order, start);
      if (makespan < best) {
        best = makespan;
        attempt.orders.insert(attempt.orders.begin(), *std::move(order));
      }
    }
  // The order decides, and what it takes on the streams has to be what HiGHS proved to be the least.
  attempt.complete = result.reason == MipReason::optimal && best <= (result.objective + inexact) * mip.unit();
  return attempt;
}

}  // namespace tessera::train
