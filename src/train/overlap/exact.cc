// The exact scheduler: rules for an upper bound, simple bounds, a narrow beam, the fluid bound, then wider
// and wider passes, each first asking whether a schedule at the lower bound exists.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "attempt.h"
#include "chain_pair.h"
#include "fluid_bound.h"
#include "label_search.h"
#include "tessera/train/overlap/pair_bounds.h"

namespace tessera::train {
namespace {

// Sums in another order differ in the last bits.
constexpr double kRounding = 1e-12;
// Width of the beam that runs before the fluid bound is built, and growth of the passes after it.
constexpr std::size_t kFirstWidth = 3, kWidthStep = 4, kSecondWidth = 16;
// How far into the gap the second target lies.
constexpr double kFirstReach = 0.125;
// Ways kept per point of the fluid bound.
constexpr std::size_t kWays = 64;
// Under interference: orders kept, how much longer than the optimum they may be, and the width they come
// from.
constexpr std::size_t kKeptOrders = 6, kKeptWidth = 3;
constexpr double kKeptSlack = 0.01;
// What finding those may cost at least, however little of the limit is left.
constexpr std::int64_t kLeastWork = 20'000;

struct Rules {
  std::vector<LaunchOrder> orders;
  std::size_t best = 0;
  double makespan = std::numeric_limits<double>::infinity();
};

Rules run_rules(const FlatGraph& flat, Seconds pool_credit) {
  Rules rules;
  rules.orders = {fifo_order(flat), align_order(flat), defer_order(flat, true), defer_order(flat, false)};
  std::vector<double> start;
  for (std::size_t k = 0; k < rules.orders.size(); ++k) {
    leave_to_pool(flat, pool_credit, rules.orders[k]);
    const double makespan = start_times(flat, rules.orders[k], start);
    if (makespan < rules.makespan) rules.makespan = makespan, rules.best = k;
  }
  return rules;
}

class Exact {
 public:
  Exact(const ChainPair& pair, const PairOptions& options) : pair_(pair), search_(pair), options_(options) {
    if (options.time_limit)
      until_ =
          std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                 std::chrono::duration<double>(options.time_limit->value()));
  }

  void solve(Ticks simple_bound, Ticks upper) {
    lower_ = simple_bound;
    upper_ = upper;
    if (closed()) return;
    pass(upper_ - 1, kFirstWidth, nullptr);
    if (closed()) return;
    fluid_.build(pair_, upper_, kWays);
    Times root{};
    root[kWork] = pair_.sum(pair_.at_start);
    raise(fluid_.finish(0, 0, root));
    for (std::size_t width = kSecondWidth; !closed() && !exhausted_; width *= kWidthStep) {
      close_in(width);
      if (!closed() && !exhausted_) pass(upper_ - 1, width, &fluid_);
    }
  }

  // Orders within the slack of the best one, of different kinds.
  std::vector<LaunchOrder> good_orders() {
    const auto cut = upper_ + static_cast<Ticks>(kKeptSlack * static_cast<double>(upper_));
    const PassLimits limits{.cut = cut,
                            .width = kKeptWidth,
                            .work = std::max(options_.work_limit - work_, kLeastWork),
                            .until = until_};
    work_ += search_.run(limits, nullptr).work;
    return search_.orders(kKeptOrders);
  }

  [[nodiscard]] bool closed() const noexcept { return lower_ >= upper_; }
  [[nodiscard]] Ticks lower() const noexcept { return lower_; }
  [[nodiscard]] Ticks upper() const noexcept { return upper_; }
  [[nodiscard]] const std::optional<LaunchOrder>& order() const noexcept { return order_; }
  [[nodiscard]] std::int64_t work() const noexcept { return work_; }

 private:
  // Asks for a schedule at the lower bound; while a pass is complete and finds none, for one ever further
  // into the gap. A low cut keeps few labels, so these passes stay complete at widths where the last one is
  // not.
  void close_in(std::size_t width) {
    double reach = 0;
    while (!closed() && !exhausted_) {
      const Ticks before = upper_;
      const auto target = lower_ + static_cast<Ticks>(reach * static_cast<double>(upper_ - 1 - lower_));
      const bool complete = pass(target, width, &fluid_).complete;
      if (upper_ < before)
        reach = 0;
      else if (!complete || reach >= 1)
        return;
      else
        reach = std::min(1.0, std::max(kFirstReach, 2 * reach));
    }
  }

