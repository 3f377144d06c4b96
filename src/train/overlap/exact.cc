// The exact scheduler: rules for an upper bound, simple bounds, a narrow beam, the fluid bound, then wider
// and wider passes, each first asking whether a schedule at the lower bound exists.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

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
// Ways kept per point of the fluid bound.
constexpr std::size_t kWays = 64;
// Under interference: orders kept, how much longer than the optimum they may be, and the width they come
// from.
constexpr std::size_t kKeptOrders = 8, kKeptWidth = 8;
constexpr double kKeptSlack = 0.01;

struct Rules {
  std::vector<LaunchOrder> orders;
  std::size_t best = 0;
  double makespan = std::numeric_limits<double>::infinity();
};

Rules run_rules(const FlatGraph& flat) {
  Rules rules;
  rules.orders = {fifo_order(flat), align_order(flat), defer_order(flat, true), defer_order(flat, false)};
  std::vector<double> start;
  for (std::size_t k = 0; k < rules.orders.size(); ++k) {
    const double makespan = start_times(flat, rules.orders[k], start);
    if (makespan < rules.makespan) rules.makespan = makespan, rules.best = k;
  }
  return rules;
}

class Exact {
 public:
  Exact(const ChainPair& pair, const FlatGraph& flat, const PairOptions& options)
      : pair_(pair), search_(pair), options_(options) {
    if (options.time_limit)
      until_ =
          std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                 std::chrono::duration<double>(options.time_limit->value()));
    static_cast<void>(flat);
  }

  void solve(Ticks simple_bound, Ticks upper) {
    lower_ = simple_bound;
    upper_ = upper;
    if (closed()) return;
    pass(upper_ - 1, kFirstWidth, nullptr);
    if (closed()) return;
    fluid_.build(pair_, upper_, kWays);
    Times root{};
    root[4] = pair_.sum(pair_.at_start);
    raise(fluid_.finish(0, 0, root));
    for (std::size_t width = kSecondWidth; !closed() && !exhausted_; width *= kWidthStep) {
      // A complete pass that finds nothing says where the next schedule could end; each such step is cheap
      // while the passes stay complete.
      while (!closed() && !exhausted_ && pass(lower_, width, &fluid_).complete) {
      }
      if (closed() || exhausted_) break;
      pass(upper_ - 1, width, &fluid_);
    }
  }

  // Orders within the slack of the best one, of different kinds.
  std::vector<LaunchOrder> good_orders() {
    const auto cut = upper_ + static_cast<Ticks>(kKeptSlack * static_cast<double>(upper_));
    const PassLimits limits{.cut = cut, .width = kKeptWidth, .labels = options_.work_limit};
    work_ += search_.run(limits, nullptr).labels;
    return search_.orders(kKeptOrders);
  }

  [[nodiscard]] bool closed() const noexcept { return lower_ >= upper_; }
  [[nodiscard]] Ticks lower() const noexcept { return lower_; }
  [[nodiscard]] const LaunchOrder& order() const noexcept { return order_; }
  [[nodiscard]] std::int64_t work() const noexcept { return work_; }

 private:
  PassOutcome pass(Ticks cut, std::size_t width, const FluidBound* fluid) {
    const PassOutcome outcome = search_.run(
        {.cut = cut, .width = width, .labels = options_.work_limit - work_, .until = until_}, fluid);
    work_ += outcome.labels;
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
  LaunchOrder order_;
  std::int64_t work_ = 0;
  bool exhausted_ = false;
};

bool slows(const Interference& interference) noexcept {
  return interference.compute_bound_rate != 1.0 || interference.memory_bound_rate != 1.0;
}

}  // namespace

Attempt solve_exact(const TaskGraph& graph, const PairOptions& options) {
  const FlatGraph flat(graph);
  Rules rules = run_rules(flat);
  const double simple = pair_bounds(graph, options.pool_credit).longest().value();
  const bool nominal = !slows(options.interference);
  Attempt out;
  // Most pairs end here: a rule meets the bound.
  out.complete = rules.makespan <= simple * (1 + kRounding);
  if (out.complete && nominal) {
    out.orders.push_back(std::move(rules.orders[rules.best]));
    return out;
  }
  std::optional<ChainPair> pair = chain_pair(graph, options.pool_credit);
  if (pair) {
    const Ticks upper = makespan_of(*pair, flat, rules.orders[rules.best]);
    Exact exact(*pair, flat, options);
    exact.solve(std::min(upper, static_cast<Ticks>(std::ceil(simple / pair->tick * (1 - kRounding)))), upper);
    out.complete = out.complete || (exact.closed() && !pair->tightened);
    if (!pair->tightened) out.bound = static_cast<double>(exact.lower()) * pair->tick * (1 - kRounding);
    if (!exact.order().empty()) out.orders.push_back(exact.order());
    if (!nominal)
      for (LaunchOrder& order : exact.good_orders()) out.orders.push_back(std::move(order));
    out.work = exact.work();
  }
  // The best rule is the optimum where the search found nothing shorter.
  std::swap(rules.orders.front(), rules.orders[rules.best]);
  if (out.orders.empty()) out.orders.push_back(rules.orders.front());
  if (!nominal) out.orders.insert(out.orders.end(), rules.orders.begin(), rules.orders.end());
  return out;
}

}  // namespace tessera::train
