#include "tessera/train/execution_plan/execution_plan.h"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "tessera/train/schedule/check_schedule.h"

namespace tessera::train {
namespace {

std::vector<ChunkBlock> chunk_blocks(const ExecutionPlan& plan, StageId stage) {
  std::vector<ChunkBlock> blocks;
  const BlockRange range = plan.partition.stages[stage.index()];
  for (std::int32_t b = range.begin; b < range.end; ++b) {
    const PlanBlock& block = plan.blocks[static_cast<std::size_t>(b)];
    blocks.push_back({.cost = &plan.costs[static_cast<std::size_t>(block.cost)], .layer = block.layer});
  }
  return blocks;
}

Bytes sum_of(const ExecutionPlan& plan, StageId stage, Bytes BlockMemory::* part) noexcept {
  Bytes sum;
  const BlockRange range = plan.partition.stages[stage.index()];
  for (std::int32_t b = range.begin; b < range.end; ++b)
    sum += plan.costs[static_cast<std::size_t>(plan.blocks[static_cast<std::size_t>(b)].cost)].memory.*part;
  return sum;
}

// ------------------------------------------------------------------------------------------- checks

std::unexpected<Error> at(std::string key, std::string message) {
  return std::unexpected(Error{.key = std::move(key), .message = std::move(message)});
}

// Finite and not negative.
template <class Unit>
bool amount(Quantity<Unit> quantity) noexcept {
  return std::isfinite(quantity.value()) && quantity.value() >= 0;
}

Status check_amount(const std::string& key, double value) {
  if (std::isfinite(value) && value >= 0) return {};
  return at(key, fmt::format("{} is not a finite number ≥ 0", value));
}

bool recomputable(TaskKind kind) noexcept {
  return kind == TaskKind::attention || kind == TaskKind::mlp || kind == TaskKind::shared;
}

Status check_cost(const BlockCost& cost, std::size_t index) {
  const std::string key = fmt::format("costs[{}]", index);
  for (std::size_t pass = 0; pass < kPasses; ++pass) {
    for (std::size_t kind = 0; kind < kTaskKinds; ++kind) {
      const TaskCost& task = cost.tasks[pass][kind];
      if (!task.exists) continue;
      const std::string name = task_name(static_cast<Pass>(pass), static_cast<TaskKind>(kind), -1);
      if (!amount(task.duration.time) || !amount(task.duration.error))
        return at(key, fmt::format("{} of {} takes {} ± {} s; expected finite numbers ≥ 0", name, cost.name,
                                   task.duration.time.value(), task.duration.error.value()));
      if (!(task.compute_share >= 0 && task.compute_share <= 1))
        return at(key, fmt::format("{} of {} has compute share {}; expected 0 … 1", name, cost.name,
                                   task.compute_share));
      if (static_cast<Pass>(pass) == Pass::weight &&
          resource_of(static_cast<TaskKind>(kind)) == Resource::comm)
        return at(key, fmt::format("{} of {}: a communication has no weight gradient", name, cost.name));
      if (static_cast<Pass>(pass) != Pass::recompute) continue;
      if (!recomputable(static_cast<TaskKind>(kind)))
        return at(key, fmt::format("{} of {}: only ATTN, MLP and SHARED have recompute of their own", name,
                                   cost.name));
      if (!cost.task(Pass::backward, static_cast<TaskKind>(kind)).exists)
        return at(key, fmt::format("{} of {}: there is no B task that needs it", name, cost.name));
    }
  }
  if (cost.memory.logits > cost.memory.activation)
    return at(key, fmt::format("{} holds {} bytes of logits in an activation of {}", cost.name,
                               cost.memory.logits.value(), cost.memory.activation.value()));
  if (!amount(cost.copy_time))
    return at(key, fmt::format("{} copies for {} s; expected a finite number ≥ 0", cost.name,
                               cost.copy_time.value()));
  for (const Bytes bytes :
       {cost.memory.weights, cost.memory.gradients, cost.memory.optimizer, cost.memory.activation,
        cost.memory.weight_stash, cost.memory.workspace, cost.memory.offloaded, cost.memory.logits})
    if (!amount(bytes))
      return at(key,
                fmt::format("{} holds {} bytes; expected a finite number ≥ 0", cost.name, bytes.value()));
  return {};
}

Status check_sizes(const ExecutionPlan& plan) {
  const auto pp = static_cast<std::size_t>(plan.layout.pp),
             stages = static_cast<std::size_t>(plan.layout.stages());
  if (plan.version < 1 || plan.version > kPlanVersion)
    return at("tessera_plan", fmt::format("version {} is not 1 … {}", plan.version, kPlanVersion));
  if (plan.layout.pp < 1 || plan.layout.vp < 1)
    return at("layout", fmt::format("pp {} and vp {} must be at least 1", plan.layout.pp, plan.layout.vp));
  if (plan.actions.ranks.size() != pp)
    return at("actions", fmt::format("{} ranks, but layout.pp is {}", plan.actions.ranks.size(), pp));
  if (plan.actions.stages() != stages)
    return at("actions", fmt::format("{} stages, but pp · vp is {}", plan.actions.stages(), stages));
  const std::int64_t pipelines = plan.actions.pipelines;
  if (pipelines < 1 || plan.layout.stages() % pipelines != 0)
    return at("actions", fmt::format("{} stages are not {} pipelines of equal length", stages, pipelines));
  if (const std::vector<bool>& shadow = plan.actions.shadow;
      !shadow.empty() && std::cmp_not_equal(shadow.size(), plan.actions.microbatches * pipelines))
    return at("actions", fmt::format("{} microbatches are told to be shadows or not, but there are {}",
                                     shadow.size(), plan.actions.microbatches * pipelines));
  if (plan.actions.real_microbatches() != plan.layout.microbatches)
    return at("actions",
              fmt::format("{} microbatches{}{}, but layout.microbatches is {}", plan.actions.microbatches,
                          pipelines == 1 ? "" : fmt::format(" in each of {} pipelines", pipelines),
                          plan.actions.shadow.empty()
                              ? ""
                              : fmt::format(", {} of them no shadows", plan.actions.real_microbatches()),
                          plan.layout.microbatches));
  if (plan.partition.stages.size() != stages)
    return at("partition", fmt::format("{} stages, but pp · vp is {}", plan.partition.stages.size(), stages));
  if (!plan.rank_speed.empty() && plan.rank_speed.size() != pp)
    return at("rank_speed", fmt::format("{} entries, but layout.pp is {}", plan.rank_speed.size(), pp));
  if (plan.step.size() != pp)
    return at("step", fmt::format("{} entries, but layout.pp is {}", plan.step.size(), pp));
  if (plan.memory.size() != pp)
    return at("memory", fmt::format("{} entries, but layout.pp is {}", plan.memory.size(), pp));
  return {};
}

Status check_blocks(const ExecutionPlan& plan) {
  ModelSpec model;  // check_partition reads the blocks only
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const PlanBlock& block = plan.blocks[i];
    if (block.cost < 0 || static_cast<std::size_t>(block.cost) >= plan.costs.size())
      return at(fmt::format("blocks[{}]", i),
                fmt::format("cost {} of {} costs", block.cost, plan.costs.size()));
    model.blocks.push_back({.kind = block.kind, .layer = block.layer});
  }
  // Every pipeline holds the whole model, cut at the same places.
  const std::size_t each = plan.partition.stages.size() / static_cast<std::size_t>(plan.actions.pipelines);
  Partition one;
  one.stages.assign(plan.partition.stages.begin(),
                    plan.partition.stages.begin() + static_cast<std::ptrdiff_t>(each));
  for (std::size_t s = each; s < plan.partition.stages.size(); ++s)
    if (plan.partition.stages[s] != one.stages[s % each])
      return at("partition",
                fmt::format("stage {} and stage {} are the same stage of two pipelines, but hold "
                            "other blocks",
                            s % each, s));
  if (auto status = check_partition(model, one); !status) {
    Error error = std::move(status).error();
    error.key = "partition";
    return std::unexpected(std::move(error));
  }
  for (std::size_t i = 0; i < plan.costs.size(); ++i) TESSERA_CHECK(check_cost(plan.costs[i], i));
  return {};
}

Status check_numbers(const ExecutionPlan& plan) {
  for (const double rate : {plan.interference.compute_bound_rate, plan.interference.memory_bound_rate})
    if (!(rate > 0 && rate <= 1))
      return at("interference", fmt::format("rate {} is not above 0 and at most 1", rate));
  TESSERA_CHECK(check_amount("transfer.latency", plan.transfer_latency.value()));
  TESSERA_CHECK(check_amount("transfer.time", plan.transfer_time.value()));
  for (std::size_t r = 0; r < plan.rank_speed.size(); ++r)
    if (!(plan.rank_speed[r] > 0) || !std::isfinite(plan.rank_speed[r]))
      return at(fmt::format("rank_speed[{}]", r),
                fmt::format("{} is not a finite number above 0", plan.rank_speed[r]));
  for (std::size_t r = 0; r < plan.step.size(); ++r)
    for (const Seconds time : {plan.step[r].reduce_scatter, plan.step[r].all_gather, plan.step[r].optimizer})
      TESSERA_CHECK(check_amount(fmt::format("step[{}]", r), time.value()));
  if (!(plan.exposed_reduction >= 0 && plan.exposed_reduction <= 1))
    return at("exposed_reduction", fmt::format("{} is not a share from 0 to 1", plan.exposed_reduction));
  for (std::size_t r = 0; r < plan.memory.size(); ++r) {
    const RankMemory& m = plan.memory[r];
    for (const Bytes bytes : {m.weights, m.gradients, m.optimizer, m.workspace, m.transfer, m.context})
      TESSERA_CHECK(check_amount(fmt::format("memory[{}]", r), bytes.value()));
  }
  return {};
}

Status check_pairs(const ExecutionPlan& plan) {
  std::set<std::pair<StageId, StageId>> known;
  for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
    const PairPlan& pair = plan.pairs[i];
    const std::string key = fmt::format("pairs[{}]", i);
    for (const StageId stage : {pair.forward, pair.backward})
      if (stage.value() < 0 || stage.index() >= plan.actions.stages())
        return at(key, fmt::format("stage {} of {} stages", stage.value(), plan.actions.stages()));
    if (!known.emplace(pair.forward, pair.backward).second)
      return at(key, fmt::format("the pair of stage {} forward and stage {} backward is there twice",
                                 pair.forward.value(), pair.backward.value()));
    for (const Seconds time : {pair.makespan, pair.nominal, pair.bound})
      TESSERA_CHECK(check_amount(key, time.value()));
    if (pair.measured) {
      const auto [makespan, error] = *pair.measured;
      if (!(makespan.value() > 0) || !std::isfinite(makespan.value()) || !(error >= 0 && error < 1))
        return at(key, fmt::format("measured {} s ± {}; expected a finite time above 0 and an error from 0 "
                                   "to less than 1",
                                   makespan.value(), error));
    }
  }
  std::set<std::tuple<StageId, StageId, ActionKind>> seen;
  for (std::size_t r = 0; r < plan.actions.ranks.size(); ++r) {
    for (const Action& cell : plan.actions.ranks[r]) {
      const auto action = plan.actions.real_part(cell);
      if (!action || action->kind != ActionKind::overlap ||
          !seen.emplace(action->stage, action->backward_stage, action->backward_kind).second)
        continue;
      if (auto run = pair_run(plan, *action); !run) {
        Error error = std::move(run).error();
        error.key = fmt::format("pairs: stage {} forward, stage {} backward", action->stage.value(),
                                action->backward_stage.value());
        return std::unexpected(std::move(error));
      }
    }
  }
  return {};
}

}  // namespace

