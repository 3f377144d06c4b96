// The backfill of Algorithm 1: deferred weight gradients go into the gaps of the compute stream.
#include <algorithm>

#include "flat_graph.h"

namespace tessera::train {
namespace {

class Backfill {
 public:
  Backfill(const FlatGraph& graph, LaunchOrder& order)
      : graph_(graph), order_(order), tail_(static_cast<std::size_t>(graph.size()), 0.0) {
    makespan_ = start_times(graph, order, start_);
    settle();
  }

  void place(std::int32_t task, bool overshoot) {
    double release = 0;
    for (const std::int32_t needed : graph_.before(task))
      release = std::max(release, start_[needed] + graph_.duration[needed]);
    const double duration = graph_.duration[task];

    // From the latest gap to the earliest. `at` is the position in the order of the task that ends the gap.
    std::ptrdiff_t whole = kNowhere, over = kNowhere;
    double gap_end = makespan_;
    std::ptrdiff_t at = end();
    for (std::ptrdiff_t i = end() - 1; gap_end > release; --i) {
      while (i >= 0 && graph_.stream[order_[static_cast<std::size_t>(i)]] != 0) --i;
      const double gap_begin = i < 0 ? 0.0 : ends(order_[static_cast<std::size_t>(i)]);
      const double begin = std::max(gap_begin, release);
      if (begin < gap_end) {
        if (begin + duration <= gap_end) {
          whole = at;
          break;
        }
        if (over == kNowhere && at != end() &&
            begin + duration + tail_[order_[static_cast<std::size_t>(at)]] <= makespan_)
          over = at;
      }
      if (i < 0) break;
      gap_end = start_[order_[static_cast<std::size_t>(i)]];
      at = i;
    }
    if (whole == kNowhere && overshoot) whole = over;
    if (whole == kNowhere) whole = end();
    order_.insert(order_.begin() + whole, task);
    makespan_ = start_times(graph_, order_, start_);
    settle();
  }

 private:
  static constexpr std::ptrdiff_t kNowhere = -1;

  [[nodiscard]] std::ptrdiff_t end() const noexcept { return static_cast<std::ptrdiff_t>(order_.size()); }
  [[nodiscard]] double ends(std::int32_t task) const noexcept { return start_[task] + graph_.duration[task]; }

  // Keeps the order sorted by start (it nearly is), so that whatever releases a task stands before the gaps
  // the task may go to; then the longest way from each task to the end, through successors and both streams.
  void settle() {
    for (std::size_t i = 1; i < order_.size(); ++i)
      for (std::size_t j = i; j > 0 && start_[order_[j]] < start_[order_[j - 1]]; --j)
        std::swap(order_[j], order_[j - 1]);
    double next[2] = {0, 0};
    for (std::size_t i = order_.size(); i-- > 0;) {
      const std::int32_t task = order_[i];
      double longest = next[graph_.stream[task]];
      for (const std::int32_t after : graph_.after(task)) longest = std::max(longest, tail_[after]);
      next[graph_.stream[task]] = tail_[task] = graph_.duration[task] + longest;
    }
  }

  const FlatGraph& graph_;
  LaunchOrder& order_;
  std::vector<double> start_;
  std::vector<double> tail_;
  double makespan_ = 0;
};

}  // namespace

void fill_back(const FlatGraph& graph, std::span<const std::int32_t> waiting, bool overshoot,
               LaunchOrder& order) {
  if (waiting.empty()) return;
  Backfill backfill(graph, order);
  for (std::size_t i = waiting.size(); i-- > 0;) backfill.place(waiting[i], overshoot);
}

}  // namespace tessera::train
