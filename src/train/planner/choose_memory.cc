#include "choose_memory.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "choose_partition.h"
#include "tessera/train/partition/solve_partition.h"

namespace tessera::train {
namespace {

using Decision = std::vector<MemoryMeans>;

constexpr std::string_view kOffload = "offload";
// Prefixes of the ordered means that are planned whole, from the first that fits: more memory may buy a
// better partition.
constexpr std::size_t kPlanned = 2;

void take(const MemoryMeans& means, Layout& layout) {
  auto entry = std::ranges::find(layout.layer_memory, means.kind, &LayerMemory::kind);
  if (entry == layout.layer_memory.end()) {
    layout.layer_memory.push_back({.kind = means.kind, .recompute = layout.recompute});
    entry = layout.layer_memory.end() - 1;
  }
  if (means.unit == kOffload) {
    entry->offload = means.share;
    return;
  }
  entry->recompute.*std::ranges::find(kRecomputeUnits, means.unit, &RecomputeUnit::name)->member = true;
}

Job with(const Job& job, std::span<const MemoryMeans> taken) {
  Job out = job;
  for (const MemoryMeans& means : taken) take(means, out.layout);
  return out;
}

// What a block kind keeps of a microbatch and how long it takes, nothing overlapped.
struct Kept {
  Bytes bytes;
  Seconds time;
  double hides = 1;  // share of what is kept whose copy hides behind the forward alone, in whole twentieths
};
Kept kept(const BlockCost& cost, const Job& job) noexcept {
  const Seconds forward = cost.serial(Pass::forward),
                backward = cost.serial(Pass::backward) + cost.serial(Pass::weight);
  Kept out{cost.memory.activation, std::max(forward, cost.copy_time) + std::max(backward, cost.copy_time)};
  const BytesPerSecond link = job.cluster.gpu.host_link * job.constants.host_link_efficiency;
  if (link.value() > 0 && out.bytes.value() > 0)
    out.hides = std::min(1.0, std::floor(20 * (forward / (out.bytes / link))) / 20);
  return out;
}

Result<Kept> kept(const Job& job, const std::string& kind) {
  TESSERA_TRY(const PricedJob priced, price_job(job));
  return kept(*std::ranges::find(priced.cost.kinds, kind, &BlockCost::name), job);
}

// All means, each the cheapest for a byte among those that still save something beside the ones before it.
Result<Decision> by_price(const Job& job) {
  struct Kind {
    std::string name;
    Decision taken;
    Kept now;
    double hides = 0;  // of what it keeps without any means
    std::optional<MemoryMeans> next;
  };
  TESSERA_TRY(const PricedJob priced, price_job(job));
  std::vector<Kind> kinds;
  for (const Block& block : job.model.blocks) {
    if (block.kind != BlockKind::layer && block.kind != BlockKind::mtp) continue;
    std::string kind = kind_name(job.model, block);
    if (std::ranges::find(kinds, kind, &Kind::name) != kinds.end()) continue;
    const Kept now = kept(*std::ranges::find(priced.cost.kinds, kind, &BlockCost::name), job);
    kinds.push_back({.name = std::move(kind), .now = now, .hides = now.hides});
  }
  const auto find_next = [&](Kind& kind) -> Status {
    kind.next.reset();
    Decision offered;
    for (const RecomputeUnit& unit : kRecomputeUnits)
      offered.push_back({.kind = kind.name, .unit = std::string(unit.name)});
    if (job.cluster.gpu.host_link.value() > 0) {
      if (kind.hides > 0) offered.push_back({kind.name, std::string(kOffload), kind.hides});
      offered.push_back({kind.name, std::string(kOffload), 1.0});
    }
    for (MemoryMeans& means : offered) {
      Decision tried = kind.taken;
      tried.push_back(means);
      TESSERA_TRY(const Kept then, kept(with(job, tried), kind.name));
      means.saved = kind.now.bytes - then.bytes;
      means.time = std::max(Seconds(0), then.time - kind.now.time);
      if (means.saved <= Bytes(0)) continue;
      if (!kind.next || means.price() < kind.next->price()) kind.next = means;
    }
    return {};
  };
  for (Kind& kind : kinds) TESSERA_CHECK(find_next(kind));
  Decision out;
  for (;;) {
    Kind* cheapest = nullptr;
    for (Kind& kind : kinds)
      if (kind.next && (cheapest == nullptr || kind.next->price() < cheapest->next->price()))
        cheapest = &kind;
    if (cheapest == nullptr) return out;
    out.push_back(*cheapest->next);
    cheapest->taken.push_back(*cheapest->next);
    cheapest->now.bytes -= cheapest->next->saved;
    cheapest->now.time += cheapest->next->time;
    TESSERA_CHECK(find_next(*cheapest));
  }
}

// The same memory, and no time: any partition that fits is as good as any other.
class MemoryAlone : public StageCosts {
 public:
  explicit MemoryAlone(const StageCosts& costs) : costs_(costs) {}
  [[nodiscard]] Seconds bound(const PairQuery&) const override { return {}; }
  [[nodiscard]] std::vector<Seconds> times(std::span<const PairQuery> queries) override {
    return std::vector<Seconds>(queries.size());
  }
  [[nodiscard]] Seconds alone(StageId, BlockRange) const override { return {}; }
  [[nodiscard]] Bytes held(StageId stage, BlockRange blocks) const override {
    return costs_.held(stage, blocks);
  }
  [[nodiscard]] Bytes activation(StageId stage, BlockRange blocks) const override {
    return costs_.activation(stage, blocks);
  }

