// Event-driven list scheduling (the paper's Algorithm 1): whenever a stream is free it takes one of the tasks
// whose predecessors are done. The rules differ in which one, and in whether a movable task may wait.
#include <algorithm>
#include <cmath>
#include <limits>

#include "flat_graph.h"

namespace tessera::train {
namespace {

constexpr int kComp = 0;
constexpr int kComm = 1;

class ListScheduler {
 public:
  enum class Rule { fifo, align };

  ListScheduler(const FlatGraph& graph, Rule rule, bool may_defer)
      : graph_(graph),
        rule_(rule),
        may_defer_(may_defer),
        open_(graph.duration.size()),
        compute_left_(graph.load[kComp]) {
    const auto n = static_cast<std::size_t>(graph.size());
    order_.reserve(n);
    if (rule == Rule::fifo) ready_since_.assign(n, 0.0);
    for (std::int32_t i = 0; i < graph.size(); ++i) {
      open_[i] = static_cast<std::int32_t>(graph.before(i).size());
      if (open_[i] == 0) ready_[graph.stream[i]].push_back(i);
    }
  }

  void run() {
    for (;;) {
      finish_empty_tasks();
      for (int stream : {kComm, kComp}) launch(stream);  // compute then knows its window
      const double next = std::min(end_of(kComp), end_of(kComm));
      if (next == kNever) return;
      now_ = next;
      for (int stream : {kComp, kComm})
        if (end_of(stream) <= now_) finish(stream);
    }
  }

  LaunchOrder take_order() { return std::move(order_); }
  [[nodiscard]] const std::vector<std::int32_t>& pending() const noexcept { return pending_; }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  [[nodiscard]] double end_of(int stream) const noexcept {
    return running_[stream] < 0 ? kNever : end_[stream];
  }

  // A task of no length must not keep its successors waiting for the next event, or a weight gradient would
  // slip in before them.
  void finish_empty_tasks() {
    for (bool again = true; again;) {
      again = false;
      for (int stream : {kComp, kComm}) {
        if (running_[stream] >= 0) continue;
        const auto empty =
            std::ranges::find_if(ready_[stream], [&](std::int32_t t) { return graph_.duration[t] <= 0; });
        if (empty == ready_[stream].end()) continue;
        start(stream, *empty);
        finish(stream);
        again = true;
      }
    }
  }

  void launch(int stream) {
    while (running_[stream] < 0 && !ready_[stream].empty()) {
      const std::int32_t task = select(stream);
      if (may_defer_ && graph_.deferrable[task] && should_defer(task)) {
        std::erase(ready_[stream], task);
        pending_.push_back(task);
      } else {
        start(stream, task);
      }
    }
  }

  void start(int stream, std::int32_t task) {
    std::erase(ready_[stream], task);
    order_.push_back(task);
    running_[stream] = task;
    end_[stream] = now_ + graph_.duration[task];
    if (stream == kComp) compute_left_ -= graph_.duration[task];
  }

  void finish(int stream) {
    const std::int32_t task = running_[stream];
    running_[stream] = -1;
    for (const std::int32_t next : graph_.after(task)) {
      if (--open_[next] > 0) continue;
      ready_[graph_.stream[next]].push_back(next);
      if (rule_ == Rule::fifo) ready_since_[next] = now_;
    }
  }

  [[nodiscard]] std::int32_t select(int stream) const noexcept {
    const auto& ready = ready_[stream];
    return rule_ == Rule::fifo
               ? *std::ranges::min_element(
                     ready,
                     [&](std::int32_t a, std::int32_t b) {
                       return ready_since_[a] != ready_since_[b] ? ready_since_[a] < ready_since_[b] : a < b;
                     })
               : *std::ranges::min_element(
                     ready, [&](std::int32_t a, std::int32_t b) { return better_fit(stream, a, b); });
  }

  // Backbone first; then the duration closest to the other stream's remaining window, when it has one; then
  // the longest remaining tail; then the task id.
  [[nodiscard]] bool better_fit(int stream, std::int32_t a, std::int32_t b) const noexcept {
    if (graph_.deferrable[a] != graph_.deferrable[b]) return graph_.deferrable[a] < graph_.deferrable[b];
    if (running_[1 - stream] >= 0) {
      const double window = end_[1 - stream] - now_;
      const double misfit_a = std::abs(graph_.duration[a] - window),
                   misfit_b = std::abs(graph_.duration[b] - window);
      if (misfit_a != misfit_b) return misfit_a < misfit_b;
    }
    if (graph_.tail[a] != graph_.tail[b]) return graph_.tail[a] > graph_.tail[b];
    return a < b;
  }

  // Only while a communication runs, and only when the pair does not grow by it. Both choices are judged by
  // the larger of two bounds: all compute that is left, and the longest chain that is left. Running the task
  // now delays the chain by what the task overshoots; putting it off leaves compute idle until the
  // communication ends.
  [[nodiscard]] bool should_defer(std::int32_t task) const noexcept {
    const std::int32_t other = running_[kComm];
    if (other < 0) return false;
    const double duration = graph_.duration[task], window_end = end_[kComm];
    if (now_ + duration <= window_end) return false;  // this gap holds it whole
    const double resumed = graph_.tail[other] - graph_.duration[other];
    double queued = 0;
    for (const std::int32_t waiting : ready_[kComm]) queued = std::max(queued, graph_.tail[waiting]);
    const double put_off = std::max(window_end + compute_left_, window_end + std::max(resumed, queued));
    const double chain = resumed > 0 ? now_ + duration + resumed : window_end;
    const double at_once = std::max({now_ + compute_left_, chain, window_end + queued});
    return put_off <= at_once;
  }

  const FlatGraph& graph_;
  Rule rule_;
  bool may_defer_;
  std::vector<std::int32_t> open_;  // predecessors not yet done
  std::vector<std::int32_t> ready_[2];
  std::vector<double> ready_since_;
  std::vector<std::int32_t> pending_;
  LaunchOrder order_;
  std::int32_t running_[2] = {-1, -1};
  double end_[2] = {0, 0};
  double now_ = 0;
  double compute_left_;  // of compute not yet started, deferred tasks included
};

}  // namespace

LaunchOrder fifo_order(const FlatGraph& graph) {
  ListScheduler scheduler(graph, ListScheduler::Rule::fifo, false);
  scheduler.run();
  return scheduler.take_order();
}

LaunchOrder align_order(const FlatGraph& graph) {
  ListScheduler scheduler(graph, ListScheduler::Rule::align, false);
  scheduler.run();
  return scheduler.take_order();
}

LaunchOrder defer_order(const FlatGraph& graph, bool overshoot) {
  ListScheduler scheduler(graph, ListScheduler::Rule::align, true);
  scheduler.run();
  LaunchOrder order = scheduler.take_order();
  fill_back(graph, scheduler.pending(), overshoot, order);
  return order;
}

}  // namespace tessera::train
