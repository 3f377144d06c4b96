#include "assemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "measured_share.h"
#include "tessera/core/base/hash.h"
#include "tessera/core/base/text.h"
#include "tessera/core/model/count.h"
#include "tessera/train/overlap/pair_table.h"
#include "tessera/train/schedule/shadow.h"

namespace tessera::train {

namespace {

// The templates know no job: their error gets the place of the job's schedule section, or of its layout.
Error in_schedule(const Job& job, Error error) {
  error.file = job.file;
  error.key = "schedule";
  if (!job.document) return error;
  const Cursor root = job.document->root();
  const auto section = root.find("schedule") ? root.find("schedule") : root.find("layout");
  if (section) error.line = section->line();
  return error;
}

// A stage's durations by hand, as one block: an attention task for each pass.
BlockCost hand_given_stage(std::size_t stage, const StageDurations& given) {
  BlockCost cost;
  cost.name = fmt::format("stage {}", stage);
  const std::pair<Pass, Seconds> passes[] = {
      {Pass::forward, given.forward}, {Pass::backward, given.backward}, {Pass::weight, given.weight}};
  for (const auto& [pass, time] : passes) {
    TaskCost& task = cost.task(pass, TaskKind::attention);
    task.exists = true;
    task.duration = Estimate(time, Provenance::given, 0.0);
  }
  return cost;
}

// With durations per stage, the first block of a stage carries them and the others cost no time. Bytes stay
// theirs.
Status apply_stage_durations(const Job& job, ExecutionPlan& plan) {
  const std::vector<BlockCost> priced = std::move(plan.costs);
  plan.costs.clear();
  for (std::size_t s = 0; s < job.stage_durations.size(); ++s) {
    const BlockRange range = plan.partition.stages[s];
    const StageDurations& given = job.stage_durations[s];
    if (range.begin == range.end && given.forward + given.backward + given.weight > Seconds(0))
      return std::unexpected(Error{.file = job.file,
                                   .key = fmt::format("cost.stages[{}]", s),
                                   .message = fmt::format("stage {} holds no layer and so takes no time", s),
                                   .hint = "Give it 0, or use a partition that puts a layer there."});
    for (std::int32_t b = range.begin; b < range.end; ++b) {
      PlanBlock& block = plan.blocks[static_cast<std::size_t>(b)];
      const BlockCost& was = priced[static_cast<std::size_t>(block.cost)];
      BlockCost cost;
      if (b == range.begin) {
        cost = hand_given_stage(s, given);
      } else {
        cost.name = fmt::format("{} in stage {}", was.name, s);
      }
      cost.memory = was.memory;
      block.cost = static_cast<std::int32_t>(plan.costs.size());
      plan.costs.push_back(std::move(cost));
    }
  }
  return {};
}

// Each fingerprint covers all of its section that the plan depends on; the bytes are hashed, never parsed.
std::string cost_fingerprint(const ExecutionPlan& plan) {
  std::string bytes;
  const auto add = [&](double value) { bytes += exact(value) + ";"; };
  for (const BlockCost& cost : plan.costs) {
    bytes += cost.name + ";";
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      for (std::size_t kind = 0; kind < kTaskKinds; ++kind) {
        const TaskCost& task = cost.tasks[pass][kind];
        // Few blocks have recompute: what is not there leaves no trace.
        if (static_cast<Pass>(pass) == Pass::recompute) {
          if (!task.exists) continue;
          bytes += task_name(Pass::recompute, static_cast<TaskKind>(kind), -1) + ";";
        }
        add(task.duration.time.value());
        add(task.compute_share);
      }
    }
    add(cost.memory.activation.value());
    add(cost.memory.logits.value());
    add(cost.memory.weight_stash.value());
    add(cost.memory.workspace.value());
    if (cost.copy_time > Seconds(0)) add(cost.copy_time.value());
  }
  add(plan.interference.compute_bound_rate);
  add(plan.interference.memory_bound_rate);
  add(plan.transfer_latency.value());
  add(plan.transfer_time.value());
  // Few plans have measured pairs: what is not there leaves no trace.
  for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
    if (!plan.pairs[i].measured) continue;
    bytes += fmt::format("{};", i);
    add(plan.pairs[i].measured->makespan.value());
  }
  return fingerprint(bytes);
}

std::string model_fingerprint(const ModelSpec& model) {
  std::string kinds;
  for (const Block& block : model.blocks)
    kinds += fmt::format("{}.{};", static_cast<int>(block.kind), block.type);
  return fingerprint(fmt::format("{};{};{};{};{}", model.family, model.hidden, model.vocabulary, kinds,
                                 count_parameters(model).model.total()));
}

