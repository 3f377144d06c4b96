#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "tessera/core/base/text.h"
#include "tessera/train/execution_plan/plan_file.h"

namespace tessera::train {

namespace {

constexpr double kLongest = 1e9;   // seconds; longer than any step
constexpr double kLargest = 1e18;  // bytes, operations
constexpr std::int64_t kMost = 1 << 20;

Result<Seconds> seconds(Cursor map, std::string_view key) {
  TESSERA_TRY(const double value, map.required_number(key, 0, kLongest));
  return Seconds(value);
}
Result<Bytes> bytes(Cursor map, std::string_view key) {
  TESSERA_TRY(const double value, map.required_number(key, 0, kLargest));
  return Bytes(value);
}
Result<std::int32_t> small(Cursor map, std::string_view key, std::int64_t low, std::int64_t high) {
  TESSERA_TRY(const std::int64_t value, map.required_integer(key, low, high));
  return static_cast<std::int32_t>(value);
}

Result<LayerMemory> read_layer_memory(Cursor node) {
  TESSERA_CHECK(node.only_keys({"recompute", "offload"}));
  LayerMemory entry;
  TESSERA_TRY(const Cursor units, node.required_list("recompute"));
  for (std::size_t i = 0; i < units.size(); ++i) {
    TESSERA_TRY(const std::string unit, units.item(i).string());
    const auto known = std::ranges::find(kRecomputeUnits, unit, &RecomputeUnit::name);
    if (known == kRecomputeUnits.end())
      return units.item(i).error(fmt::format("{} is nothing that can be recomputed", unit));
    entry.recompute.*known->member = true;
  }
  TESSERA_TRY(entry.offload, node.required_number("offload", 0, 1));
  return entry;
}

Result<Layout> read_plan_layout(Cursor root) {
  TESSERA_TRY(const Cursor node, root.required_map("layout"));
  TESSERA_CHECK(node.only_keys({"tp", "pp", "vp", "ep", "etp", "cp", "dp", "microbatches", "microbatch_size",
                                "sequence", "dtype", "recompute", "layer_memory"}));
  Layout l;
  const std::pair<std::string_view, std::int64_t*> sizes[] = {{"tp", &l.tp},
                                                              {"pp", &l.pp},
                                                              {"vp", &l.vp},
                                                              {"ep", &l.ep},
                                                              {"etp", &l.etp},
                                                              {"cp", &l.cp},
                                                              {"dp", &l.dp},
                                                              {"microbatches", &l.microbatches},
                                                              {"microbatch_size", &l.microbatch_size}};
  for (const auto& [key, target] : sizes) {
    TESSERA_TRY(*target, node.required_integer(key, 1, kMost));
  }
  TESSERA_TRY(l.sequence, node.required_integer("sequence", 1, std::int64_t{1} << 32));
  TESSERA_TRY(const Cursor dtype, node.required("dtype"));
  TESSERA_TRY(const std::string dtype_name, dtype.string());
  const auto known = dtype_by_name(dtype_name);
  if (!known)
    return dtype.error(fmt::format("unknown dtype {}", dtype_name), "Known are bf16, fp8, mxfp8 and nvfp4.");
  l.dtype = *known;
  TESSERA_TRY(const Cursor recompute, node.required_map("recompute"));
  for (std::size_t i = 0; i < recompute.size(); ++i)
    if (std::ranges::find(kRecomputeUnits, recompute.key(i), &RecomputeUnit::name) == kRecomputeUnits.end())
      return recompute.item(i).error("is nothing that can be recomputed");
  for (const RecomputeUnit& unit : kRecomputeUnits) {
    TESSERA_TRY(l.recompute.*unit.member, recompute.required_boolean(unit.name));
  }
  if (node.find("layer_memory")) {
    TESSERA_TRY(const Cursor kinds, node.required_map("layer_memory"));
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      TESSERA_TRY(LayerMemory entry, read_layer_memory(kinds.item(i)));
      entry.kind = kinds.key(i);
      l.layer_memory.push_back(std::move(entry));
    }
  }
  if (auto bounded = check_layout_sizes(l); !bounded)
    return node.error(bounded.error().message, bounded.error().hint);
  return l;
}

Result<TaskCost> read_task(Cursor node) {
  TESSERA_CHECK(node.only_keys({"seconds", "error", "compute_share", "bytes", "sources"}));
  TaskCost task;
  task.exists = true;
  TESSERA_TRY(task.duration.time, seconds(node, "seconds"));
  TESSERA_TRY(task.duration.error, seconds(node, "error"));
  TESSERA_TRY(task.compute_share, node.required_number("compute_share", 0, 1));
  TESSERA_TRY(task.communicated, bytes(node, "bytes"));
  TESSERA_TRY(const Cursor sources, node.required_map("sources"));
  for (std::size_t i = 0; i < sources.size(); ++i) {
    bool known = false;
    for (std::size_t s = 0; s < kProvenances && !known; ++s) {
      if (name(static_cast<Provenance>(s)) != sources.key(i)) continue;
      known = true;
      const Cursor pair = sources.item(i);
      if (!pair.is_list() || pair.size() != 2) return pair.error("a source is [seconds, error in seconds]");
      TESSERA_TRY(const double time, pair.item(0).number(0, kLongest));
      TESSERA_TRY(const double error, pair.item(1).number(0, kLongest));
      task.duration.by_source[s] = Seconds(time);
      task.duration.error_by_source[s] = Seconds(error);
    }
    if (!known) return sources.item(i).error(fmt::format("unknown cost source {}", sources.key(i)));
  }
  return task;
}

Result<BlockCost> read_cost(Cursor node, const Layout& layout) {
  TESSERA_CHECK(node.only_keys({"name", "tasks", "memory", "offload"}));
  BlockCost cost;
  TESSERA_TRY(cost.name, node.required_string("name"));
  TESSERA_TRY(const Cursor tasks, node.required_map("tasks"));
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto task = parse_task_name(tasks.key(i));
    if (!task || task->layer >= 0)
      return tasks.item(i).error(
          fmt::format("{} is no task", tasks.key(i)),
          "Tasks are F_, B_, W_ or R_ and one of EMBED, ATTN, DISP, SHARED, MLP, COMB, HEAD.");
    TESSERA_TRY(cost.task(task->pass, task->kind), read_task(tasks.item(i)));
  }
  cost.recomputed_whole = layout.memory_of(cost.name).recompute.full;
  TESSERA_TRY(const Cursor memory, node.required_map("memory"));
  TESSERA_CHECK(memory.only_keys({"dense_parameters", "expert_parameters", "embedding_parameters",
                                  "head_parameters", "weights", "gradients", "optimizer", "activation",
                                  "weight_stash", "logits", "workspace", "dispatch_buffers"}));
  BlockMemory& m = cost.memory;
  const std::pair<std::string_view, std::int64_t*> counts[] = {
      {"dense_parameters", &m.dense_parameters},
      {"expert_parameters", &m.expert_parameters},
      {"embedding_parameters", &m.embedding_parameters},
      {"head_parameters", &m.head_parameters}};
  for (const auto& [key, target] : counts) {
    TESSERA_TRY(*target, memory.required_integer(key, 0, std::int64_t{1} << 50));
  }
  const std::pair<std::string_view, Bytes*> sizes[] = {
      {"weights", &m.weights},           {"gradients", &m.gradients},
      {"optimizer", &m.optimizer},       {"activation", &m.activation},
      {"weight_stash", &m.weight_stash}, {"logits", &m.logits},
      {"workspace", &m.workspace},       {"dispatch_buffers", &m.dispatch_buffers}};
  for (const auto& [key, target] : sizes) {
    TESSERA_TRY(*target, bytes(memory, key));
  }
  if (node.find("offload")) {
    TESSERA_TRY(const Cursor offload, node.required_map("offload"));
    TESSERA_CHECK(offload.only_keys({"bytes", "seconds"}));
    TESSERA_TRY(m.offloaded, bytes(offload, "bytes"));
    TESSERA_TRY(cost.copy_time, seconds(offload, "seconds"));
  }
  return cost;
}

