#include <algorithm>
#include <limits>

#include "tessera/train/overlap/pair_schedule.h"

namespace tessera::train {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Speed of a compute task while a communication runs: its SM-bound share of the time stretches by one factor,
// what memory bounds by another, and waiting for the host not at all.
double slowed_rate(const Task& task, const Interference& interference) noexcept {
  const double host = std::clamp(task.host_share, 0.0, 1.0);
  const double compute = std::clamp(task.compute_share, 0.0, 1 - host);
  const double memory = 1 - host - compute;
  double stretch = host;
  if (compute > 0) stretch += compute / std::max(interference.compute_bound_rate, 0.0);
  if (memory > 0) stretch += memory / std::max(interference.memory_bound_rate, 0.0);
  return 1 / stretch;
}

bool is_comm(const Task& task) noexcept {
  return task.resource == Resource::comm;
}

void run_nominal(const TaskGraph& graph, PairSchedule& schedule) {
  Seconds free[2];
  for (const TaskId id : schedule.order) {
    const Task& task = graph.tasks[id.index()];
    Seconds begin = free[is_comm(task)];
    for (const TaskId needed : task.after) begin = std::max(begin, schedule.end[needed.index()]);
    schedule.start[id.index()] = begin;
    free[is_comm(task)] = schedule.end[id.index()] = begin + task.duration;
  }
  schedule.makespan = std::max(free[0], free[1]);
}

// What the order does not hold never starts.
void leave_the_rest(const TaskGraph& graph, PairSchedule& schedule) {
  if (schedule.order.size() == graph.tasks.size()) return;
  std::vector<bool> launched(graph.tasks.size(), false);
  for (const TaskId id : schedule.order) launched[id.index()] = true;
  for (std::size_t i = 0; i < launched.size(); ++i) {
    if (launched[i]) continue;
    schedule.left.emplace_back(static_cast<std::int64_t>(i));
    schedule.start[i] = schedule.end[i] = schedule.makespan;
  }
}

// From event to event. A communication's end is known when it starts; a compute task's end is worked out anew
// whenever a communication starts or ends beside it.
class SlowedRun {
 public:
  SlowedRun(const TaskGraph& graph, const Interference& interference, PairSchedule& schedule)
      : graph_(graph), interference_(interference), schedule_(schedule), ended_(graph.tasks.size(), false) {
    for (const TaskId id : schedule.order) queue_[is_comm(graph.tasks[id.index()])].push_back(id);
  }

  void run() {
    for (;;) {
      if (next_ready(kComm)) start_comm();
      if (next_ready(kComp)) start_comp();
      const double next = std::min(end_[kComp], end_[kComm]);
      if (next == kNever) break;
      now_ = next;
      if (end_[kComp] <= now_) finish(kComp);
      if (end_[kComm] <= now_) {
        finish(kComm);
        change_rate();
      }
    }
    schedule_.makespan = Seconds(now_);
  }

 private:
  static constexpr int kComp = 0;
  static constexpr int kComm = 1;

  [[nodiscard]] bool next_ready(int stream) const noexcept {
    if (running_[stream] || next_[stream] == queue_[stream].size()) return false;
    return std::ranges::all_of(graph_.tasks[front(stream).index()].after,
                               [&](TaskId id) { return ended_[id.index()]; });
  }
  [[nodiscard]] TaskId front(int stream) const noexcept { return queue_[stream][next_[stream]]; }

  void start_comm() {
    schedule_.start[front(kComm).index()] = Seconds(now_);
    running_[kComm] = true;
    end_[kComm] = now_ + graph_.tasks[front(kComm).index()].duration.value();
    change_rate();
  }
  void start_comp() {
    const Task& task = graph_.tasks[front(kComp).index()];
    schedule_.start[front(kComp).index()] = Seconds(now_);
    running_[kComp] = true;
    slowed_rate_ = slowed_rate(task, interference_);
    rate_ = running_[kComm] ? slowed_rate_ : 1.0;
    work_ = task.duration.value();
    since_ = now_;
    end_[kComp] = compute_end();
  }
  void finish(int stream) {
    ended_[front(stream).index()] = true;
    schedule_.end[front(stream).index()] = Seconds(now_);
    ++next_[stream];
    running_[stream] = false;
    end_[stream] = kNever;
  }
  void change_rate() {
    const double rate = running_[kComm] ? slowed_rate_ : 1.0;
    if (!running_[kComp] || rate == rate_) return;
    work_ = std::max(0.0, work_ - (now_ - since_) * rate_);
    since_ = now_;
    rate_ = rate;
    end_[kComp] = compute_end();
  }
  // A rate of nothing (all SMs taken) waits for the communication to end.
  [[nodiscard]] double compute_end() const noexcept {
    if (work_ <= 0) return since_;
    return rate_ > 0 ? since_ + work_ / rate_ : kNever;
  }

  const TaskGraph& graph_;
  const Interference& interference_;
  PairSchedule& schedule_;
  std::vector<TaskId> queue_[2];
  std::size_t next_[2] = {0, 0};
  std::vector<bool> ended_;
  bool running_[2] = {false, false};
  double end_[2] = {kNever, kNever};  // of the running task
  // Of the running compute task: nominal seconds left at `since_`, and its speed from there.
  double work_ = 0, since_ = 0, rate_ = 1, slowed_rate_ = 1;
  double now_ = 0;
};

}  // namespace

PairSchedule run_order(const TaskGraph& graph, std::span<const TaskId> order,
                       const Interference& interference) {
  PairSchedule schedule;
  schedule.order.assign(order.begin(), order.end());
  schedule.start.resize(graph.tasks.size());
  schedule.end.resize(graph.tasks.size());
  if (interference.compute_bound_rate == 1.0 && interference.memory_bound_rate == 1.0)
    run_nominal(graph, schedule);
  else
    SlowedRun(graph, interference, schedule).run();
  leave_the_rest(graph, schedule);
  return schedule;
}

}  // namespace tessera::train