  PassOutcome pass(Ticks cut, std::size_t width, const FluidBound* fluid) {
    const PassOutcome outcome = search_.run(
        {.cut = cut, .width = width, .work = options_.work_limit - work_, .until = until_}, fluid);
    work_ += outcome.work;
    exhausted_ = exhausted_ || outcome.exhausted;
    if (outcome.best < upper_) {
      upper_ = outcome.best;
      order_ = search_.orders(1).front();
    }
    raise(outcome.bound);
    return outcome;
  }
  void raise(Ticks bound) noexcept { lower_ = std::max(lower_, std::min(bound, upper_)); }

  const ChainPair& pair_;
  LabelSearch search_;
  FluidBound fluid_;
  const PairOptions& options_;
  std::optional<std::chrono::steady_clock::time_point> until_;
  Ticks lower_ = 0, upper_ = 0;
  std::optional<LaunchOrder>
      order_;  // none while nothing beats the rules; may be empty, if all may be left out
  std::int64_t work_ = 0;
  bool exhausted_ = false;
};

// What holds for the graph as it is, when the search ran on a tightened one.
Ticks loose_bound(const TaskGraph& graph, const PairOptions& options, Ticks horizon) {
  const std::optional<ChainPair> loose = chain_pair(graph, options.pool_credit, Ties::loosen);
  if (!loose) return 0;
  FluidBound fluid;
  fluid.build(*loose, horizon, kWays);
  Times root{};
  root[kWork] = loose->sum(loose->at_start);
  return std::min(fluid.finish(0, 0, root), horizon - 1);
}

bool slows(const Interference& interference) noexcept {
  return interference.compute_bound_rate != 1.0 || interference.memory_bound_rate != 1.0;
}

}  // namespace

Attempt solve_exact(const TaskGraph& graph, const PairOptions& options) {
  const FlatGraph flat(graph);
  Rules rules = run_rules(flat, options.pool_credit);
  const double simple = pair_bounds(graph, options.pool_credit).longest().value();
  const bool nominal = !slows(options.interference);
  Attempt out{.bound = simple};
  // Most pairs end here: a rule meets the bound.
  out.complete = rules.makespan <= simple * (1 + kRounding);
  if (out.complete && nominal) {
    out.orders.push_back(std::move(rules.orders[rules.best]));
    return out;
  }
  std::optional<ChainPair> pair = chain_pair(graph, options.pool_credit);
  out.whole = pair.has_value();
  if (pair) {
    const Ticks upper = makespan_of(*pair, flat, rules.orders[rules.best]);
    Exact exact(*pair, options);
    exact.solve(std::min(upper, static_cast<Ticks>(std::ceil(simple / pair->tick * (1 - kRounding)))), upper);
    const Ticks bound = pair->tightened ? loose_bound(graph, options, upper + 1) : exact.lower();
    out.bound = std::max(simple, static_cast<double>(bound) * pair->tick * (1 - kRounding));
    out.complete = out.complete || bound >= exact.upper();
    out.whole = !pair->tightened;
    if (exact.order()) out.orders.push_back(*exact.order());
    if (!nominal)
      for (LaunchOrder& order : exact.good_orders()) out.orders.push_back(std::move(order));
    out.work = exact.work();
  }
  // The best rule is the optimum where the search found nothing shorter.
  std::swap(rules.orders.front(), rules.orders[rules.best]);
  if (out.orders.empty()) out.orders.push_back(rules.orders.front());
  if (!nominal) {
    out.orders.insert(out.orders.end(), rules.orders.begin(), rules.orders.end());
    // Under interference overlapping less may be better.
    LaunchOrder serial(graph.tasks.size());
    std::iota(serial.begin(), serial.end(), 0);
    out.orders.push_back(std::move(serial));
  }
  return out;
}

}  // namespace tessera::train