 private:
  const StageCosts& costs_;
};

// Whether some partition that the job may have fits. Only a plan says it for sure.
Result<bool> may_fit(const Job& job, const PlanLayout& plan) {
  if (job.partition_rule != PartitionRule::overlap_aware) {
    TESSERA_TRY(const PlanReport report, plan(job));
    return report.usable;
  }
  TESSERA_TRY(const PricedJob priced, price_job(job));
  TESSERA_TRY(PlanFrame frame, make_frame(job, priced, job.schedule));
  const ModelStageCosts costs = stage_costs(job, priced, frame);
  TESSERA_TRY(const PartitionTask task, partition_task(job, priced, frame, costs));
  MemoryAlone memory(costs);
  return !solve_in_window(task.problem, task.legal, memory, task.serial, {}).result.best.empty();
}

}  // namespace

Result<PlanReport> plan_within_memory(const Job& job, const PlanReport& without, const PlanLayout& plan) {
  TESSERA_TRY(const Decision means, by_price(job));
  // What has to fit: some partition, or the very one that is too large so far.
  Job wanted = job;
  if (without.usable) {
    wanted.partition = without.search->cramped->partition;
    wanted.partition_rule = PartitionRule::given;
  }
  const auto fits = [&](std::span<const MemoryMeans> taken) { return may_fit(with(wanted, taken), plan); };
  // Least number of means, cheapest first, with which it does.
  std::size_t low = 1, high = means.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    TESSERA_TRY(const bool enough, fits(std::span(means).first(middle)));
    if (enough)
      high = middle;
    else
      low = middle + 1;
  }
  const auto rank = [](const PlanReport& r) {
    return std::tuple(!r.usable, r.usable ? r.figures.iteration.value() : r.figures.peak_memory.value());
  };
  PlanReport best = without;
  std::size_t planned = 0;
  for (std::size_t count = low; count <= means.size() && planned < kPlanned; ++count) {
    Decision taken(means.begin(), means.begin() + static_cast<std::ptrdiff_t>(count));
    // What was taken before the last may not be needed beside it.
    for (std::size_t drop = count - 1; planned == 0 && drop-- > 0;) {
      Decision fewer = taken;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(drop));
      TESSERA_TRY(const bool enough, fits(fewer));
      if (enough) taken = std::move(fewer);
    }
    TESSERA_TRY(PlanReport report, plan(with(job, taken)));
    if (report.usable) ++planned;
    if (rank(best) <= rank(report)) continue;
    report.memory = MemoryDecision{
        .taken = taken,
        .without = without.usable ? without.search->cramped->peak_memory : without.figures.peak_memory};
    if (without.usable) report.memory->iteration_without = without.figures.iteration;
    for (const MemoryMeans& other : means)
      if (std::ranges::find(taken, other) == taken.end()) report.memory->left.push_back(other);
    best = std::move(report);
  }
  return best;
}

}  // namespace tessera::train