Result<PlanBlock> read_block(Cursor node, std::size_t costs) {
  TESSERA_CHECK(node.only_keys({"kind", "layer", "cost"}));
  PlanBlock block;
  TESSERA_TRY(const Cursor kind, node.required("kind"));
  TESSERA_TRY(const std::string kind_name, kind.string());
  constexpr std::array<std::string_view, 4> kinds{"embedding", "layer", "mtp", "head"};
  const auto found = std::ranges::find(kinds, kind_name);
  if (found == kinds.end())
    return kind.error(fmt::format("unknown block kind {}", kind_name),
                      "Known are embedding, layer, mtp and head.");
  block.kind = static_cast<BlockKind>(found - kinds.begin());
  TESSERA_TRY(block.layer, small(node, "layer", -1, kMost));
  TESSERA_TRY(block.cost, small(node, "cost", 0, static_cast<std::int64_t>(costs) - 1));
  return block;
}

// Few plans have shadows: an empty list is refused, so that equal plans have equal files.
Status read_shadows(Cursor actions, ActionList& list) {
  const auto shadows = actions.find("shadows");
  if (!shadows) return {};
  if (!shadows->is_list() || shadows->size() == 0)
    return shadows->error("expected the numbers of the shadow microbatches",
                          "For example [0, 9]; leave the key out when there are none.");
  const std::int64_t all = std::int64_t{list.microbatches} * list.pipelines;
  if (all > kMost)
    return shadows->error(
        fmt::format("{} microbatches in {} pipelines; expected at most {} with shadows among them",
                    list.microbatches, list.pipelines, kMost));
  list.shadow.assign(static_cast<std::size_t>(all), false);
  for (std::size_t i = 0; i < shadows->size(); ++i) {
    TESSERA_TRY(const std::int64_t number, shadows->item(i).integer(0, all - 1));
    if (list.shadow[static_cast<std::size_t>(number)])
      return shadows->item(i).error(fmt::format("microbatch {} is there twice", number));
    list.shadow[static_cast<std::size_t>(number)] = true;
  }
  return {};
}

