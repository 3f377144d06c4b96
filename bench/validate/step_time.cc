#include "step_time.h"

#include <algorithm>
#include <cmath>

namespace tessera::bench {

std::vector<std::vector<BlockId>> published_stages(const ModelSpec& model, std::int64_t stages) {
  std::vector<BlockId> layers;
  std::vector<BlockId> tail;  // MTP and head close the last stage
  for (std::size_t i = 0; i < model.blocks.size(); ++i) {
    const BlockKind kind = model.blocks[i].kind;
    if (kind == BlockKind::layer) layers.emplace_back(static_cast<std::int64_t>(i));
    if (kind == BlockKind::mtp || kind == BlockKind::head) tail.emplace_back(static_cast<std::int64_t>(i));
  }
  const auto count = static_cast<std::int64_t>(layers.size());
  std::vector<std::vector<BlockId>> out(static_cast<std::size_t>(stages));
  // Megatron-Bridge's layouts for DeepSeek and Kimi: equal stages of 64 / n layers, the last takes the
  // remaining ones ("Et*4|(tttt|)*14mL"). The others count embedding and loss as a layer each where that
  // divides.
  const bool padded = count == 61 && 64 % stages == 0;
  const bool ends = !padded && (count + 2) % stages == 0 && stages > 1;
  std::int64_t next = 0;
  for (std::int64_t s = 0; s < stages; ++s) {
    std::int64_t take = count * (s + 1) / stages - next;
    if (padded) take = std::min(64 / stages, count - next);
    if (ends) take = (count + 2) / stages - (s == 0 ? 1 : 0) - (s == stages - 1 ? 1 : 0);
    if (s == stages - 1) take = count - next;
    auto& stage = out[static_cast<std::size_t>(s)];
    if (s == 0) stage.emplace_back(0);
    stage.insert(stage.end(), layers.begin() + next, layers.begin() + next + take);
    next += take;
  }
  out.back().insert(out.back().end(), tail.begin(), tail.end());
  return out;
}

namespace {

struct Rank {
  double forward = 0, backward = 0, host = 0, all_to_all = 0;
  std::int64_t dense = 0, expert = 0;
};

}  // namespace

StepTime step_time(const CostInput& input, const ModelCost& cost) {
  const Layout& l = *input.layout;
  const auto stages = published_stages(*input.model, l.stages());
  std::vector<Rank> ranks(static_cast<std::size_t>(l.pp));
  for (std::size_t s = 0; s < stages.size(); ++s) {
    Rank& rank = ranks[s % ranks.size()];
    for (const BlockId block : stages[s]) {
      const BlockCost& kind = cost.of(block);
      rank.forward += kind.serial(Pass::forward).value();
      rank.backward += kind.serial(Pass::backward).value() + kind.serial(Pass::weight).value();
      for (const auto& pass : kind.tasks) {
        for (std::size_t k = 0; k < kTaskKinds; ++k) {
          const Estimate& duration = pass[k].duration;
          rank.host += duration.by_source[static_cast<std::size_t>(Provenance::constant)].value();
          if (resource_of(static_cast<TaskKind>(k)) == Resource::comm)
            rank.all_to_all += duration.time.value();
        }
      }
      rank.dense += kind.memory.dense_parameters;
      rank.expert += kind.memory.expert_parameters;
    }
  }
  const auto time = [](const Rank& rank) { return rank.forward + rank.backward; };
  const Rank& slowest = *std::ranges::max_element(ranks, {}, time);
  const Rank& fullest =
      *std::ranges::max_element(ranks, {}, [](const Rank& r) { return r.dense + r.expert; });
  double mean = 0;
  for (const Rank& rank : ranks) mean += time(rank) / static_cast<double>(ranks.size());

  const double microbatches = static_cast<double>(l.microbatches), pp = static_cast<double>(l.pp),
               vp = static_cast<double>(l.vp);
  const TransferCost transfer = price_transfer(input);
  const StepCost step = price_step(input, fullest.dense, fullest.expert);
  // A tenth of the reduction never hides; the rest hides under the last backward and the first forward.
  const double always = input.constants.exposed_reduction;
  constexpr double kHideable = 0.8;
  const auto exposed = [&](const Estimate& collective, double cover) {
    const double all = collective.time.value();
    return always * all + std::max(0.0, (1 - always) * all - kHideable * cover / vp);
  };
  StepTime out;
  out.slowest_stage = Seconds(time(slowest));
  out.bubble = Seconds((pp - 1) / vp * mean);
  out.reduction =
      Seconds(exposed(step.reduce_scatter, ranks[0].backward) + exposed(step.all_gather, ranks[0].forward));
  out.optimizer = step.optimizer.time;
  out.host = Seconds(slowest.host);
  out.all_to_all = Seconds(slowest.all_to_all);
  // Plain 1F1B sends and waits twice a microbatch; interleaving hides it.
  const double exposed_transfer =
      l.pp > 1 && l.vp == 1 ? 2 * microbatches * (transfer.duration.time + transfer.latency).value() : 0;
  out.total =
      Seconds(microbatches * time(slowest) + exposed_transfer) + out.bubble + out.reduction + out.optimizer;
  return out;
}

}  // namespace tessera::bench
