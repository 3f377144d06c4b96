#include "tessera/train/simulate/simulate.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "action_parts.h"
#include "action_timing.h"
#include "gradient_share.h"
#include "inner_memory.h"
#include "timeline.h"

namespace tessera::train {
namespace {

// One rank of a simulated step, read off the timeline.
class RankAccount {
 public:
  RankAccount(const ExecutionPlan& plan, const ActionTimings& timings, const Timeline& timeline,
              std::size_t rank)
      : plan_(plan),
        timings_(timings),
        timeline_(timeline),
        rank_(rank),
        actions_(plan.actions.ranks[rank]) {}

  [[nodiscard]] Seconds start(std::size_t i) const noexcept { return timeline_.start[rank_][i]; }
  [[nodiscard]] Seconds end(std::size_t i) const noexcept { return start(i) + inside(i).duration; }
  [[nodiscard]] const ActionTiming& inside(std::size_t i) const noexcept { return timings_.at(rank_, i); }

  void time(Seconds pipeline, RankResult& out) const {
    Seconds first_backward = pipeline, last_forward;
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      out.comp_busy += inside(i).comp_busy;
      out.comm_busy += inside(i).comm_busy;
      out.exposed_comm += inside(i).exposed_comm;
      const std::optional<Action> real = plan_.actions.real_part(actions_[i]);
      if (!real) continue;
      if (has_backward(*real)) first_backward = std::min(first_backward, start(i));
      if (has_forward(*real)) last_forward = std::max(last_forward, end(i));
    }
    out.pipeline_end = timeline_.rank_end[rank_];

    // The idle time before each action and after the last one, split at the two turning points.
    const Seconds warm = first_backward, cool = std::max(first_backward, last_forward);
    const auto idle = [&](Seconds from, Seconds to) {
      const auto within = [&](Seconds low, Seconds high) {
        const Seconds a = std::max(from, low), b = std::min(to, high);
        return b > a ? b - a : Seconds();
      };
      out.warmup_idle += within(Seconds(), warm);
      out.imbalance_idle += within(warm, cool);
      out.cooldown_idle += within(cool, pipeline);
    };
    Seconds free;
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      idle(free, start(i));
      free = end(i);
    }
    idle(free, pipeline);
  }