std::string cluster_fingerprint(const Cluster& c) {
  const Fabric& f = c.fabric;
  std::string bytes = fmt::format(
      "{};{};{};{};{};{};{};{};{};{};{};{};{};{};{}", c.name, c.gpu.name, c.gpu.memory.value(),
      c.gpu.memory_bandwidth.value(), c.gpu.multiprocessors, c.gpu.host_link.value(), f.scale_up_size,
      f.scale_up_bandwidth.value(), f.scale_out_bandwidth.value(), f.scale_up_efficiency,
      f.scale_out_efficiency, f.scale_up_latency.value(), f.scale_out_latency.value(),
      f.communication_multiprocessors, f.bandwidth_per_multiprocessor.value());
  for (const FlopsPerSecond peak : c.gpu.peak) bytes += fmt::format(";{}", peak.value());
  for (const double speed : c.rank_speed) bytes += fmt::format(";{}", speed);
  return fingerprint(bytes);
}

// Data-parallel copies do the same thing, so `dp` stays out.
std::string layout_fingerprint(const ExecutionPlan& plan) {
  const Layout& l = plan.layout;
  const Recompute& r = l.recompute;
  std::string bytes =
      fmt::format("{};{};{};{};{};{};{};{};{};{};{};{}", l.tp, l.pp, l.vp, l.ep, l.etp, l.cp, l.microbatches,
                  l.microbatch_size, l.sequence, name(l.dtype), plan.schedule, plan.group);
  for (const bool unit :
       {r.full, r.mla_up_projection, r.moe, r.moe_activation, r.shared_experts, r.core_attention, r.norm})
    bytes += unit ? ";1" : ";0";
  for (const LayerMemory& entry : l.layer_memory) {
    bytes += fmt::format(";{};{}", entry.kind, exact(entry.offload));
    for (const RecomputeUnit& unit : kRecomputeUnits) bytes += entry.recompute.*unit.member ? ";1" : ";0";
  }
  for (const BlockRange& range : plan.partition.stages)
    bytes += fmt::format(";{}-{}", range.begin, range.end);
  for (std::size_t m = 0; m < plan.actions.shadow.size(); ++m)
    if (plan.actions.shadow[m]) bytes += fmt::format(";shadow {}", m);
  return fingerprint(bytes);
}

std::vector<std::int32_t> signature(const ExecutionPlan& plan, const Partition& partition, StageId stage) {
  const BlockRange range = partition.stages[stage.index()];
  std::vector<std::int32_t> kinds;
  for (std::int32_t b = range.begin; b < range.end; ++b)
    kinds.push_back(plan.blocks[static_cast<std::size_t>(b)].cost);
  return kinds;
}

// Every (forward, backward) that some rank overlaps, in order of appearance.
std::vector<std::pair<StageId, StageId>> overlapped(const ActionList& actions) {
  std::set<std::pair<StageId, StageId>> seen;
  std::vector<std::pair<StageId, StageId>> in_order;
  for (const auto& rank : actions.ranks)
    for (const Action& cell : rank)
      if (const auto action = actions.real_part(cell);
          action && action->kind == ActionKind::overlap &&
          seen.emplace(action->stage, action->backward_stage).second)
        in_order.emplace_back(action->stage, action->backward_stage);
  return in_order;
}

// By hand where the job says so, else as solved.
Result<PairPlan> plan_pair(const Job& job, const ExecutionPlan& plan, StageId f, StageId b,
                           const PairResult& solved) {
  const TaskGraph graph = pair_graph(plan.forward_graph(f), plan.backward_graph(b));
  PairPlan pair{.forward = f, .backward = b, .bound = solved.bound};
  const auto by_hand = std::ranges::find_if(
      job.pairs, [&](const HandWrittenPair& p) { return p.forward == f.value() && p.backward == b.value(); });
  if (by_hand == job.pairs.end()) {
    pair.sequence = names_of(graph, solved.schedule.order);
    pair.nominal = solved.schedule.makespan;
    pair.makespan = solved.slowed;
    return pair;
  }
  auto order = order_by_names(graph, by_hand->sequence);
  if (!order) {
    Error error = std::move(order).error();
    error.file = job.file;
    error.line = by_hand->line;
    error.key = "schedule.pairs";
    return std::unexpected(std::move(error));
  }
  pair.sequence = names_of(graph, *order);
  pair.nominal = run_order(graph, *order).makespan;
  pair.makespan = run_order(graph, *order, plan.interference).makespan;
  return pair;
}

