#include "pair_mip.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::train {
namespace {

// Sums in another order differ in the last bits; nothing may be excluded for that.
constexpr double kRounding = 1e-9;
// Of a unit. HiGHS takes no smaller coefficient; a task that short may as well take no time.
constexpr double kTiny = 1e-8;
// Of a credit that was summed in another order.
constexpr double kCreditRounding = 1e-12;

}  // namespace

PairMip::PairMip(const FlatGraph& graph, double credit, double longest)
    : graph_(graph), unit_(longest / std::max(1, graph.size() / 2)), credit_(credit / unit_) {
  for (const double duration : graph.duration)
    length_.push_back(duration > kTiny * unit_ ? duration / unit_ : 0);
  find_ancestors();
  find_what_may_leave();
  find_windows(longest / unit_);
  add_columns(longest / unit_);
  add_order_choices();
  add_position_cuts();
}

// ------------------------------------------------------------------------------ what is known before

void PairMip::find_ancestors() {
  needs_.assign(at(size()), std::vector<bool>(at(size()), false));
  for (Task i = 0; i < size(); ++i)
    for (const Task needed : graph_.before(i)) {
      needs_[at(i)][at(needed)] = true;
      for (Task k = 0; k < size(); ++k)
        if (needs_[at(needed)][at(k)]) needs_[at(i)][at(k)] = true;
    }
}

// Columns come first so that later ones can refer to them.
void PairMip::find_what_may_leave() {
  left_.assign(at(size()), std::nullopt);
  if (!(credit_ > 0)) return;
  std::vector<MipTerm> gone;
  for (Task i = size(); i-- > 0;) {
    const bool stays = std::ranges::any_of(graph_.after(i), [&](Task next) { return !may_leave(next); });
    if (graph_.movable[at(i)] == 0 || length_[at(i)] > credit_ * (1 + kCreditRounding) || stays) continue;
    left_[at(i)] = model_.add_binary();
    for (const Task next : graph_.after(i))  // who needs it leaves with it
      model_.add_row({.lower = 0}, {{*left_[at(next)], 1}, {*left_[at(i)], -1}});
    gone.push_back({*left_[at(i)], length_[at(i)]});
  }
  model_.add_row({.upper = credit_ * (1 + kCreditRounding)}, gone);
}

void PairMip::find_windows(double longest) {
  head_.assign(at(size()), 0);
  tail_.assign(at(size()), 0);
  latest_.assign(at(size()), 0);
  for (Task i = 0; i < size(); ++i)
    for (const Task needed : graph_.before(i))
      head_[at(i)] = std::max(head_[at(i)], head_[at(needed)] + length_[at(needed)]);
  for (Task i = size(); i-- > 0;) {
    for (const Task next : graph_.after(i)) tail_[at(i)] = std::max(tail_[at(i)], tail_[at(next)]);
    if (!may_leave(i)) tail_[at(i)] += length_[at(i)];
    latest_[at(i)] = std::max(head_[at(i)], longest - tail_[at(i)]);
  }
}

// Two leaves of one length that can change places in every schedule: the one released first goes first.
bool PairMip::goes_first_of_twins(Task a, Task b) const {
  if (graph_.duration[at(a)] != graph_.duration[at(b)] || graph_.movable[at(a)] != graph_.movable[at(b)] ||
      !graph_.after(a).empty() || !graph_.after(b).empty())
    return false;
  const auto released_by_then = [&](Task x, Task y) {
    return std::ranges::all_of(graph_.before(x), [&](Task needed) { return needs_[at(y)][at(needed)]; });
  };
  return released_by_then(a, b) && (a < b || !released_by_then(b, a));
}

PairMip::Order PairMip::known_order(Task a, Task b) const {
  if (needs_[at(b)][at(a)]) return Order::as_named;
  if (needs_[at(a)][at(b)]) return Order::reversed;
  const auto comes_too_late = [&](Task first, Task second) {
    const double end = head_[at(first)] + (may_leave(first) ? 0 : length_[at(first)]);
    return end > latest_[at(second)] * (1 + kRounding) + kRounding;
  };
  if (comes_too_late(b, a)) return Order::as_named;
  if (comes_too_late(a, b)) return Order::reversed;
  return Order::open;
}