TaskGraph ExecutionPlan::forward_graph(StageId stage) const {
  return forward_chunk(chunk_blocks(*this, stage));
}
TaskGraph ExecutionPlan::backward_graph(StageId stage, Backward part) const {
  return backward_chunk(chunk_blocks(*this, stage), part);
}
Bytes ExecutionPlan::activation(StageId stage) const noexcept {
  return sum_of(*this, stage, &BlockMemory::activation);
}
Bytes ExecutionPlan::logits(StageId stage) const noexcept {
  return sum_of(*this, stage, &BlockMemory::logits);
}
Bytes ExecutionPlan::weight_stash(StageId stage) const noexcept {
  return sum_of(*this, stage, &BlockMemory::weight_stash);
}
Seconds ExecutionPlan::copy_time(StageId stage) const noexcept {
  const BlockRange range = partition.stages[stage.index()];
  Seconds sum;
  for (std::int32_t b = range.begin; b < range.end; ++b)
    sum += costs[static_cast<std::size_t>(blocks[static_cast<std::size_t>(b)].cost)].copy_time;
  return sum;
}

const PairPlan* ExecutionPlan::pair(StageId forward, StageId backward) const noexcept {
  for (const PairPlan& pair : pairs)
    if (pair.forward == forward && pair.backward == backward) return &pair;
  return nullptr;
}

