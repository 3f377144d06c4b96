// The simulator once more, slowly and by other means: pick any action whose inputs are there, work everything
// out anew each time, keep nothing but plain maps. Shares run_order and the task graphs with the real one.
#pragma once

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "tessera/train/simulate/simulate.h"
#include "train/testing.h"

namespace tessera::train::testing {

struct TwinTask {
  bool comm;
  double start, end;
};
struct TwinAction {
  double start = 0, end = 0;
  std::vector<TwinTask> tasks;
};
struct TwinResult {
  bool finished = false;
  std::vector<std::vector<TwinAction>> actions;
  double pipeline = 0, iteration = 0;
  std::vector<double> comp_busy, comm_busy, exposed, warmup, imbalance, cooldown, step_end, peak_activation;
};

class SlowTwin {
 public:
  SlowTwin(const ExecutionPlan& plan, std::uint64_t seed) : plan_(plan), random_(seed) {}

  TwinResult run() {
    out_.actions.resize(plan_.actions.ranks.size());
    link_.assign(plan_.actions.ranks.size(), 0.0);
    while (step()) {
    }
    out_.finished = true;
    for (std::size_t r = 0; r < out_.actions.size(); ++r)
      out_.finished = out_.finished && out_.actions[r].size() == plan_.actions.ranks[r].size();
    if (!out_.finished) return out_;
    for (const auto& rank : out_.actions)
      for (const TwinAction& a : rank) out_.pipeline = std::max(out_.pipeline, a.end);
    for (std::size_t r = 0; r < out_.actions.size(); ++r) account(r);
    return out_;
  }

 private:
  using Key = std::tuple<bool, int, int>;  // backward, stage, microbatch

  bool step() {
    const int ranks = static_cast<int>(plan_.actions.ranks.size());
    const int first = random_.below(ranks);
    for (int k = 0; k < ranks; ++k) {
      const auto r = static_cast<std::size_t>((first + k) % ranks);
      const std::size_t i = out_.actions[r].size();
      if (i == plan_.actions.ranks[r].size()) continue;
      const Action& a = plan_.actions.ranks[r][i];
      std::vector<Key> inputs;
      const int stages = static_cast<int>(plan_.actions.stages());
      if (forward_of(a) && a.stage.value() > 0)
        inputs.emplace_back(false, a.stage.value(), a.microbatch.value());
      if (gradient_of(a) && bstage(a) + 1 < stages) inputs.emplace_back(true, bstage(a), bmicrobatch(a));
      if (!std::ranges::all_of(inputs, [&](const Key& key) { return arrived_.contains(key); })) continue;
      TwinAction done;
      done.start = i == 0 ? 0.0 : out_.actions[r][i - 1].end;
      for (const Key& key : inputs) done.start = std::max(done.start, arrived_[key]);
      time_inside(r, a, done);
      if (forward_of(a)) send(r, a.stage.value(), a.stage.value() + 1, a.microbatch.value(), false, done.end);
      if (gradient_of(a)) send(r, bstage(a), bstage(a) - 1, bmicrobatch(a), true, done.end);
      out_.actions[r].push_back(done);
      return true;
    }
    return false;
  }

  static bool forward_of(const Action& a) {
    return a.kind == ActionKind::forward || a.kind == ActionKind::overlap;
  }
  static ActionKind part(const Action& a) { return a.kind == ActionKind::overlap ? a.backward_kind : a.kind; }
  static bool gradient_of(const Action& a) {
    return part(a) == ActionKind::full_backward || part(a) == ActionKind::input_gradient;
  }
  static int bstage(const Action& a) {
    return (a.kind == ActionKind::overlap ? a.backward_stage : a.stage).value();
  }
  static int bmicrobatch(const Action& a) {
    return (a.kind == ActionKind::overlap ? a.backward_microbatch : a.microbatch).value();
  }
  [[nodiscard]] bool ghost(int microbatch) const {
    return !plan_.actions.shadow.empty() && plan_.actions.shadow[static_cast<std::size_t>(microbatch)];
  }
  // What of the action is no shadow.
  [[nodiscard]] bool runs_forward(const Action& a) const {
    return forward_of(a) && !ghost(a.microbatch.value());
  }
  [[nodiscard]] bool runs_other(const Action& a) const {
    return a.kind != ActionKind::forward && !ghost(bmicrobatch(a));
  }
  [[nodiscard]] double speed(std::size_t rank) const {
    return plan_.rank_speed.empty() ? 1.0 : plan_.rank_speed[rank];
  }