// The longest chain; and on each stream, any work that has a head before all of it and a tail after.
double PairMip::shortest_makespan() const {
  double bound = 0;
  const auto rest = [&](Task i) { return tail_[at(i)] - length_[at(i)]; };
  for (Task a = 0; a < size(); ++a) {
    bound = std::max(bound, head_[at(a)] + tail_[at(a)]);
    for (Task b = 0; b < size(); ++b) {
      double work = 0;
      for (Task i = 0; i < size(); ++i)
        if (graph_.stream[at(i)] == graph_.stream[at(a)] && !may_leave(i) && head_[at(i)] >= head_[at(a)] &&
            rest(i) >= rest(b))
          work += length_[at(i)];
      if (work > 0) bound = std::max(bound, head_[at(a)] + work + rest(b));
    }
  }
  return bound;
}

// ---------------------------------------------------------------------------------- columns and rows

double PairMip::demand_length(Task task, std::vector<MipTerm>& terms) const {
  if (may_leave(task)) terms.push_back({*left_[at(task)], length_[at(task)]});
  return length_[at(task)];
}

void PairMip::add_sequence(Task earlier, Task later) {
  std::vector<MipTerm> terms{{start_[at(later)], 1}, {start_[at(earlier)], -1}};
  const double gap = demand_length(earlier, terms);
  model_.add_row({.lower = gap}, terms);
}

void PairMip::add_columns(double longest) {
  simple_bound_ = std::min(shortest_makespan(), longest);
  makespan_ = model_.add_column({.lower = simple_bound_, .upper = longest * (1 + kRounding), .cost = 1});
  for (Task i = 0; i < size(); ++i)
    start_.push_back(model_.add_column({.lower = head_[at(i)], .upper = latest_[at(i)] * (1 + kRounding)}));
  for (Task i = 0; i < size(); ++i) {
    for (const Task needed : graph_.before(i)) add_sequence(needed, i);
    if (!graph_.after(i).empty()) continue;
    std::vector<MipTerm> terms{{makespan_, 1}, {start_[at(i)], -1}};
    const double gap = demand_length(i, terms);
    model_.add_row({.lower = gap}, terms);
  }
}

void PairMip::add_order_choices() {
  // b after a when the column is 1 (if_one) or 0; else the row asks for nothing.
  const auto add = [&](Task a, Task b, MipColumn column, bool if_one) {
    const double slack = latest_[at(a)] + length_[at(a)] - head_[at(b)];
    std::vector<MipTerm> terms{{start_[at(b)], 1}, {start_[at(a)], -1}};
    const double gap = demand_length(a, terms);
    if (slack <= kRounding) return;  // never in the way
    terms.push_back({column, if_one ? -slack : slack});
    model_.add_row({.lower = if_one ? gap - slack : gap}, terms);
  };
  for (Task a = 0; a < size(); ++a)
    for (Task b = a + 1; b < size(); ++b) {
      if (graph_.stream[at(a)] != graph_.stream[at(b)]) continue;
      Order order = known_order(a, b);
      if (order == Order::open && (goes_first_of_twins(a, b) || goes_first_of_twins(b, a))) {
        order = goes_first_of_twins(a, b) ? Order::as_named : Order::reversed;
        twins_.emplace_back(order == Order::as_named ? a : b, order == Order::as_named ? b : a);
      }
      if (order == Order::open) {
        choices_.push_back({a, b, model_.add_binary()});
        add(a, b, choices_.back().column, true);
        add(b, a, choices_.back().column, false);
        continue;
      }
      decided_.emplace_back(order == Order::as_named ? a : b, order == Order::as_named ? b : a);
      const auto [first, second] = decided_.back();
      if (!needs_[at(second)][at(first)]) add_sequence(first, second);
    }
}