Status check_hand_written(const Job& job, const ExecutionPlan& plan,
                          std::span<const std::pair<StageId, StageId>> pairs) {
  // The rivals run another template; the hand-written pairs are for the job's own.
  if (plan.schedule != name(job.schedule)) return {};
  for (const HandWrittenPair& p : job.pairs)
    if (std::ranges::find(pairs, std::pair(StageId(p.forward), StageId(p.backward))) == pairs.end())
      return std::unexpected(Error{
          .kind = ErrorKind::bad_input,
          .file = job.file,
          .line = p.line,
          .key = "schedule.pairs",
          .message =
              fmt::format("this schedule never overlaps forward {} with backward {}", p.forward, p.backward),
          .hint = pairs.empty() ? "Its template overlaps nothing; use interleaved-overlap."
                                : "Remove the entry."});
  return {};
}

void add_rank_costs(const Job& job, const PricedJob& priced, ExecutionPlan& plan) {
  const auto ranks = static_cast<std::size_t>(job.layout.pp);
  plan.step.resize(ranks);
  plan.exposed_reduction = job.constants.exposed_reduction;  // what of the rest hides, the simulator sees
  plan.memory.resize(ranks);
  std::vector<std::vector<const BlockMemory*>> blocks(ranks);
  for (std::size_t s = 0; s < plan.partition.stages.size(); ++s) {
    const BlockRange range = plan.partition.stages[s];
    for (std::int32_t b = range.begin; b < range.end; ++b)
      blocks[plan.actions.rank_of_stage[s].index()].push_back(&priced.cost.of(BlockId(b)).memory);
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    const bool pairs = std::ranges::any_of(
        plan.actions.ranks[r], [](const Action& action) { return action.kind == ActionKind::overlap; });
    const StaticMemory held = price_static_memory(priced.input, blocks[r], pairs);
    plan.memory[r] = {.weights = held.weights,
                      .gradients = held.gradients,
                      .optimizer = held.optimizer,
                      .workspace = held.workspace - held.pair_buffers,
                      .pair_buffers = held.pair_buffers};
    const StepCost step = price_step(priced.input, held.dense_parameters, held.expert_parameters);
    plan.step[r] = {step.reduce_scatter.time, step.all_gather.time, step.optimizer.time};
    // One send and one receive buffer in each direction.
    plan.memory[r].transfer = job.layout.pp > 1 ? priced.transfer.bytes * 4.0 : Bytes(0);
    plan.memory[r].context = job.constants.context;
  }
}

}  // namespace

Result<PricedJob> price_job(const Job& job) {
  PricedJob out;
  auto layout = std::make_shared<Layout>(job.layout);
  if (traits(job.schedule).placement == StagePlacement::two_ways) layout->dp *= 2;
  out.layout = std::move(layout);
  out.input = CostInput{.model = &job.model,
                        .cluster = &job.cluster,
                        .layout = out.layout.get(),
                        .software = job.software,
                        .constants = job.constants,
                        .table = job.tables ? &KernelTable::builtin() : nullptr};
  TESSERA_TRY(out.cost, price_model(out.input));
  if (job.document) {
    const auto cost = job.document->root().present("cost");
    const auto given = cost ? cost->present("given") : std::nullopt;
    if (given) TESSERA_CHECK(apply_given(*given, out.cost));
  }
  out.interference = interference(out.input);
  out.transfer = price_transfer(out.input);
  if (job.transfer_time) {
    out.transfer.latency = *job.transfer_time;
    out.transfer.duration = Estimate(Seconds(0), Provenance::given, 0.0);
  }
  if (!job.profile_file.empty()) {
    TESSERA_TRY(PairProfile profile, PairProfile::read(job, out.cost));
    out.profile = std::make_shared<const PairProfile>(std::move(profile));
  }
  return out;
}

std::vector<Seconds> serial_times(const ModelSpec& model, const ModelCost& cost) {
  std::vector<Seconds> out;
  for (std::size_t b = 0; b < model.blocks.size(); ++b) {
    const BlockCost& block = cost.of(BlockId(static_cast<std::int64_t>(b)));
    out.push_back(block.serial(Pass::forward) + block.serial(Pass::backward) + block.serial(Pass::weight));
  }
  return out;
}

TemplateSizes template_sizes(const Job& job, Template schedule) {
  TemplateSizes out{.pp = static_cast<std::int32_t>(job.layout.pp),
                    .vp = static_cast<std::int32_t>(job.layout.vp),
                    .microbatches = static_cast<std::int32_t>(job.layout.microbatches),
                    .group = job.group != 0 ? job.group : static_cast<std::int32_t>(job.layout.pp)};
  if (!traits(schedule).groups || out.vp == 1) return out;
  if (job.filling) {
    out.group = job.filling->group;
  } else if (job.group == 0) {
    const std::vector<std::int32_t> legal = legal_groups(out.pp, out.microbatches);
    if (!legal.empty()) out.group = legal.front();
  }
  return out;
}

