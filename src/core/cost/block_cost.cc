// Puts the sublayers of each distinct block kind together.

#include "tessera/core/cost/block_cost.h"

#include <fmt/format.h>

#include <algorithm>

#include "memory.h"
#include "sublayer.h"

namespace tessera {

Seconds BlockCost::serial(Pass pass) const noexcept {
  Seconds sum;
  for (const TaskCost& task : tasks[static_cast<std::size_t>(pass)]) sum += task.duration.time;
  return pass == Pass::backward ? sum + serial(Pass::recompute) : sum;
}

double TaskCost::host_share() const noexcept {
  const Seconds host = duration.by_source[static_cast<std::size_t>(Provenance::constant)];
  return duration.time.value() > 0 ? std::clamp(host / duration.time, 0.0, 1.0) : 0.0;
}

namespace {

using namespace pricing;

Tasks layer_tasks(const Context& c, const Layer& layer) {
  const Pass again = recompute_pass(c, layer);
  Tasks out = mixer_tasks(c, layer.mixer, again);
  if (layer.dense) out.add(dense_tasks(c, *layer.dense, again));
  // Norm and router come before the dispatch: in the attention task, or, where a block is nothing but a MoE,
  // in the only compute task it has.
  const bool mixer = !std::holds_alternative<std::monostate>(layer.mixer);
  if (layer.moe) out.add(moe_tasks(c, *layer.moe, mixer ? TaskKind::attention : TaskKind::mlp));
  return out;
}

Tasks block_tasks(const Context& c, const Block& block) {
  switch (block.kind) {
    case BlockKind::embedding:
      return embedding_tasks(c);
    case BlockKind::head:
      return head_tasks(c);
    case BlockKind::layer:
      return layer_tasks(c, c.model.layer_of(block));
    case BlockKind::mtp: {
      const Layer& layer = c.model.layer_of(block);
      Tasks out = layer_tasks(c, layer);
      const bool mixer = !std::holds_alternative<std::monostate>(layer.mixer);
      out.add(mtp_projection_tasks(c, mixer ? TaskKind::attention : TaskKind::mlp));
      out.add(head_tasks(c));
      return out;
    }
  }
  return {};
}

TaskCost finish(const Work& work) noexcept {
  TaskCost out;
  out.exists = work.exists;
  out.duration = work.time;
  out.communicated = work.communicated;
  out.compute_share =
      work.time.time.value() > 0 ? std::clamp(work.compute_bound / work.time.time, 0.0, 1.0) : 1.0;
  return out;
}

// What is kept, but for logits, which backward needs first, goes over the host link after F and comes back
// before B. While a block runs, one copy may still be leaving and one be coming.
void offload(const Context& c, double share, BlockCost& cost) noexcept {
  const Bytes moved = (cost.memory.activation - cost.memory.logits) * share;
  cost.memory.offloaded = moved;
  cost.memory.activation -= moved;
  cost.memory.workspace += moved * 2.0;
  cost.copy_time = moved / (c.gpu.host_link * c.constants.host_link_efficiency);
}

BlockCost price_block(const Context& c, const Block& block, std::string name) {
  BlockCost out;
  out.name = std::move(name);
  const Tasks tasks = block_tasks(c, block);
  for (std::size_t pass = 0; pass < kPasses; ++pass)
    for (std::size_t kind = 0; kind < kTaskKinds; ++kind)
      out.tasks[pass][kind] = finish(tasks.work[pass][kind]);
  out.recomputed_whole = c.again.everything;
  out.memory = block_memory(c, block);
  return out;
}

Status check_dtype(const CostInput& input) {
  const Gpu& gpu = input.cluster->gpu;
  const Dtype dtype = input.layout->dtype;
  const auto lacks = [&](Dtype wanted) { return gpu.peak_of(wanted).value() <= 0; };
  if (!lacks(dtype) && !(dtype == Dtype::nvfp4 && lacks(Dtype::mxfp8))) return {};
  std::vector<std::string> names;
  for (const Dtype each : kDtypes)
    if (!lacks(each)) names.emplace_back(name(each));
  std::string known;
  for (std::size_t i = 0; i < names.size(); ++i) known += (i == 0 ? "" : ", ") + names[i];
  return std::unexpected(
      Error{.key = "layout.dtype",
            .message = fmt::format("{} has no unit for {}", gpu.name, name(dtype)),
            .hint = fmt::format("It computes in {}. A figure of your own can be given as cluster.{}_tflops.",
                                known, name(dtype))});
}

Status check_host_link(const CostInput& input) {
  const bool offloads = std::ranges::any_of(input.layout->layer_memory,
                                            [](const LayerMemory& entry) { return entry.offload > 0; });
  if (!offloads || input.cluster->gpu.host_link.value() > 0) return {};
  return std::unexpected(
      Error{.key = "layout.offload",
            .message = fmt::format("{} has no figure for its link to the host", input.cluster->gpu.name),
            .hint = "Give one as cluster.host_link_gb, or offload nothing."});
}

}  // namespace

Result<ModelCost> price_model(const CostInput& input) {
  TESSERA_CHECK(check_dtype(input));
  TESSERA_CHECK(check_host_link(input));
  Context context(input);
  const ModelSpec& model = *input.model;
  ModelCost out;
  out.kind_of_block.reserve(model.blocks.size());
  std::vector<std::pair<BlockKind, std::int32_t>> seen;
  for (const Block& block : model.blocks) {
    const std::pair key{block.kind, block.type};
    const auto found = std::ranges::find(seen, key);
    out.kind_of_block.push_back(static_cast<std::int32_t>(found - seen.begin()));
    if (found != seen.end()) continue;
    seen.push_back(key);
    std::string kind = kind_name(model, block);
    const LayerMemory spares = input.layout->memory_of(kind);
    context.again = computed_again(spares.recompute);
    BlockCost& cost = out.kinds.emplace_back(price_block(context, block, std::move(kind)));
    if (spares.offload > 0) offload(context, spares.offload, cost);
  }
  return out;
}

}  // namespace tessera
