#include "tessera/train/planner/profile_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "block_words.h"
#include "tessera/core/base/hash.h"
#include "tessera/core/base/text.h"

namespace tessera::train {
namespace {

// "3350e9": readable, and exact where the figure is a whole number of them.
std::string scaled(double value, std::string_view unit, double one) {
  return exact(value / one) + std::string(unit);
}

std::string mesh_words(const Job& job) {
  const Gpu& gpu = job.cluster.gpu;
  const Fabric& fabric = job.cluster.fabric;
  const Layout& l = job.layout;
  const std::int64_t widest = std::max(l.tp * l.cp, l.ep * l.etp);
  const std::int64_t domain = std::max(1, fabric.scale_up_size);
  return fmt::format("gpu={} bf16={} hbm={} sms={} domain={} up={} out={} tp={} cp={} ep={} etp={} nodes={}",
                     gpu.name, scaled(gpu.peak_of(Dtype::bf16).value(), "e12", 1e12),
                     scaled(gpu.memory_bandwidth.value(), "e9", 1e9), gpu.multiprocessors,
                     fabric.scale_up_size, scaled(fabric.scale_up_bandwidth.value(), "e9", 1e9),
                     scaled(fabric.scale_out_bandwidth.value(), "e9", 1e9), l.tp, l.cp, l.ep, l.etp,
                     (widest + domain - 1) / domain);
}

std::string shape_words(const Job& job) {
  const Layout& l = job.layout;
  std::string out = fmt::format("hidden={} sequences={} sequence={} dtype={}", job.model.hidden,
                                l.microbatch_size, l.sequence, name(l.dtype));
  if (job.model.residual_streams != 1) out += fmt::format(" streams={}", job.model.residual_streams);
  if (job.model.norms_per_sublayer != 1) out += fmt::format(" norms={}", job.model.norms_per_sublayer);
  return out;
}

// A layer with what is computed again and what share of what it keeps goes to the host.
std::string kind_words(const Job& job, const Block& block) {
  std::string out = block_words(job.model, block);
  if (block.kind != BlockKind::layer && block.kind != BlockKind::mtp) return out;
  const LayerMemory memory = job.layout.memory_of(kind_name(job.model, block));
  std::string again;
  for (const RecomputeUnit& unit : kRecomputeUnits)
    if (memory.recompute.*unit.member) again += (again.empty() ? "" : ",") + std::string(unit.name);
  if (!again.empty()) out += fmt::format("+recompute({})", again);
  if (memory.offload > 0) out += fmt::format("+offload({})", exact(memory.offload));
  return out;
}

std::string software_words(const Job& job) {
  const SoftwareProfile& s = job.software;
  constexpr std::string_view graphs[] = {"none", "layer", "iteration"};
  constexpr std::string_view dispatchers[] = {"deduplicated", "all_to_all", "low_latency"};
  std::string out = fmt::format(
      "graphs={} dispatcher={} ep_sms={}", graphs[static_cast<std::size_t>(s.cuda_graphs)],
      dispatchers[static_cast<std::size_t>(s.dispatcher)], job.cluster.fabric.communication_multiprocessors);
  // The optimizer's switches are not here: no pair waits for it.
  const std::pair<std::string_view, bool> switches[] = {{"fused_mlp", s.fused_grouped_mlp},
                                                        {"expert_overlap", s.expert_overlap},
                                                        {"shared_beside_dispatch", s.shared_beside_dispatch},
                                                        {"fp8_attention", s.fp8_attention},
                                                        {"fp8_dispatch", s.fp8_dispatch},
                                                        {"expert_bias_loop", s.expert_bias_loop},
                                                        {"bf16_gradients", s.bf16_gradients},
                                                        {"low_precision_weights", s.low_precision_weights}};
  for (const auto& [key, on] : switches) out += fmt::format(" {}={}", key, on ? 1 : 0);
  return out;
}

std::string chunk_words(std::span<const std::string> kinds, std::span<const std::int32_t> chunk) {
  std::string out;
  for (std::size_t first = 0; first < chunk.size();) {
    std::size_t last = first;
    while (last < chunk.size() && chunk[last] == chunk[first]) ++last;
    if (!out.empty()) out += ", ";
    if (last - first > 1) out += fmt::format("{}*", last - first);
    out += kinds[static_cast<std::size_t>(chunk[first])];
    first = last;
  }
  return out;
}

}  // namespace

ProfileKeys::ProfileKeys(const Job& job, const ModelCost& cost)
    : kinds_(cost.kinds.size()),
      mesh_(mesh_words(job)),
      shapes_(shape_words(job)),
      software_(software_words(job)) {
  for (std::size_t b = 0; b < cost.kind_of_block.size(); ++b) {
    std::string& words = kinds_[static_cast<std::size_t>(cost.kind_of_block[b])];
    if (words.empty()) words = kind_words(job, job.model.blocks[b]);
  }
}

std::string ProfileKeys::mesh(double rank_speed) const {
  return fmt::format("{} speed={}", mesh_, exact(rank_speed));
}

std::string ProfileKeys::pair(const PairKey& key) const {
  return fmt::format("F[{}] B[{}] {}", chunk_words(kinds_, key.forward), chunk_words(kinds_, key.backward),
                     shapes_);
}

std::string schedule_hash(std::span<const std::string> launch_order) {
  std::string text;
  for (const std::string& task : launch_order) text += (text.empty() ? "" : " ") + task;
  return fingerprint(text);
}

}  // namespace tessera::train
