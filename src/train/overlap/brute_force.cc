// Every order, one task after another, in-order streams started as early as they can: some order reaches the
// optimum that way, whatever the graph looks like.
//
// Two ways to do less than all of it, both plain to see. A state from which no task starts earlier than from
// one seen before, the same tasks being placed, cannot end earlier. And no pair ends before a stream has done
// its remaining work, nor before the longest chain of what remains.
#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <unordered_map>

#include "attempt.h"
#include "flat_graph.h"

namespace tessera::train {
namespace {

constexpr std::size_t kMostTasks = 20;
// About 200 MB of states; past that they are searched without being remembered.
constexpr std::size_t kMostRemembered = 1'000'000;
// A credit that was summed in another order may be short by the last bits.
constexpr double kRounding = 1e-12;

using Tasks = std::uint32_t;  // a bit per task
static_assert(kMostTasks <= std::numeric_limits<Tasks>::digits);

constexpr Tasks bit(std::size_t task) noexcept {
  return Tasks{1} << task;
}

// What the rest of a schedule depends on.
struct State {
  std::array<double, 2> free{};               // per stream
  std::array<double, kMostTasks> earliest{};  // per task still to place, as far as known; else 0
};

class Search {
 public:
  Search(const FlatGraph& graph, std::int64_t work_limit) : graph_(graph), work_left_(work_limit) {}

  /// All tasks but these; remembers the shortest of all calls.
  void run(Tasks left) {
    const auto n = static_cast<std::size_t>(graph_.size());
    all_ = static_cast<Tasks>((std::uint64_t{1} << n) - 1) & ~left;
    for (std::size_t i = n; i-- > 0;) {
      tail_[i] = 0;
      for (const std::int32_t next : graph_.after(static_cast<std::int32_t>(i)))
        if ((all_ & bit(static_cast<std::size_t>(next))) != 0)
          tail_[i] = std::max(tail_[i], tail_[static_cast<std::size_t>(next)]);
      tail_[i] += graph_.duration[i];
    }
    seen_.clear();
    remembered_ = 0;
    order_.clear();
    extend(0, State());
  }

  [[nodiscard]] bool stopped() const noexcept { return work_left_ < 0; }
  [[nodiscard]] std::int64_t work_left() const noexcept { return work_left_; }
  [[nodiscard]] const LaunchOrder& best_order() const noexcept { return best_order_; }
  [[nodiscard]] bool found() const noexcept { return best_ < std::numeric_limits<double>::infinity(); }

 private:
  void extend(Tasks placed, const State& state) {
    if (--work_left_ < 0) return;
    if (placed == all_) {
      const double makespan = std::max(state.free[0], state.free[1]);
      if (makespan < best_) {
        best_ = makespan;
        best_order_ = order_;
      }
      return;
    }
    if (bound(placed, state) >= best_ || dominated(placed, state)) return;

    // The earliest first: a good schedule soon makes the bound bite.
    std::array<std::pair<double, std::int32_t>, kMostTasks> ready;
    std::size_t count = 0;
    for (std::int32_t i = 0; i < graph_.size(); ++i) {
      const Tasks self = bit(static_cast<std::size_t>(i));
      if ((all_ & self) == 0 || (placed & self) != 0) continue;
      const bool waits = std::ranges::any_of(graph_.before(i), [&](std::int32_t needed) {
        return (placed & bit(static_cast<std::size_t>(needed))) == 0;
      });
      if (!waits) ready[count++] = {state.earliest[static_cast<std::size_t>(i)], i};
    }
    std::ranges::sort(ready.begin(), ready.begin() + count);
    for (std::size_t k = 0; k < count; ++k) {
      const std::int32_t task = ready[k].second;
      order_.push_back(task);
      extend(placed | bit(static_cast<std::size_t>(task)), after(placed, state, task));
      order_.pop_back();
    }
  }