Status read_actions(Cursor root, ExecutionPlan& plan) {
  TESSERA_TRY(const Cursor node, root.required_map("actions"));
  TESSERA_CHECK(node.only_keys({"microbatches", "pipelines", "shadows", "rank_of_stage", "ranks"}));
  const auto stages = static_cast<std::int64_t>(plan.partition.stages.size());
  TESSERA_TRY(plan.actions.microbatches, small(node, "microbatches", 1, kMost));
  if (node.present("pipelines")) {
    TESSERA_TRY(plan.actions.pipelines, small(node, "pipelines", 1, stages));
  }
  TESSERA_CHECK(read_shadows(node, plan.actions));
  TESSERA_TRY(const Cursor map, node.required_list("rank_of_stage"));
  if (static_cast<std::int64_t>(map.size()) != stages)
    return map.error(fmt::format("{} ranks for {} stages", map.size(), stages));
  for (std::size_t s = 0; s < map.size(); ++s) {
    TESSERA_TRY(const std::int64_t rank, map.item(s).integer(0, plan.layout.pp - 1));
    plan.actions.rank_of_stage.emplace_back(rank);
  }
  TESSERA_TRY(const Cursor ranks, node.required_list("ranks"));
  if (static_cast<std::int64_t>(ranks.size()) != plan.layout.pp)
    return ranks.error(fmt::format("{} rows for pp = {} ranks", ranks.size(), plan.layout.pp));
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    TESSERA_TRY(const std::string row, ranks.item(r).string());
    auto& actions = plan.actions.ranks.emplace_back();
    if (row.empty()) continue;
    std::size_t cell = 0;
    for (const std::string_view piece : split(row, ' ')) {
      const auto action = parse_action(piece);
      if (!action)
        return ranks.item(r).error(fmt::format("cell {}: \"{}\" is no action", cell, piece),
                                   "An action is like 3F7, 3B7, 3I7, 3W7 or (3F7;5B2)OVERLAP_F_B.");
      if (std::max(action->stage.value(), action->backward_stage.value()) >= stages)
        return ranks.item(r).error(
            fmt::format("cell {}: {} names a stage outside 0 … {}", cell, piece, stages - 1));
      if (std::max(action->microbatch.value(), action->backward_microbatch.value()) >=
          plan.actions.microbatches)
        return ranks.item(r).error(fmt::format("cell {}: {} names a microbatch outside 0 … {}", cell, piece,
                                               plan.actions.microbatches - 1));
      actions.push_back(*action);
      ++cell;
    }
  }
  return {};
}