Result<PairRun> pair_run(const ExecutionPlan& plan, const Action& overlap) {
  const PairPlan* pair = plan.pair(overlap.stage, overlap.backward_stage);
  if (pair == nullptr)
    return bad_input(
        fmt::format("{} overlaps stage {} forward with stage {} backward, but the plan has no such pair",
                    text(overlap), overlap.stage.value(), overlap.backward_stage.value()));
  const bool split = overlap.backward_kind == ActionKind::input_gradient;
  PairRun run;
  run.graph = pair_graph(
      plan.forward_graph(overlap.stage),
      plan.backward_graph(overlap.backward_stage, split ? Backward::input_gradient : Backward::full));
  if (split) {
    std::vector<std::string> names;
    for (const std::string& name : pair->sequence)
      if (const auto parsed = parse_task_name(name); !parsed || parsed->pass != Pass::weight)
        names.push_back(name);
    TESSERA_TRY(run.order, order_by_names(run.graph, names));
  } else {
    TESSERA_TRY(run.order, order_by_names(run.graph, pair->sequence));
  }
  return run;
}

Status check_plan(const ExecutionPlan& plan) {
  TESSERA_CHECK(check_sizes(plan));
  TESSERA_CHECK(check_blocks(plan));
  TESSERA_CHECK(check_numbers(plan));
  if (auto facts = check_schedule(plan.actions); !facts) {
    Error error = std::move(facts).error();
    error.key = "actions";
    return std::unexpected(std::move(error));
  }
  return check_pairs(plan);
}

}  // namespace tessera::train