  [[nodiscard]] State after(Tasks placed, const State& state, std::int32_t task) const {
    const auto index = static_cast<std::size_t>(task);
    const std::uint8_t stream = graph_.stream[index];
    const double end = state.earliest[index] + graph_.duration[index];
    State next = state;
    next.free[stream] = end;
    next.earliest[index] = 0;
    const Tasks rest = all_ & ~placed & ~bit(index);
    for (std::size_t i = 0; i < graph_.duration.size(); ++i)
      if ((rest & bit(i)) != 0 && graph_.stream[i] == stream)
        next.earliest[i] = std::max(next.earliest[i], end);
    for (const std::int32_t k : graph_.after(task))
      if ((rest & bit(static_cast<std::size_t>(k))) != 0)
        next.earliest[static_cast<std::size_t>(k)] =
            std::max(next.earliest[static_cast<std::size_t>(k)], end);
    return next;
  }

  [[nodiscard]] double bound(Tasks placed, const State& state) const {
    std::array<double, 2> done = state.free;
    double longest = 0;
    for (Tasks rest = all_ & ~placed; rest != 0; rest &= rest - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(rest));
      done[graph_.stream[i]] += graph_.duration[i];
      longest = std::max(longest, state.earliest[i] + tail_[i]);
    }
    return std::max({done[0], done[1], longest});
  }

  bool dominated(Tasks placed, const State& state) {
    std::vector<State>& others = seen_[placed];
    for (const State& other : others)
      if (std::ranges::equal(other.free, state.free, std::less_equal()) &&
          std::ranges::equal(other.earliest, state.earliest, std::less_equal()))
        return true;
    if (remembered_ < kMostRemembered) {
      others.push_back(state);
      ++remembered_;
    }
    return false;
  }

  const FlatGraph& graph_;
  std::int64_t work_left_;
  Tasks all_ = 0;
  std::array<double, kMostTasks> tail_{};  // longest chain of tasks to place, from the task's start
  std::unordered_map<Tasks, std::vector<State>> seen_;
  std::size_t remembered_ = 0;
  LaunchOrder order_, best_order_;
  double best_ = std::numeric_limits<double>::infinity();
};

// Every choice of tasks for the pool that nothing can be added to: one more gone never makes a pair longer.
// They are movable, needed by nobody who stays, and within the credit.
std::vector<Tasks> choices(const FlatGraph& graph, double credit) {
  const std::size_t n = graph.duration.size();
  Tasks movable = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (graph.movable[i] != 0) movable |= bit(i);
  const auto needed_by_who_stays = [&](std::size_t task, Tasks left) {
    return std::ranges::any_of(graph.after(static_cast<std::int32_t>(task)), [&](std::int32_t next) {
      return (left & bit(static_cast<std::size_t>(next))) == 0;
    });
  };
  const auto allowed = [&](Tasks left) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if ((left & bit(i)) == 0) continue;
      if (needed_by_who_stays(i, left)) return false;
      sum += graph.duration[i];
    }
    return sum <= credit * (1 + kRounding);
  };

  if (!(credit > 0)) return {0};
  std::vector<Tasks> found;
  for (Tasks left = movable;; left = (left - 1) & movable) {  // every subset, the empty one last
    bool largest = allowed(left);
    for (std::size_t i = 0; i < n && largest; ++i)
      largest = (movable & ~left & bit(i)) == 0 || !allowed(left | bit(i));
    if (largest) found.push_back(left);
    if (left == 0) return found;
  }
}

}  // namespace

Attempt solve_brute_force(const TaskGraph& graph, const PairOptions& options) {
  Attempt attempt;
  if (graph.tasks.size() > kMostTasks) {
    attempt.too_big = true;
    return attempt;
  }
  const FlatGraph flat(graph);
  Search search(flat, options.work_limit);
  for (const Tasks left : choices(flat, options.pool_credit.value())) search.run(left);
  attempt.complete = !search.stopped();
  attempt.work = options.work_limit - std::max<std::int64_t>(search.work_left(), 0);
  if (search.found()) attempt.orders.push_back(search.best_order());
  return attempt;
}

}  // namespace tessera::train