// A task starts when the ones before it on its stream are done, and the ones after it have to fit before the
// end. Without these the relaxation knows two tasks at a time only.
void PairMip::add_position_cuts() {
  double head[2] = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  double rest[2] = {head[0], head[1]};
  for (Task i = 0; i < size(); ++i) {
    const std::uint8_t stream = graph_.stream[at(i)];
    head[stream] = std::min(head[stream], head_[at(i)]);
    rest[stream] = std::min(rest[stream], may_leave(i) ? 0 : tail_[at(i)] - length_[at(i)]);
  }
  std::vector<std::vector<MipTerm>> before(at(size())), behind(at(size()));
  std::vector<double> gap_before(at(size())), gap_behind(at(size()));
  for (Task i = 0; i < size(); ++i) {
    before[at(i)] = {{start_[at(i)], 1}};
    gap_before[at(i)] = head[graph_.stream[at(i)]];
    behind[at(i)] = {{makespan_, 1}, {start_[at(i)], -1}};
    gap_behind[at(i)] = rest[graph_.stream[at(i)]] + demand_length(i, behind[at(i)]);
  }
  // The task is on that side when the column is 1 (if_one) or 0.
  const auto count = [&](Task task, std::vector<MipTerm>& terms, double& gap, MipColumn column, bool if_one) {
    if (may_leave(task)) terms.push_back({*left_[at(task)], length_[at(task)]});
    terms.push_back({column, if_one ? -length_[at(task)] : length_[at(task)]});
    if (!if_one) gap += length_[at(task)];
  };
  for (const auto& [first, second, column] : choices_) {
    count(first, before[at(second)], gap_before[at(second)], column, true);
    count(second, behind[at(first)], gap_behind[at(first)], column, true);
    count(second, before[at(first)], gap_before[at(first)], column, false);
    count(first, behind[at(second)], gap_behind[at(second)], column, false);
  }
  for (const auto& [first, second] : decided_) {
    gap_before[at(second)] += demand_length(first, before[at(second)]);
    gap_behind[at(first)] += demand_length(second, behind[at(first)]);
  }
  for (Task i = 0; i < size(); ++i) {
    model_.add_row({.lower = gap_before[at(i)]}, before[at(i)]);
    model_.add_row({.lower = gap_behind[at(i)]}, behind[at(i)]);
  }
}

// ---------------------------------------------------------------------------------- in and out again

std::vector<double> PairMip::values_of(const LaunchOrder& order) const {
  std::vector<double> start;
  const double makespan = start_times(graph_, order, start);
  std::vector<std::int32_t> place(at(size()), -1);
  std::int32_t next = 0;
  for (const Task task : order) place[at(task)] = next++;
  std::vector<bool> gone(at(size()), false);
  for (Task i = 0; i < size(); ++i) {
    if (place[at(i)] >= 0) continue;
    gone[at(i)] = true;
    start[at(i)] = makespan;
    place[at(i)] = next++;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [first, second] : twins_) {
      if (place[at(first)] < place[at(second)]) continue;
      std::swap(place[at(first)], place[at(second)]);
      std::swap(start[at(first)], start[at(second)]);
      const bool swapped = gone[at(first)];
      gone[at(first)] = gone[at(second)];
      gone[at(second)] = swapped;
      changed = true;
    }
  }

  std::vector<double> values(model_.columns(), 0.0);
  values[makespan_.index()] = makespan / unit_;
  for (Task i = 0; i < size(); ++i) {
    values[start_[at(i)].index()] = start[at(i)] / unit_;
    if (may_leave(i)) values[left_[at(i)]->index()] = gone[at(i)] ? 1 : 0;
  }
  for (const Choice& c : choices_)
    values[c.column.index()] = place[at(c.first)] < place[at(c.second)] ? 1 : 0;
  return values;
}

// By the middle of each task's time: tolerances move starts a little, and where a task of no length and a
// long one start together, the middles still say which is first.
std::optional<LaunchOrder> PairMip::order_of(std::span<const double> values) const {
  std::vector<double> middle(at(size()));
  std::vector<bool> done(at(size()), false);
  double gone = 0;
  std::size_t staying = at(size());
  for (Task i = 0; i < size(); ++i) {
    middle[at(i)] = values[start_[at(i)].index()] + length_[at(i)] / 2;
    if (!may_leave(i) || values[left_[at(i)]->index()] < 0.5) continue;
    done[at(i)] = true;
    gone += length_[at(i)];
    --staying;
  }
  if (gone > credit_ * (1 + kRounding)) return std::nullopt;
  LaunchOrder order;
  while (order.size() < staying) {
    Task next = -1;
    for (Task i = 0; i < size(); ++i)
      if (!done[at(i)] && (next < 0 || middle[at(i)] < middle[at(next)]) &&
          std::ranges::all_of(graph_.before(i), [&](Task needed) { return done[at(needed)]; }))
        next = i;
    done[at(next)] = true;
    order.push_back(next);
  }
  return order;
}

}  // namespace tessera::train