  void memory(bool curve, RankResult& out) const {
    const Bytes fixed = rank_ < plan_.memory.size() ? plan_.memory[rank_].total() : Bytes();
    Bytes used;
    const auto change = [&](Seconds when, Bytes by) {
      if (by == Bytes()) return;
      used += by;
      out.peak_activation = std::max(out.peak_activation, used);
      if (!curve) return;
      // What is freed and taken again in the same instant is no dip; a peak without length stays.
      MemoryPoint& last = out.memory.back();
      if (last.time == when && last.used <= fixed + used)
        last.used = fixed + used;
      else
        out.memory.push_back({when, fixed + used});
    };
    if (curve) out.memory.push_back({Seconds(), fixed});

    // Of activations without logits, which come and go inside an action.
    std::vector<Bytes> activation(plan_.actions.stages()), stash(plan_.actions.stages());
    for (std::size_t s = 0; s < plan_.actions.stages(); ++s) {
      if (plan_.actions.rank_of_stage[s].index() != rank_) continue;
      const Bytes logits = plan_.logits(StageId(static_cast<std::int64_t>(s)));
      activation[s] = plan_.activation(StageId(static_cast<std::int64_t>(s))) - logits;
      stash[s] = plan_.weight_stash(StageId(static_cast<std::int64_t>(s)));
    }
    const auto chunks = [&](StageId stage) {  // an empty stage keeps nothing alive
      const BlockRange range = plan_.partition.stages[stage.index()];
      return range.begin == range.end ? 0 : 1;
    };
    // Equal actions share their timing, and so what happens inside them.
    std::map<const ActionTiming*, std::vector<MemoryChange>> inner;
    for (std::size_t i = 0; i < actions_.size(); ++i)
      if (const auto real = plan_.actions.real_part(actions_[i]))
        if (const auto [at, added] = inner.try_emplace(&inside(i)); added)
          at->second = inner_changes(plan_, *real, inside(i).tasks);
    std::int32_t live = 0;
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      const std::optional<Action> real = plan_.actions.real_part(actions_[i]);
      if (!real) continue;
      const Action& action = *real;
      if (has_forward(action)) {
        change(start(i), activation[action.stage.index()]);
        live += chunks(action.stage);
        out.peak_live = std::max(out.peak_live, live);
      }
      const std::size_t s = backward_stage(action).index();
      for (const MemoryChange& each : inner.at(&inside(i))) change(start(i) + each.time, each.by);
      if (has_backward(action)) live -= chunks(backward_stage(action));
      switch (backward_part(action)) {
        case ActionKind::full_backward:
          change(end(i), -activation[s]);
          break;
        // What W still needs stays, the rest of the activation goes.
        case ActionKind::input_gradient:
          change(end(i), stash[s] - activation[s]);
          break;
        case ActionKind::weight_gradient:
          change(end(i), -stash[s]);
          break;
        case ActionKind::forward:
        case ActionKind::overlap:
          break;
      }
    }
    out.peak_memory = fixed + out.peak_activation;
  }

  // What of the collectives can hide runs on a stream of its own: gradients bucket by bucket as the last
  // backward makes them, weights of the next step bucket by bucket before its first forward needs them. Steps
  // are alike, so this step's forwards stand for the next one's.
  void step(const GradientShare& share, RankResult& out) const {
    out.step_end = out.pipeline_end;
    if (rank_ >= plan_.step.size()) return;
    const RankStep& step = plan_.step[rank_];
    std::vector<std::size_t> stages;
    for (std::size_t s = 0; s < plan_.actions.stages(); ++s)
      if (plan_.actions.rank_of_stage[s].index() == rank_) stages.push_back(s);
    const double hides = 1 - plan_.exposed_reduction;

    std::ranges::sort(stages, {}, [&](std::size_t s) { return std::pair(timeline_.last_backward[s], s); });
    Seconds reduced;
    for (const std::size_t s : stages)
      reduced = std::max(reduced, timeline_.last_backward[s]) + step.reduce_scatter * (hides * share.of(s));

    std::ranges::sort(stages, {}, [&](std::size_t s) { return std::pair(timeline_.first_forward[s], s); });
    Seconds gathered, late;
    for (const std::size_t s : stages) {
      gathered += step.all_gather * (hides * share.of(s));
      late = std::max(late, gathered - timeline_.first_forward[s]);
    }
    out.step_end = std::max(out.step_end, reduced) + step.optimizer + late +
                   (step.reduce_scatter + step.all_gather) * plan_.exposed_reduction;
  }

  void slices(SimulateResult& out) const {
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      const Action& action = actions_[i];
      out.actions.push_back(
          {static_cast<std::int32_t>(rank_), static_cast<std::int32_t>(i), start(i), end(i)});
      for (const TaskTiming& task : inside(i).tasks)
        out.slices.push_back({static_cast<std::int32_t>(rank_), task.stream, task.name,
                              task.forward ? action.stage : backward_stage(action),
                              task.forward ? action.microbatch : backward_microbatch(action),
                              start(i) + task.start, start(i) + task.end});
    }
  }
  [[nodiscard]] std::size_t task_count() const noexcept {
    std::size_t count = 0;
    for (std::size_t i = 0; i < actions_.size(); ++i) count += inside(i).tasks.size();
    return count;
  }

 private:
  const ExecutionPlan& plan_;
  const ActionTimings& timings_;
  const Timeline& timeline_;
  std::size_t rank_;
  const std::vector<Action>& actions_;
};

}  // namespace

Result<SimulateResult> simulate(const ExecutionPlan& plan, const SimulateOptions& options) {
  TESSERA_TRY(const ActionTimings timings, ActionTimings::build(plan));
  TESSERA_TRY(Timeline timeline, run_actions(plan, timings, options.slices));
  SimulateResult result;
  result.transfers = std::move(timeline.transfers);
  for (const Seconds end : timeline.rank_end) result.pipeline = std::max(result.pipeline, end);
  result.lower_bound = lower_bound(plan);
  result.ranks.resize(plan.actions.ranks.size());

  const GradientShare share(plan);
  std::size_t tasks = 0, actions = 0;
  for (std::size_t r = 0; r < result.ranks.size(); ++r) {
    const RankAccount account(plan, timings, timeline, r);
    account.time(result.pipeline, result.ranks[r]);
    account.memory(options.slices, result.ranks[r]);
    account.step(share, result.ranks[r]);
    result.iteration = std::max(result.iteration, result.ranks[r].step_end);
    tasks += account.task_count();
    actions += plan.actions.ranks[r].size();
  }
  if (options.slices) {
    result.slices.reserve(tasks);
    result.actions.reserve(actions);
    for (std::size_t r = 0; r < result.ranks.size(); ++r)
      RankAccount(plan, timings, timeline, r).slices(result);
  }
  return result;
}

}  // namespace tessera::train