  void time_inside(std::size_t rank, const Action& a, TwinAction& done) const {
    TaskGraph graph;
    std::vector<TaskId> order;
    const bool forward = runs_forward(a), other = runs_other(a), pair = forward && other;
    if (pair) {
      PairRun run = pair_run(plan_, a).value();
      graph = std::move(run.graph);
      order = std::move(run.order);
    } else if (forward) {
      graph = plan_.forward_graph(a.stage);
    } else if (other) {
      graph = plan_.backward_graph(StageId(bstage(a)), part(a) == ActionKind::full_backward ? Backward::full
                                                       : part(a) == ActionKind::input_gradient
                                                           ? Backward::input_gradient
                                                           : Backward::weight_gradient);
    }
    for (Task& task : graph.tasks)
      if (task.resource == Resource::comp) task.duration = Seconds(task.duration.value() / speed(rank));
    if (pair) {
      const PairSchedule schedule = run_order(graph, order, plan_.interference);
      for (std::size_t t = 0; t < graph.tasks.size(); ++t)
        done.tasks.push_back({graph.tasks[t].resource == Resource::comm,
                              done.start + schedule.start[t].value(), done.start + schedule.end[t].value()});
    } else {
      double now = done.start;
      for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
        const Task& task = graph.tasks[t];
        double start = now;
        if (task.name.kind == TaskKind::shared && task.name.pass != Pass::weight) {
          // Beside the all-to-all before it, after its own recompute if there is any.
          const bool again = t > 0 && graph.tasks[t - 1].name.pass == Pass::recompute &&
                             graph.tasks[t - 1].name.kind == TaskKind::shared;
          const std::size_t first = again ? t - 1 : t;
          if (first > 0 && graph.tasks[first - 1].resource == Resource::comm)
            start = done.tasks[first - 1].start + (again ? graph.tasks[t - 1].duration.value() : 0.0);
        }
        done.tasks.push_back({task.resource == Resource::comm, start, start + task.duration.value()});
        now = std::max(now, start + task.duration.value());
      }
    }
    done.end = done.start;
    for (const TwinTask& task : done.tasks) done.end = std::max(done.end, task.end);
  }

  void send(std::size_t rank, int from, int to, int microbatch, bool backward, double ready) {
    if (to < 0 || to >= static_cast<int>(plan_.actions.stages())) return;
    static_cast<void>(from);
    double arrival = ready;
    if (plan_.actions.rank_of_stage[static_cast<std::size_t>(to)].index() != rank) {
      const double start = std::max(ready, link_[rank]);
      link_[rank] = start + plan_.transfer_time.value();
      arrival = start + plan_.transfer_time.value() + plan_.transfer_latency.value();
    }
    arrived_[{backward, to, microbatch}] = arrival;
  }

  // Cuts the time at every start and end and looks at each piece.
  void account(std::size_t r) {
    std::vector<double> cuts{0.0, out_.pipeline};
    double first_backward = out_.pipeline, last_forward = 0;
    for (std::size_t i = 0; i < out_.actions[r].size(); ++i) {
      const TwinAction& a = out_.actions[r][i];
      cuts.insert(cuts.end(), {a.start, a.end});
      for (const TwinTask& t : a.tasks) cuts.insert(cuts.end(), {t.start, t.end});
      const Action& what = plan_.actions.ranks[r][i];
      if (gradient_of(what) && runs_other(what)) first_backward = std::min(first_backward, a.start);
      if (runs_forward(what)) last_forward = std::max(last_forward, a.end);
    }
    std::ranges::sort(cuts);
    double comp = 0, comm = 0, exposed = 0, warmup = 0, imbalance = 0, cooldown = 0;
    std::size_t at = 0;
    for (std::size_t c = 1; c < cuts.size(); ++c) {
      const double middle = 0.5 * (cuts[c - 1] + cuts[c]), length = cuts[c] - cuts[c - 1];
      if (length <= 0) continue;
      while (at < out_.actions[r].size() && out_.actions[r][at].end < middle) ++at;
      bool in_action = false, in_comp = false, in_comm = false;
      if (at < out_.actions[r].size()) {
        const TwinAction& a = out_.actions[r][at];
        in_action = a.start < middle && middle < a.end;
        for (const TwinTask& t : a.tasks)
          if (t.start < middle && middle < t.end) (t.comm ? in_comm : in_comp) = true;
      }
      if (in_comp) comp += length;
      if (in_comm) comm += length;
      if (in_comm && !in_comp) exposed += length;
      if (!in_action)
        (middle < first_backward                           ? warmup
         : middle < std::max(first_backward, last_forward) ? imbalance
                                                           : cooldown) += length;
    }
    out_.comp_busy.push_back(comp);
    out_.comm_busy.push_back(comm);
    out_.exposed.push_back(exposed);
    out_.warmup.push_back(warmup);
    out_.imbalance.push_back(imbalance);
    out_.cooldown.push_back(cooldown);
    account_step(r);
    account_memory(r);
  }

