// Megatron's counting options: so many layers on the first rank, so many on the last, the rest divided
// evenly.
#include <fmt/format.h>

#include <cstdlib>

#include "tessera/train/schedule/megatron_layout.h"

namespace tessera::train {

namespace {

// Layers per rank by the first/last counts. The rest must divide evenly over the ranks between them.
Result<std::vector<std::int64_t>> layers_per_rank(const MegatronSplit& split, std::int64_t layers) {
  const std::int64_t first = split.first_stage_layers.value_or(0);
  const std::int64_t last = split.last_stage_layers.value_or(0);
  const std::int64_t given_ranks = (split.first_stage_layers ? 1 : 0) + (split.last_stage_layers ? 1 : 0);
  if (given_ranks > split.pp)
    return bad_input(
        fmt::format("first and last layer counts are given for a pipeline of {} rank", split.pp));
  const std::int64_t middle_ranks = split.pp - given_ranks;
  const std::int64_t rest = layers - first - last;
  if (middle_ranks == 0) {
    if (rest != 0)
      return bad_input(
          fmt::format("first + last = {}, model has {}, pp = {} leaves no stage for the other {}",
                      first + last, layers, split.pp, rest),
          "Give counts that add up, or use more ranks.");
  } else if (rest < 0 || rest % middle_ranks != 0) {
    return bad_input(
        fmt::format("{} layers without the {} given do not divide over {} ranks: {} would be lost", rest,
                    first + last, middle_ranks, rest < 0 ? rest : rest % middle_ranks),
        "Use a partition rule, which places every layer, or a layout string.");
  }
  std::vector<std::int64_t> out(static_cast<std::size_t>(split.pp),
                                middle_ranks > 0 ? rest / middle_ranks : 0);
  if (split.first_stage_layers) out.front() = first;
  if (split.last_stage_layers) out.back() = last;
  return out;
}

}  // namespace

Result<Partition> megatron_split(const ModelSpec& model, const MegatronSplit& split) {
  const std::int64_t layers = model.layers();
  const bool accounts = split.account_for_embedding || split.account_for_loss;
  if (accounts && (split.first_stage_layers || split.last_stage_layers))
    return bad_input("account_for_embedding/loss and first/last layer counts exclude each other",
                     "Keep one of the two.");
  const std::int64_t stages = split.pp * split.vp;
  if (split.layers_per_virtual_stage) {
    const std::int64_t held = stages * *split.layers_per_virtual_stage;
    if (held != layers)
      return bad_input(
          fmt::format("pp × vp × layers per virtual stage = {} × {} × {} = {}, model has {} layers: {} {}",
                      split.pp, split.vp, *split.layers_per_virtual_stage, held, layers,
                      std::abs(layers - held), held < layers ? "would be lost" : "do not exist"),
          "Use a partition rule, which places every layer, or a layout string.");
  }
  std::vector<std::int64_t> count(static_cast<std::size_t>(stages));
  if (accounts) {
    const std::int64_t counted =
        layers + (split.account_for_embedding ? 1 : 0) + (split.account_for_loss ? 1 : 0);
    if (counted % stages != 0)
      return bad_input(
          fmt::format("{} layers and {} counted ends do not divide over {} stages: {} would be lost", layers,
                      counted - layers, stages, counted % stages),
          "Use a partition rule, which places every layer, or a layout string.");
    for (auto& c : count) c = counted / stages;
    if (split.account_for_embedding) --count.front();
    if (split.account_for_loss) --count.back();
    if (count.front() < 0 || count.back() < 0)
      return bad_input(fmt::format("a stage cannot give up a layer for its embedding or loss: {} per stage",
                                   counted / stages));
  } else {
    TESSERA_TRY(const std::vector<std::int64_t> per_rank, layers_per_rank(split, layers));
    for (std::int64_t r = 0; r < split.pp; ++r) {
      const std::int64_t on_rank = per_rank[static_cast<std::size_t>(r)];
      if (on_rank % split.vp != 0)
        return bad_input(
            fmt::format("rank {}'s {} layers do not divide over vp = {} virtual stages: {} would be lost", r,
                        on_rank, split.vp, on_rank % split.vp),
            "Use a partition rule, which places every layer, or a layout string.");
      for (std::int64_t v = 0; v < split.vp; ++v)
        count[static_cast<std::size_t>(v * split.pp + r)] = on_rank / split.vp;
    }
  }
  Partition partition;
  std::int32_t next = 0;
  for (std::size_t s = 0; s < count.size(); ++s) {
    const std::int32_t begin = next;
    next += static_cast<std::int32_t>(count[s]) + (s == 0 ? 1 : 0);
    if (s + 1 == count.size()) next += static_cast<std::int32_t>(model.mtp_blocks()) + 1;
    partition.stages.push_back({begin, next});
  }
  TESSERA_CHECK(check_partition(model, partition));
  return partition;
}

}  // namespace tessera::train
