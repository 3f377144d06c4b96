// No order of the plan's actions is faster: a rank cannot start before its first input can be there, has all
// its work to do, and after its last action the gradients still have to reach the first stage.
#include <algorithm>
#include <limits>

#include "action_parts.h"
#include "action_timing.h"
#include "gradient_share.h"
#include "tessera/train/overlap/pair_bounds.h"
#include "tessera/train/simulate/simulate.h"

namespace tessera::train {
namespace {

// A measured pair may take less time than its tasks say: per stage, the least stretch of any pair that its
// forward, or its backward, runs in. Alone nothing is stretched, so it is at most 1.
struct Stretch {
  double forward = 1, backward = 1;
};

std::vector<Stretch> least_stretch(const ExecutionPlan& plan) {
  std::vector<Stretch> out(plan.actions.stages());
  for (const PairPlan& pair : plan.pairs) {
    if (!pair.measured) continue;
    const TaskGraph graph = at_rank_speed(
        plan, pair.forward, pair_graph(plan.forward_graph(pair.forward), plan.backward_graph(pair.backward)));
    const auto order = order_by_names(graph, pair.sequence);
    if (!order) continue;
    const double stretch = measured_stretch(pair, run_order(graph, *order, plan.interference).makespan);
    double& forward = out[pair.forward.index()].forward;
    double& backward = out[pair.backward.index()].backward;
    forward = std::min(forward, stretch);
    backward = std::min(backward, stretch);
  }
  return out;
}

struct StageWork {
  Seconds forward;            // the shortest its forward can take, whatever it is overlapped with
  Seconds backward;           // the same of what must be done before its gradient leaves
  Seconds alone;              // the longest its last action with weight gradients can take: a full backward
  Seconds comp, comm;         // of one microbatch, all passes
  bool split_weight = false;  // the plan runs W apart from B somewhere: it may come last
};

StageWork work_of(const ExecutionPlan& plan, StageId stage, bool split_weight, const Stretch& least) {
  const TaskGraph forward = at_rank_speed(plan, stage, plan.forward_graph(stage));
  const TaskGraph full = at_rank_speed(plan, stage, plan.backward_graph(stage));
  StageWork work{.forward = pair_bound(forward) * least.forward, .split_weight = split_weight};
  work.alone = full.load(Resource::comp) + full.load(Resource::comm);
  work.backward =
      pair_bound(split_weight
                     ? at_rank_speed(plan, stage, plan.backward_graph(stage, Backward::input_gradient))
                     : full) *
      least.backward;
  const auto load = [&](Resource resource) {
    return forward.load(resource) * least.forward + full.load(resource) * least.backward;
  };
  work.comp = load(Resource::comp);
  work.comm = load(Resource::comm);
  return work;
}

Seconds hop(const ExecutionPlan& plan, std::size_t from, std::size_t to) noexcept {
  return plan.actions.rank_of_stage[from] == plan.actions.rank_of_stage[to]
             ? Seconds()
             : plan.transfer_latency + plan.transfer_time;
}

}  // namespace

Seconds lower_bound(const ExecutionPlan& plan) {
  const std::size_t stages = plan.actions.stages(), ranks = plan.actions.ranks.size();
  if (plan.actions.microbatches < 1 || stages == 0) return {};

  std::vector<bool> split(stages, false);
  for (const auto& actions : plan.actions.ranks)
    for (const Action& cell : actions)
      if (const auto action = plan.actions.real_part(cell);
          action && backward_part(*action) == ActionKind::input_gradient)
        split[backward_stage(*action).index()] = true;
  const std::vector<Stretch> stretch = least_stretch(plan);
  std::vector<StageWork> work;
  for (std::size_t s = 0; s < stages; ++s)
    work.push_back(work_of(plan, StageId(static_cast<std::int64_t>(s)), split[s], stretch[s]));

  const GradientShare share(plan);
  const RankStep no_step;
  const auto step_of = [&](std::size_t s) -> const RankStep& {
    const std::size_t rank = plan.actions.rank_of_stage[s].index();
    return rank < plan.step.size() ? plan.step[rank] : no_step;
  };
  const auto reduction = [&](std::size_t s) {  // from the start of the stage's last weight gradients on
    return step_of(s).reduce_scatter * ((1 - plan.exposed_reduction) * share.of(s));
  };
  const auto end_of_step = [&](std::size_t s) {
    const RankStep& step = step_of(s);
    return step.optimizer + (step.reduce_scatter + step.all_gather) * plan.exposed_reduction;
  };

  constexpr Seconds kNever(std::numeric_limits<double>::infinity());
  std::vector<Seconds> head(ranks, kNever), tail(ranks, kNever), comp(ranks), comm(ranks);
  Seconds reach;          // earliest start of stage s
  Seconds back;           // from the end of stage s's backward to the start of the first stage's
  std::size_t first = 0;  // stage of this pipeline
  for (std::size_t s = 0; s < stages; ++s) {
    const std::size_t rank = plan.actions.rank_of_stage[s].index();
    if (plan.actions.has_previous(StageId(static_cast<std::int64_t>(s)))) {
      reach += work[s - 1].forward + hop(plan, s - 1, s);
      back += hop(plan, s, s - 1) + (s > first + 1 ? work[s - 1].backward : Seconds());
    } else {
      first = s;
      reach = back = Seconds();
    }
    head[rank] = std::min(head[rank], reach);
    // A rank's last action is a backward or a weight gradient of one of its stages, and runs alone.
    Seconds after_last = std::max(reduction(s) - work[s].alone, Seconds()) + end_of_step(s);
    if (s > first && !work[s].split_weight)
      after_last =
          std::max(after_last, back + std::max(work[first].backward, reduction(first)) + end_of_step(first));
    tail[rank] = std::min(tail[rank], after_last);
    const double microbatches = plan.actions.real_microbatches(StageId(static_cast<std::int64_t>(s)));
    comp[rank] += work[s].comp * microbatches;
    comm[rank] += work[s].comm * microbatches;
  }
  Seconds bound;
  for (std::size_t r = 0; r < ranks; ++r)
    if (head[r] != kNever) bound = std::max(bound, head[r] + std::max(comp[r], comm[r]) + tail[r]);
  return bound;
}

}  // namespace tessera::train