Result<PairPlan> read_pair(Cursor node, std::int64_t stages) {
  TESSERA_CHECK(
      node.only_keys({"forward", "backward", "makespan", "nominal", "bound", "measured", "sequence"}));
  PairPlan pair;
  TESSERA_TRY(const std::int64_t f, node.required_integer("forward", 0, stages - 1));
  TESSERA_TRY(const std::int64_t b, node.required_integer("backward", 0, stages - 1));
  pair.forward = StageId(f);
  pair.backward = StageId(b);
  TESSERA_TRY(pair.makespan, seconds(node, "makespan"));
  TESSERA_TRY(pair.nominal, seconds(node, "nominal"));
  TESSERA_TRY(pair.bound, seconds(node, "bound"));
  if (const auto measured = node.find("measured")) {
    if (!measured->is_list() || measured->size() != 2)
      return measured->error("a measured time is [seconds, relative error]");
    TESSERA_TRY(const double makespan, measured->item(0).number(0, kLongest));
    TESSERA_TRY(const double error, measured->item(1).number(0, 1));
    pair.measured = MeasuredPair{.makespan = Seconds(makespan), .error = error};
  }
  TESSERA_TRY(const Cursor sequence, node.required_list("sequence"));
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    TESSERA_TRY(std::string task, sequence.item(i).string());
    pair.sequence.push_back(std::move(task));
  }
  return pair;
}

Status read_memory(Cursor root, ExecutionPlan& plan) {
  TESSERA_TRY(const Cursor node, root.required_map("memory"));
  TESSERA_CHECK(node.only_keys({"limit", "ranks"}));
  TESSERA_TRY(plan.memory_limit, bytes(node, "limit"));
  TESSERA_TRY(const Cursor ranks, node.required_list("ranks"));
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Cursor item = ranks.item(r);
    TESSERA_CHECK(item.only_keys(
        {"weights", "gradients", "optimizer", "workspace", "transfer", "context", "pair_buffers"}));
    RankMemory m;
    const std::pair<std::string_view, Bytes*> sizes[] = {
        {"weights", &m.weights},          {"gradients", &m.gradients}, {"optimizer", &m.optimizer},
        {"workspace", &m.workspace},      {"transfer", &m.transfer},   {"context", &m.context},
        {"pair_buffers", &m.pair_buffers}};
    for (const auto& [key, target] : sizes) {
      TESSERA_TRY(*target, bytes(item, key));
    }
    plan.memory.push_back(m);
  }
  return {};
}