Partition for_pipelines(const Partition& one, std::int32_t pipelines) {
  Partition out;
  for (std::int32_t p = 0; p < pipelines; ++p)
    out.stages.insert(out.stages.end(), one.stages.begin(), one.stages.end());
  return out;
}

std::vector<double> stage_speeds(const Job& job) {
  std::vector<double> out;
  if (job.cluster.rank_speed.empty()) return out;
  const auto pp = static_cast<std::int32_t>(job.layout.pp);
  const std::int64_t distinct = distinct_stages(job);
  for (std::int64_t s = 0; s < distinct; ++s) {
    double slowest = job.cluster.rank_speed[rank_of_stage(job.schedule, pp, StageId(s)).index()];
    if (distinct != job.layout.stages())
      slowest = std::min(
          slowest, job.cluster.rank_speed[rank_of_stage(job.schedule, pp, StageId(distinct + s)).index()]);
    out.push_back(slowest);
  }
  return out;
}

namespace {

// The template's order; with shadows where they were decided for it.
Result<ActionList> actions_of(const Job& job, Template schedule, const ScheduleCosts& costs,
                              std::int32_t effort = TemplateSizes{}.effort) {
  TemplateSizes sizes = template_sizes(job, schedule);
  sizes.effort = effort;
  // A rival that takes the microbatches as they are needs no shadows.
  const bool padded = job.filling && padded_microbatches(schedule, sizes) != sizes.microbatches;
  auto actions =
      padded ? make_padded_schedule(schedule, sizes, job.filling->microbatches, job.filling->shadows, costs)
             : make_schedule(schedule, sizes, costs);
  if (!actions) return std::unexpected(in_schedule(job, std::move(actions).error()));
  return actions;
}

// What templates with durations are made for: each pass of a stage alone, on its rank. The weight gradient is
// what the whole backward takes longer than the input gradient.
ScheduleCosts stage_costs(const ExecutionPlan& plan) {
  ScheduleCosts out{.transfer = plan.transfer_latency + plan.transfer_time};
  for (std::size_t s = 0; s < plan.partition.stages.size(); ++s) {
    const StageId stage(static_cast<std::int64_t>(s));
    const double speed = plan.rank_speed.empty() || s >= plan.actions.stages()
                             ? 1.0
                             : plan.rank_speed[plan.actions.rank_of_stage[s].index()];
    const auto alone = [&](const TaskGraph& graph) {
      return graph.load(Resource::comp) / speed + graph.load(Resource::comm);
    };
    out.stages.push_back({.forward = alone(plan.forward_graph(stage)),
                          .input_gradient = alone(plan.backward_graph(stage, Backward::input_gradient)),
                          .weight_gradient = alone(plan.backward_graph(stage, Backward::weight_gradient))});
  }
  return out;
}

// Before there is a partition: every stage an equal part of the model.
ScheduleCosts even_costs(ExecutionPlan plan) {
  const auto stages = static_cast<std::size_t>(plan.layout.stages());
  plan.partition.stages = {{0, static_cast<std::int32_t>(plan.blocks.size())}};
  ScheduleCosts out = stage_costs(plan);
  StageCost part = out.stages.front();
  for (Seconds* pass : {&part.forward, &part.input_gradient, &part.weight_gradient})
    *pass /= static_cast<double>(stages);
  out.stages.assign(stages, part);
  return out;
}

}  // namespace

Result<PlanFrame> make_frame(const Job& job, const PricedJob& priced, Template schedule) {
  ExecutionPlan plan;
  plan.model = job.model.name;
  plan.device = job.cluster.gpu.name;
  plan.layout = job.layout;
  plan.schedule = std::string(name(schedule));
  for (std::size_t b = 0; b < job.model.blocks.size(); ++b)
    plan.blocks.push_back(
        {job.model.blocks[b].kind, job.model.blocks[b].layer, priced.cost.kind_of_block[b]});
  plan.costs = priced.cost.kinds;
  plan.interference = priced.interference;
  plan.transfer_latency = priced.transfer.latency;
  plan.transfer_time = priced.transfer.duration.time;
  plan.rank_speed = job.cluster.rank_speed;
  plan.memory_limit = job.cluster.gpu.memory;
  plan.flops_per_token = training_flops_per_token(job.model, job.layout.sequence).value();
  plan.peak = job.cluster.gpu.peak_of(job.layout.dtype);
  plan.fingerprints[0] = model_fingerprint(job.model);
  plan.fingerprints[1] = cluster_fingerprint(job.cluster);
  TESSERA_TRY(plan.actions, actions_of(job, schedule, even_costs(plan)));
  plan.group = template_sizes(job, schedule).group;
  PairTable pairs(plan.costs, {.interference = priced.interference});
  return PlanFrame(schedule, std::move(plan), std::move(pairs));
}

