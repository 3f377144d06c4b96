#include "timeline.h"

#include <algorithm>

#include "action_parts.h"
#include "tessera/train/schedule/check_schedule.h"
#include "tessera/train/schedule/eager.h"

namespace tessera::train {
namespace {

class Pipeline {
 public:
  Pipeline(const ExecutionPlan& plan, const ActionTimings& timings, bool transfers)
      : plan_(plan),
        timings_(timings),
        record_(transfers),
        microbatches_(static_cast<std::size_t>(plan.actions.microbatches)),
        forward_arrival_(plan.actions.stages() * microbatches_),
        backward_arrival_(plan.actions.stages() * microbatches_),
        link_free_(plan.actions.ranks.size()),
        sent_(plan.actions.ranks.size()) {
    for (const auto& actions : plan.actions.ranks) out_.start.emplace_back(actions.size());
    out_.rank_end.resize(plan.actions.ranks.size());
    out_.first_forward.resize(plan.actions.stages());
    out_.last_backward.resize(plan.actions.stages());
    forward_done_.resize(plan.actions.stages(), false);
  }

  void run(ActionAt at) {
    const auto rank = static_cast<std::size_t>(at.rank), index = static_cast<std::size_t>(at.index);
    const Action& action = plan_.actions.ranks[rank][index];
    const ActionTiming& inside = timings_.at(rank, index);
    // What nobody sends (into the first stage, or back into the last) has arrived at 0.
    Seconds start = out_.rank_end[rank];
    if (has_forward(action)) start = std::max(start, forward_arrival_[slot(action.stage, action.microbatch)]);
    if (has_backward(action))
      start = std::max(start, backward_arrival_[slot(backward_stage(action), backward_microbatch(action))]);
    const Seconds end = start + inside.duration;
    out_.start[rank][index] = start;
    out_.rank_end[rank] = end;

    if (has_forward(action)) {
      if (plan_.actions.has_next(action.stage))
        send(action.stage, StageId(action.stage.value() + 1), action.microbatch, end, false);
      // A shadow needs no weights and makes no gradients.
      if (!forward_done_[action.stage.index()] && !shadow(action.stage, action.microbatch)) {
        out_.first_forward[action.stage.index()] = end;
        forward_done_[action.stage.index()] = true;
      }
    }
    if (has_backward(action)) {
      const StageId stage = backward_stage(action);
      if (plan_.actions.has_previous(stage))
        send(stage, StageId(stage.value() - 1), backward_microbatch(action), end, true);
    }
    if (has_weight(action) && !shadow(backward_stage(action), backward_microbatch(action)))
      out_.last_backward[backward_stage(action).index()] = start;
  }

  Timeline take() {
    for (const auto& sent : sent_) out_.transfers.insert(out_.transfers.end(), sent.begin(), sent.end());
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool shadow(StageId stage, MicrobatchId microbatch) const noexcept {
    return plan_.actions.is_shadow(stage, microbatch);
  }
  [[nodiscard]] std::size_t slot(StageId stage, MicrobatchId microbatch) const noexcept {
    return stage.index() * microbatches_ + microbatch.index();
  }

  void send(StageId from, StageId to, MicrobatchId microbatch, Seconds ready, bool backward) {
    const RankId sender = plan_.actions.rank_of_stage[from.index()],
                 receiver = plan_.actions.rank_of_stage[to.index()];
    Seconds& arrival = (backward ? backward_arrival_ : forward_arrival_)[slot(to, microbatch)];
    arrival = ready;
    if (sender == receiver) return;
    // The latency does not occupy the link: the next send may follow the last byte.
    const Seconds start = std::max(ready, link_free_[sender.index()]);
    link_free_[sender.index()] = start + plan_.transfer_time;
    arrival = start + (plan_.transfer_latency + plan_.transfer_time);
    if (record_)
      sent_[sender.index()].push_back(
          {sender.value(), receiver.value(), from, to, microbatch, backward, ready, start, arrival});
  }

  const ExecutionPlan& plan_;
  const ActionTimings& timings_;
  bool record_;
  std::size_t microbatches_;
  std::vector<Seconds> forward_arrival_, backward_arrival_;  // at a stage, per microbatch
  std::vector<Seconds> link_free_;                           // per sending rank
  std::vector<bool> forward_done_;                           // per stage
  std::vector<std::vector<TransferSpan>> sent_;
  Timeline out_;
};

}  // namespace

Result<Timeline> run_actions(const ExecutionPlan& plan, const ActionTimings& timings, bool transfers) {
  TESSERA_TRY(const ActionIndex index, ActionIndex::build(plan.actions));
  Pipeline pipeline(plan, timings, transfers);
  const std::vector<std::int32_t> done =
      run_eagerly(plan.actions, index, [&](ActionAt at) { pipeline.run(at); });
  for (std::size_t r = 0; r < done.size(); ++r) {
    if (static_cast<std::size_t>(done[r]) == plan.actions.ranks[r].size()) continue;
    const auto facts = check_schedule(plan.actions);
    return facts ? infeasible("the schedule deadlocks") : std::unexpected(facts.error());
  }
  return pipeline.take();
}

}  // namespace tessera::train