  void account_step(std::size_t r) {
    std::map<int, double> last,
        first;  // by stage: start of its last weight gradients, end of its first forward
    double gradients = 0;
    const auto bytes = [&](int stage) {
      double sum = 0;
      for (std::int32_t b = plan_.partition.stages[static_cast<std::size_t>(stage)].begin;
           b < plan_.partition.stages[static_cast<std::size_t>(stage)].end; ++b)
        sum += plan_.costs[static_cast<std::size_t>(plan_.blocks[static_cast<std::size_t>(b)].cost)]
                   .memory.gradients.value();
      return sum;
    };
    for (std::size_t i = 0; i < out_.actions[r].size(); ++i) {
      const Action& a = plan_.actions.ranks[r][i];
      if (runs_forward(a)) first.try_emplace(a.stage.value(), out_.actions[r][i].end);
      if (!runs_other(a)) continue;
      if (part(a) == ActionKind::full_backward || part(a) == ActionKind::weight_gradient)
        last[bstage(a)] = std::max(last[bstage(a)], out_.actions[r][i].start);
    }
    for (const auto& [stage, start] : last) gradients += bytes(stage);
    const double never = plan_.exposed_reduction, reduction = plan_.step[r].reduce_scatter.value(),
                 gather = plan_.step[r].all_gather.value();
    const auto share = [&](int stage) {
      return gradients > 0 ? bytes(stage) / gradients : 1.0 / static_cast<double>(last.size());
    };
    // A stage's part can be neither done before all that starts no earlier has had its time on the stream.
    double end = out_.actions[r].empty() ? 0 : out_.actions[r].back().end;
    for (const auto& [stage, start] : last) {
      double work = 0;
      for (const auto& [other, other_start] : last)
        if (other_start >= start) work += (1 - never) * reduction * share(other);
      end = std::max(end, start + work);
    }
    // Nor can a first forward end before all that is needed no later has been gathered.
    double late = 0;
    for (const auto& [stage, needed] : first) {
      double work = 0;
      for (const auto& [other, other_needed] : first)
        if (other_needed <= needed) work += (1 - never) * gather * share(other);
      late = std::max(late, work - needed);
    }
    out_.step_end.push_back(end + never * (reduction + gather) + plan_.step[r].optimizer.value() + late);
    out_.iteration = std::max(out_.iteration, out_.step_end.back());
  }

  void account_memory(std::size_t r) {
    double used = 0, peak = 0;
    for (std::size_t i = 0; i < out_.actions[r].size(); ++i) {
      const Action& a = plan_.actions.ranks[r][i];
      if (runs_forward(a)) peak = std::max(peak, used += plan_.activation(a.stage).value());
      if (!runs_other(a)) continue;
      const double activation = plan_.activation(StageId(bstage(a))).value(),
                   stash = plan_.weight_stash(StageId(bstage(a))).value();
      if (part(a) == ActionKind::full_backward) used -= activation;
      if (part(a) == ActionKind::input_gradient) peak = std::max(peak, used += stash - activation);
      if (part(a) == ActionKind::weight_gradient) used -= stash;
    }
    out_.peak_activation.push_back(peak);
  }

  const ExecutionPlan& plan_;
  Random random_;
  TwinResult out_;
  std::map<Key, double> arrived_;
  std::vector<double> link_;
};

}  // namespace tessera::train::testing