Status read_predicted(Cursor root, Prediction& p) {
  TESSERA_TRY(const Cursor node, root.required_map("predicted"));
  TESSERA_CHECK(node.only_keys(
      {"iteration", "error", "tokens_per_second_per_gpu", "mfu", "lower_bound", "peak_memory", "peak_rank"}));
  TESSERA_TRY(p.iteration, seconds(node, "iteration"));
  TESSERA_TRY(p.error, node.required_number("error", 0, 100));
  TESSERA_TRY(p.tokens_per_second_per_gpu, node.required_number("tokens_per_second_per_gpu", 0, kLargest));
  TESSERA_TRY(p.mfu, node.required_number("mfu", 0, 1e6));
  TESSERA_TRY(p.lower_bound, seconds(node, "lower_bound"));
  TESSERA_TRY(p.peak_memory, bytes(node, "peak_memory"));
  TESSERA_TRY(p.peak_rank, small(node, "peak_rank", 0, kMost));
  return {};
}

Status read_header(Cursor root, ExecutionPlan& plan) {
  if (!root.is_map() || !root.find("tessera_plan"))
    return root.error("not a Tessera plan: key tessera_plan is missing", "Write one with: tessera plan JOB");
  TESSERA_TRY(const Cursor version, root.required("tessera_plan"));
  TESSERA_TRY(const std::int64_t number, version.integer(1, 1'000'000));
  if (number > kPlanVersion)
    return version.error(
        fmt::format("plan version {} is newer than this program reads ({})", number, kPlanVersion),
        "Use a newer tessera, or write the plan again with this one.");
  TESSERA_CHECK(root.only_keys({"tessera_plan", "model",           "device",     "fingerprints",
                                "layout",       "schedule",        "blocks",     "costs",
                                "partition",    "actions",         "pairs",      "interference",
                                "transfer",     "rank_speed",      "step",       "exposed_reduction",
                                "memory",       "flops_per_token", "peak_flops", "predicted"}));
  TESSERA_TRY(plan.model, root.required_string("model"));
  TESSERA_TRY(plan.device, root.required_string("device"));
  TESSERA_TRY(const Cursor prints, root.required_map("fingerprints"));
  TESSERA_CHECK(prints.only_keys({"model", "cluster", "layout", "costs"}));
  constexpr std::array<std::string_view, 4> print_keys{"model", "cluster", "layout", "costs"};
  for (std::size_t i = 0; i < print_keys.size(); ++i) {
    TESSERA_TRY(plan.fingerprints[i], prints.required_string(print_keys[i]));
  }
  return {};
}

}  // namespace

