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
// Sums in another order differ in the last bits.
constexpr double kRounding = 1e-12;
constexpr std::int32_t kMostSolves = 10;

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

// What is left of the limits after some solves.
class Limits {
 public:
  explicit Limits(const PairOptions& options)
      : time_(options.time_limit), nodes_(std::max<std::int64_t>(1, options.work_limit / kLabelsOfNode)) {}
  void spend(const MipResult& result) noexcept {
    if (time_) *time_ = std::max(Seconds(), *time_ - result.solve_time);
    nodes_ = std::max<std::int64_t>(0, nodes_ - result.nodes);
  }
  [[nodiscard]] std::optional<Seconds> time() const noexcept { return time_; }
  [[nodiscard]] std::int64_t nodes() const noexcept { return nodes_; }

 private:
  std::optional<Seconds> time_;
  std::int64_t nodes_;
};

}  // namespace

// Each solve starts from the best schedule so far and excludes longer ones. HiGHS now and then proves what is
// not so (see mip.h): the optimum is what two solves in a row, with different seeds, cannot better, or what
// meets a simple bound.
Attempt solve_ilp(const TaskGraph& graph, const PairOptions& options) {
  const FlatGraph flat(graph);
  Attempt attempt;
  attempt.orders.push_back(first_order(graph, options));
  std::vector<double> start;
  double best = start_times(flat, attempt.orders.front(), start);
  Limits limits(options);
  int proofs = 0;
  for (std::int32_t seed = 0; best > 0 && proofs < 2 && seed < kMostSolves; ++seed) {
    const PairMip mip(flat, options.pool_credit.value(), best);
    const std::vector<double> warm = mip.values_of(attempt.orders.front());
    const MipResult result = solve(mip.model(), {.time_limit = limits.time(),
                                                 .node_limit = limits.nodes(),
                                                 .tolerance = kTolerance,
                                                 .seed = seed,
                                                 .warm_start = warm});
    attempt.work += result.nodes;
    limits.spend(result);
    const double inexact = kToleranceOfRows * kTolerance * static_cast<double>(graph.tasks.size());
    attempt.bound = std::max(0.0, (result.bound - inexact) * mip.unit());
    bool better = false;
    if (std::optional<LaunchOrder> order = result.solved() ? mip.order_of(result.values) : std::nullopt) {
      const double makespan = start_times(flat, *order, start);
      better = makespan < best * (1 - kRounding);
      if (makespan < best) {
        best = makespan;
        attempt.orders.insert(attempt.orders.begin(), *std::move(order));
      }
    }
    // The order decides, and what it takes on the streams has to be what HiGHS calls the least.
    if (result.reason != MipReason::optimal || best > (result.objective + inexact) * mip.unit()) break;
    proofs = better ? 1 : proofs + 1;
    if (best <= mip.simple_bound() * (1 + kRounding)) proofs = 2;
  }
  attempt.complete = best <= 0 || proofs >= 2;
  return attempt;
}

}  // namespace tessera::train
