// Templates whose order depends on durations: a few regular orders are timed, the best is refined.
#include <algorithm>
#include <array>

#include "families.h"
#include "improve_order.h"
#include "pattern.h"

namespace tessera::train {
namespace {

// Lists up to this many forwards and gradients are refined; longer ones repeat their pattern long enough for
// its ends not to matter.
constexpr std::size_t kRefinedSteps = 640;
constexpr std::int64_t kStepsPerEffort = 400'000;  // timed

// The hops set how long an activation lives, and so the memory. The turns, and the order of trying, are what
// did best for F = I = W and for 2 : 3 : 1 at 2 to 16 ranks.
std::vector<Pattern> patterns(Template schedule) {
  switch (schedule) {
    case Template::zb_v:
      return {{{3, 1, 3, 1}, {0, 0, 0}}};
    case Template::v_half:
      return {{{1, 0, 1, 0}, {2, 1, 1}}, {{1, 0, 1, 0}, {2, 0, 0}}, {{1, 0, 1, 0}, {2, 1, 2}}};
    case Template::one_f_one_b_v:
      return {{{0, 0, 0, 0}, {0, 0, 0}}};
    default:
      return {{{0, 0, 0, 0}, {0, 0, 0}}, {{0, 0, 0, 0}, {0, 0, 1}}, {{0, 0, 0, 0}, {1, 0, 0}}};
  }
}

// A list's forwards and input gradients.
Order order_of(const ActionList& list, const FlexibleProblem& problem) {
  Order order;
  order.reserve(list.ranks.size() * problem.per_rank());
  for (const auto& actions : list.ranks)
    for (const Action& action : actions) {
      const std::int32_t chunk = action.stage.value() / problem.ranks;
      if (action.kind == ActionKind::forward) order.push_back(forward_step(chunk));
      if (action.kind == ActionKind::input_gradient) order.push_back(gradient_step(chunk));
    }
  return order;
}

std::vector<Order> candidates(Template schedule, const TemplateSizes& sizes, const FlexibleProblem& problem) {
  std::vector<Order> out;
  if (problem.chunks == 1) {
    for (const double slope : {1.0, 1.5, 2.0}) out.push_back(one_chunk_order(problem, slope));
    return out;
  }
  for (const Pattern& pattern : patterns(schedule)) out.push_back(pattern_order(problem, pattern));
  if (schedule == Template::zb_v) out.push_back(order_of(zb_v_torch(sizes), problem));
  return out;
}

struct Choice {
  Order order;
  double patience = 0;
  OrderTimer::Outcome outcome;
};

void consider(OrderTimer& timer, const std::vector<Order>& orders, Choice& best) {
  for (const Order& order : orders)
    for (const double patience : {0.0, 0.5, 1.0}) {
      const OrderTimer::Outcome outcome = timer.time(order, patience, best.outcome.makespan);
      if (!outcome.before(best.outcome)) continue;
      best = {order, patience, outcome};
    }
}

}  // namespace

std::int32_t default_most_live(Template schedule, std::int32_t pp) noexcept {
  switch (schedule) {
    case Template::zb_h1:
      return pp;
    case Template::zb_h2:
      return 2 * pp - 1;
    case Template::one_f_one_b_v:
      return std::min(2 * pp, 2 * (2 * pp / 3 + 1));
    case Template::v_half:
      return std::min(2 * pp, pp + 2);
    case Template::v_min:
      return std::min(2 * pp, 2 * ((pp + 4) / 3));
    default:
      return 2 * pp;
  }
}

ActionList zero_bubble(Template schedule, const TemplateSizes& sizes, const ScheduleCosts& costs) {
  FlexibleProblem problem{.chunks = sizes.vp,
                          .ranks = sizes.pp,
                          .microbatches = sizes.microbatches,
                          .most_live = sizes.most_live,
                          .split = traits(schedule).split,
                          .costs = costs.stages,
                          .transfer = costs.transfer.value()};
  if (problem.costs.empty())
    problem.costs.resize(static_cast<std::size_t>(sizes.pp) * static_cast<std::size_t>(sizes.vp));
  OrderTimer timer(problem);
  Choice best;
  consider(timer, candidates(schedule, sizes, problem), best);
  // A tight limit may leave no room for the template's own pattern.
  if (best.order.empty()) consider(timer, candidates(Template::v_min, sizes, problem), best);
  if (best.order.empty()) consider(timer, {serial_order(problem)}, best);
  const auto steps = static_cast<std::int64_t>(std::max<std::size_t>(best.order.size(), 100));
  if (best.order.size() <= kRefinedSteps)
    improve_order(timer, problem, best.patience, kStepsPerEffort * sizes.effort / steps, best.order);
  return timer.actions(best.order, best.patience, empty_list(schedule, sizes));
}

}  // namespace tessera::train