Result<ExecutionPlan> parse_plan(Cursor root) {
  ExecutionPlan plan;
  TESSERA_CHECK(read_header(root, plan));
  TESSERA_TRY(plan.layout, read_plan_layout(root));
  TESSERA_TRY(const Cursor schedule, root.required_map("schedule"));
  TESSERA_CHECK(schedule.only_keys({"template", "group"}));
  TESSERA_TRY(plan.schedule, schedule.required_string("template"));
  TESSERA_TRY(plan.group, small(schedule, "group", 0, kMost));

  TESSERA_TRY(const Cursor costs, root.required_list("costs"));
  for (std::size_t i = 0; i < costs.size(); ++i) {
    TESSERA_TRY(BlockCost cost, read_cost(costs.item(i), plan.layout));
    plan.costs.push_back(std::move(cost));
  }
  TESSERA_TRY(const Cursor blocks, root.required_list("blocks"));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    TESSERA_TRY(const PlanBlock block, read_block(blocks.item(i), plan.costs.size()));
    plan.blocks.push_back(block);
  }
  TESSERA_TRY(const Cursor partition, root.required_list("partition"));
  if (static_cast<std::int64_t>(partition.size()) != plan.layout.stages())
    return partition.error(fmt::format("{} stages, but pp × vp = {} × {} = {}", partition.size(),
                                       plan.layout.pp, plan.layout.vp, plan.layout.stages()));
  for (std::size_t s = 0; s < partition.size(); ++s) {
    const Cursor range = partition.item(s);
    if (!range.is_list() || range.size() != 2)
      return range.error("a stage is [begin, end), two block numbers");
    const auto count = static_cast<std::int64_t>(plan.blocks.size());
    TESSERA_TRY(const std::int64_t begin, range.item(0).integer(0, count));
    TESSERA_TRY(const std::int64_t end, range.item(1).integer(begin, count));
    plan.partition.stages.push_back({static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end)});
  }
  TESSERA_CHECK(read_actions(root, plan));
  TESSERA_TRY(const Cursor pairs, root.required_list("pairs"));
  std::set<std::pair<std::int32_t, std::int32_t>> seen;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    TESSERA_TRY(PairPlan pair, read_pair(pairs.item(i), plan.layout.stages()));
    if (!seen.emplace(pair.forward.value(), pair.backward.value()).second)
      return pairs.item(i).error(fmt::format("the pair of forward {} and backward {} occurs twice",
                                             pair.forward.value(), pair.backward.value()));
    plan.pairs.push_back(std::move(pair));
  }
  TESSERA_TRY(const Cursor rates, root.required_map("interference"));
  TESSERA_CHECK(rates.only_keys({"compute_bound_rate", "memory_bound_rate"}));
  TESSERA_TRY(plan.interference.compute_bound_rate, rates.required_number("compute_bound_rate", 1e-3, 1));
  TESSERA_TRY(plan.interference.memory_bound_rate, rates.required_number("memory_bound_rate", 1e-3, 1));
  TESSERA_TRY(const Cursor transfer, root.required_map("transfer"));
  TESSERA_CHECK(transfer.only_keys({"latency", "seconds"}));
  TESSERA_TRY(plan.transfer_latency, seconds(transfer, "latency"));
  TESSERA_TRY(plan.transfer_time, seconds(transfer, "seconds"));
  TESSERA_TRY(const Cursor speed, root.required_list("rank_speed"));
  for (std::size_t r = 0; r < speed.size(); ++r) {
    TESSERA_TRY(const double factor, speed.item(r).number(1e-3, 1e3));
    plan.rank_speed.push_back(factor);
  }
  TESSERA_TRY(const Cursor step, root.required_list("step"));
  for (std::size_t r = 0; r < step.size(); ++r) {
    TESSERA_CHECK(step.item(r).only_keys({"reduce_scatter", "all_gather", "optimizer"}));
    RankStep rank;
    TESSERA_TRY(rank.reduce_scatter, seconds(step.item(r), "reduce_scatter"));
    TESSERA_TRY(rank.all_gather, seconds(step.item(r), "all_gather"));
    TESSERA_TRY(rank.optimizer, seconds(step.item(r), "optimizer"));
    plan.step.push_back(rank);
  }
  TESSERA_TRY(plan.exposed_reduction, root.required_number("exposed_reduction", 0, 1));
  TESSERA_CHECK(read_memory(root, plan));
  TESSERA_TRY(plan.flops_per_token, root.required_number("flops_per_token", 0, kLargest));
  TESSERA_TRY(const double peak, root.required_number("peak_flops", 0, 1e18));
  plan.peak = FlopsPerSecond(peak);
  TESSERA_CHECK(read_predicted(root, plan.predicted));
  return plan;
}

Result<ExecutionPlan> read_plan(Cursor root) {
  TESSERA_TRY(ExecutionPlan plan, parse_plan(root));
  if (auto sound = check_plan(plan); !sound) {
    sound.error().kind = ErrorKind::bad_input;
    sound.error().file = root.file();
    // check_plan names the section; the file knows its line.
    const std::string& key = sound.error().key;
    if (const auto section = root.find(std::string_view(key).substr(0, key.find_first_of(".["))))
      sound.error().line = section->line();
    return std::unexpected(std::move(sound).error());
  }
  return plan;
}

Result<ExecutionPlan> read_plan_file(const std::string& path) {
  TESSERA_TRY(const std::string text, read_file(path));
  TESSERA_TRY(const Document document, Document::parse(text, path, DocumentFormat::yaml));
  return read_plan(document.root());
}

}  // namespace tessera::train
