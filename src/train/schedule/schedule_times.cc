#include "tessera/train/schedule/schedule_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "tessera/train/schedule/eager.h"

namespace tessera::train {
namespace {

Seconds duration(ActionKind kind, const StageCost& cost) noexcept {
  switch (kind) {
    case ActionKind::forward:
      return cost.forward;
    case ActionKind::input_gradient:
      return cost.input_gradient;
    case ActionKind::weight_gradient:
      return cost.weight_gradient;
    default:
      return cost.input_gradient + cost.weight_gradient;
  }
}

// Idle share of all ranks' spans.
double idle_share(const std::vector<Seconds>& busy, Seconds all_spans) noexcept {
  const Seconds work = std::accumulate(busy.begin(), busy.end(), Seconds(0));
  return all_spans > Seconds(0) ? 1 - work / all_spans : 0.0;
}

}  // namespace

double ScheduleTimes::bubble() const noexcept {
  return idle_share(busy, makespan * static_cast<double>(busy.size()));
}
double ScheduleTimes::own_span_bubble() const noexcept {
  return idle_share(busy, std::accumulate(own_span.begin(), own_span.end(), Seconds(0)));
}

Result<ScheduleTimes> time_schedule(const ActionList& list, const ScheduleCosts& costs, double pair_share) {
  if (!costs.stages.empty() && costs.stages.size() != list.stages())
    return bad_input(
        fmt::format("costs of {} stages for a schedule of {}", costs.stages.size(), list.stages()));
  TESSERA_CHECK(check_schedule(list));
  TESSERA_TRY(const ActionIndex index, ActionIndex::build(list));
  const StageCost unit;
  const auto cost = [&](StageId stage) -> const StageCost& {
    return costs.stages.empty() ? unit : costs.stages[stage.index()];
  };
  ScheduleTimes times;
  times.ranks.resize(list.ranks.size());
  for (std::size_t r = 0; r < list.ranks.size(); ++r) times.ranks[r].resize(list.ranks[r].size());
  times.busy.assign(list.ranks.size(), Seconds(0));
  std::vector<Seconds> free(list.ranks.size(), Seconds(0));
  run_eagerly(list, index, [&](ActionAt at) {
    const auto r = static_cast<std::size_t>(at.rank), i = static_cast<std::size_t>(at.index);
    const Action& action = list.ranks[r][i];
    const ActionInputs inputs = inputs_of(action, index, list);
    Seconds start = free[r];
    for (const ActionAt input : {inputs.forward, inputs.backward})
      if (input.rank >= 0)
        start = std::max(
            start,
            times.ranks[static_cast<std::size_t>(input.rank)][static_cast<std::size_t>(input.index)].end +
                (input.rank == at.rank ? Seconds(0) : costs.transfer));
    const Seconds takes =
        action.kind == ActionKind::overlap
            ? (cost(action.stage).forward + duration(action.backward_kind, cost(action.backward_stage))) *
                  pair_share
            : duration(action.kind, cost(action.stage));
    times.ranks[r][i] = {start, start + takes};
    times.busy[r] += takes;
    free[r] = start + takes;
  });
  times.makespan = free.empty() ? Seconds(0) : *std::ranges::max_element(free);
  for (std::size_t r = 0; r < free.size(); ++r)
    times.own_span.push_back(times.ranks[r].empty() ? Seconds(0) : free[r] - times.ranks[r].front().start);
  return times;
}

std::vector<TemplateFigures> compare_templates(const TemplateSizes& sizes, const StageCost& chunk,
                                               Seconds transfer, double pair_share) {
  std::vector<TemplateFigures> out;
  for (std::size_t t = 0; t < kTemplates; ++t) {
    const auto schedule = static_cast<Template>(t);
    const TemplateTraits& of = traits(schedule);
    TemplateFigures& row = out.emplace_back();
    row.schedule = schedule;
    row.chunks = of.chunks != 0 ? of.chunks : sizes.vp;
    TemplateSizes own = sizes;
    own.vp = row.chunks;
    if (!of.groups || own.vp == 1) own.group = 0;
    ScheduleCosts costs{.transfer = transfer};
    const std::int64_t stages = std::int64_t{own.pp} * own.vp;
    if (stages > 0 && stages <= 1 << 20) costs.stages.assign(static_cast<std::size_t>(stages), chunk);
    auto list = make_schedule(schedule, own, costs);
    if (!list && of.groups && own.vp > 1) {
      // Nearest legal group, as the planner does.
      const auto legal = legal_groups(own.pp, own.microbatches);
      const std::int32_t wanted = own.group != 0 ? own.group : own.pp;
      const auto nearest =
          std::ranges::min_element(legal, {}, [&](std::int32_t group) { return std::abs(group - wanted); });
      if (nearest != legal.end()) {
        own.group = *nearest;
        list = make_schedule(schedule, own, costs);
      }
    }
    const auto facts = list ? check_schedule(*list) : std::unexpected(list.error());
    const auto times = facts ? time_schedule(*list, costs, pair_share) : std::unexpected(facts.error());
    if (!times) {
      row.refusal = times.error();
      continue;
    }
    row.legal = true;
    const bool plain = schedule == Template::interleaved || schedule == Template::interleaved_overlap;
    row.group = own.group != 0 ? own.group : plain && own.vp > 1 ? own.pp : 0;
    row.makespan = times->makespan;
    row.bubble = times->bubble();
    row.own_span_bubble = times->own_span_bubble();
    const Seconds work = *std::ranges::max_element(times->busy);
    row.over_work = work > Seconds(0) ? times->makespan / work : 1;
    row.peak_live = std::ranges::max(facts->peak_live);
    row.peak_until_weight = std::ranges::max(facts->peak_until_weight);
  }
  // Equal but for rounding is equal; then in the order of the templates.
  std::ranges::sort(out, {}, [](const TemplateFigures& row) {
    return std::tuple(!row.legal, std::llround(row.over_work * 1e9), row.schedule);
  });
  return out;
}

}  // namespace tessera::train