void schedule_pairs(PlanFrame& frame, std::span<const Partition> partitions) {
  std::vector<PairKey> keys;
  const auto pairs = overlapped(frame.plan.actions);
  for (const Partition& one : partitions) {
    const Partition partition = for_pipelines(one, frame.plan.actions.pipelines);
    for (const auto& [f, b] : pairs)
      keys.push_back({signature(frame.plan, partition, f), signature(frame.plan, partition, b)});
  }
  frame.pairs.solve(keys);
}

Result<ExecutionPlan> fill_frame(const PlanFrame& frame, const Job& job, const PricedJob& priced,
                                 const Partition& partition, std::int32_t effort) {
  ExecutionPlan plan = frame.plan;
  plan.partition = for_pipelines(partition, plan.actions.pipelines);
  if (traits(frame.schedule).durations) {
    TESSERA_TRY(plan.actions, actions_of(job, frame.schedule, stage_costs(plan), effort));
  }
  add_rank_costs(job, priced, plan);
  const auto pairs = overlapped(plan.actions);
  for (const auto& [f, b] : pairs) {
    const PairKey key{signature(plan, plan.partition, f), signature(plan, plan.partition, b)};
    TESSERA_TRY(PairPlan pair, plan_pair(job, plan, f, b, frame.pairs.at(key)));
    if (priced.profile) pair.measured = measured_pair(*priced.profile, plan, key, pair);
    plan.pairs.push_back(std::move(pair));
  }
  TESSERA_CHECK(check_hand_written(job, plan, pairs));
  plan.fingerprints[2] = layout_fingerprint(plan);
  plan.fingerprints[3] = cost_fingerprint(plan);
  return plan;
}

Result<PlanFrame> make_frame(const Job& job, const PricedJob& priced, Template schedule,
                             const Partition& partition) {
  TESSERA_TRY(PlanFrame frame, make_frame(job, priced, schedule));
  frame.plan.partition = for_pipelines(partition, frame.plan.actions.pipelines);
  if (!job.stage_durations.empty()) {
    // Durations given per stage make costs of their own, which depend on the partition.
    TESSERA_CHECK(apply_stage_durations(job, frame.plan));
    frame.pairs = PairTable(frame.plan.costs, {.interference = priced.interference});
  }
  return frame;
}

Result<ExecutionPlan> assemble_plan(const Job& job, const PricedJob& priced, const Partition& partition,
                                    Template schedule) {
  TESSERA_TRY(PlanFrame frame, make_frame(job, priced, schedule, partition));
  schedule_pairs(frame, {&partition, 1});
  TESSERA_TRY(ExecutionPlan plan, fill_frame(frame, job, priced, partition));
  TESSERA_CHECK(check_plan(plan));
  return plan;
}

CostSources count_sources(const ExecutionPlan& plan) {
  CostSources out;
  Estimate sum;
  const MeasuredShare measured(plan);
  for (std::size_t s = 0; s < plan.partition.stages.size(); ++s) {
    const BlockRange range = plan.partition.stages[s];
    for (std::int32_t b = range.begin; b < range.end; ++b) {
      const BlockCost& cost =
          plan.costs[static_cast<std::size_t>(plan.blocks[static_cast<std::size_t>(b)].cost)];
      for (std::size_t pass = 0; pass < kPasses; ++pass) {
        for (const TaskCost& task : cost.tasks[pass]) {
          if (!task.exists || task.duration.time.value() <= 0) continue;
          sum += measured.of(s, static_cast<Pass>(pass), task.duration);
          ++out.total;
          const auto& by_source = task.duration.by_source;
          ++out.values[static_cast<std::size_t>(std::ranges::max_element(by_source) - by_source.begin())];
        }
      }
    }
  }
  out.total += measured.pairs();
  out.values[static_cast<std::size_t>(Provenance::measured_pair)] += measured.pairs();
  if (sum.time.value() > 0) {
    for (std::size_t s = 0; s < kProvenances; ++s) out.share[s] = sum.by_source[s] / sum.time;
    out.error = sum.likely_error() / sum.time;
    out.worst_error = sum.error / sum.time;
  }
  return out;
}

}  // namespace tessera::train
