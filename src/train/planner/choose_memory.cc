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
// Less than this, of one layer and microbatch, is not worth a means.
constexpr Bytes kWorthwhile{1e6};
// Steps of offload beyond what hides.
constexpr double kShareStep = 0.15;

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
  // Shares of what is kept whose copies hide beside a forward alone, and beside forward and backward
  // together; in whole twentieths.
  double hides_alone = 1, hides_paired = 1;
};
// Copies go on beside what runs: a forward or a backward, or in a pair both. `paired` is the share of
// forwards that run in pairs.
Kept kept(const BlockCost& cost, const Job& job, double paired) noexcept {
  const Seconds forward = cost.serial(Pass::forward),
                backward = cost.serial(Pass::backward) + cost.serial(Pass::weight);
  const Seconds alone = std::max(forward, cost.copy_time) + std::max(backward, cost.copy_time);
  Kept out{cost.memory.activation,
           alone * (1 - paired) + std::max(forward + backward, cost.copy_time) * paired};
  const BytesPerSecond link = job.cluster.gpu.host_link * job.constants.host_link_efficiency;
  if (link.value() <= 0 || out.bytes.value() <= 0) return out;
  const auto share = [&](Seconds window) {
    return std::min(1.0, std::floor(20 * (window / (out.bytes / link))) / 20);
  };
  out.hides_alone = share(forward);
  out.hides_paired = share(forward + backward);
  return out;
}

// What hides, and steps from there to all of it: no more than is needed should be paid for.
std::vector<double> shares_of(const Kept& kept) {
  std::vector<double> out;
  for (double share = kept.hides_alone; share < 1; share += kShareStep)
    if (share > 0) out.push_back(share);
  if (kept.hides_paired > kept.hides_alone && kept.hides_paired < 1) out.push_back(kept.hides_paired);
  out.push_back(1);
  return out;
}

double share_in_pairs(const ActionList& actions) noexcept {
  std::int64_t pairs = 0, forwards = 0;
  for (const auto& rank : actions.ranks)
    for (const Action& action : rank) {
      pairs += action.kind == ActionKind::overlap ? 1 : 0;
      forwards += action.kind == ActionKind::forward ? 1 : 0;
    }
  return pairs + forwards > 0 ? static_cast<double>(pairs) / static_cast<double>(pairs + forwards) : 0.0;
}

Result<Kept> kept(const Job& job, const std::string& kind, double paired) {
  TESSERA_TRY(const PricedJob priced, price_job(job));
  return kept(*std::ranges::find(priced.cost.kinds, kind, &BlockCost::name), job, paired);
}

// All means, each the cheapest for a byte among those that still save something beside the ones before it.
Result<Decision> by_price(const Job& job) {
  struct Kind {
    std::string name;
    Decision taken;
    Kept now;
    std::vector<double> shares;  // worth offloading
    std::optional<MemoryMeans> next;
  };
  TESSERA_TRY(const PricedJob priced, price_job(job));
  TESSERA_TRY(const PlanFrame frame, make_frame(job, priced, job.schedule));
  const double paired = share_in_pairs(frame.plan.actions);
  std::vector<Kind> kinds;
  for (const Block& block : job.model.blocks) {
    if (block.kind != BlockKind::layer && block.kind != BlockKind::mtp) continue;
    std::string kind = kind_name(job.model, block);
    if (std::ranges::find(kinds, kind, &Kind::name) != kinds.end()) continue;
    const Kept now = kept(*std::ranges::find(priced.cost.kinds, kind, &BlockCost::name), job, paired);
    kinds.push_back({.name = std::move(kind), .now = now, .shares = shares_of(now)});
  }
  const auto find_next = [&](Kind& kind) -> Status {
    kind.next.reset();
    Decision offered;
    for (const RecomputeUnit& unit : kRecomputeUnits)
      offered.push_back({.kind = kind.name, .unit = std::string(unit.name)});
    if (job.cluster.gpu.host_link.value() > 0) {
      for (const double share : kind.shares)
        if (share > 0) offered.push_back({kind.name, std::string(kOffload), share});
    }
    for (MemoryMeans& means : offered) {
      Decision tried = kind.taken;
      tried.push_back(means);
      TESSERA_TRY(const Kept then, kept(with(job, tried), kind.name, paired));
      means.saved = kind.now.bytes - then.bytes;
      means.time = std::max(Seconds(0), then.time - kind.now.time);
      if (means.saved < kWorthwhile) continue;
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

// As few means as will do for a job that may fit with all of them: the shortest list of the cheapest, and of
// it only what is needed beside the last.
Result<Decision> fewest(const Job& wanted, const Decision& means, const PlanLayout& plan) {
  const auto fits = [&](std::span<const MemoryMeans> taken) { return may_fit(with(wanted, taken), plan); };
  std::size_t low = 1, high = means.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    TESSERA_TRY(const bool enough, fits(std::span(means).first(middle)));
    if (enough)
      high = middle;
    else
      low = middle + 1;
  }
  Decision taken(means.begin(), means.begin() + static_cast<std::ptrdiff_t>(std::min(low, means.size())));
  for (std::size_t drop = taken.empty() ? 0 : taken.size() - 1; drop-- > 0;) {
    Decision fewer = taken;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(drop));
    TESSERA_TRY(const bool enough, fits(fewer));
    if (enough) taken = std::move(fewer);
  }
  return taken;
}

// What was taken and what was not, for people: a larger share of offload stands for the smaller ones in it.
void tell(const Decision& taken, const Decision& means, MemoryDecision& out) {
  const auto within = [](const MemoryMeans& small, const MemoryMeans& large) {
    return small.unit == kOffload && large.unit == kOffload && small.kind == large.kind &&
           small.share < large.share;
  };
  for (MemoryMeans each : taken) {
    if (std::ranges::any_of(taken, [&](const MemoryMeans& other) { return within(each, other); })) continue;
    for (const MemoryMeans& other : means)
      if (within(other, each)) {
        each.saved += other.saved;
        each.time += other.time;
      }
    out.taken.push_back(std::move(each));
  }
  for (const MemoryMeans& each : means)
    if (std::ranges::find(taken, each) == taken.end() &&
        std::ranges::none_of(taken, [&](const MemoryMeans& other) { return within(each, other); }))
      out.left.push_back(each);
}

}  // namespace

Result<PlanReport> plan_within_memory(const Job& job, const PlanReport& without, const PlanLayout& plan) {
  TESSERA_TRY(const Decision means, by_price(job));
  if (means.empty()) return without;
  // What may be made to fit: some partition, as few means as that takes; and the one that is best where
  // memory is no matter, which more of them may buy.
  std::vector<Decision> tried;
  if (!without.usable) {
    TESSERA_TRY(tried.emplace_back(), fewest(job, means, plan));
  }
  if (without.search) {
    Job wanted = job;
    wanted.partition = without.usable ? without.search->cramped->partition : without.search->chosen.partition;
    wanted.partition_rule = PartitionRule::given;
    TESSERA_TRY(Decision taken, fewest(wanted, means, plan));
    tried.push_back(taken);
    // And one more, since fewest left no room to spare.
    const auto next = std::ranges::find_if(
        means, [&](const MemoryMeans& each) { return std::ranges::find(taken, each) == taken.end(); });
    if (next != means.end()) {
      taken.push_back(*next);
      tried.push_back(std::move(taken));
    }
  }
  // A search that guessed too low leaves the whole list.
  tried.push_back(means);

  const auto rank = [](const PlanReport& r) {
    return std::tuple(!r.usable, r.usable ? r.figures.iteration.value() : r.figures.peak_memory.value());
  };
  PlanReport best = without;
  for (std::size_t t = 0; t < tried.size(); ++t) {
    const Decision& taken = tried[t];
    if (std::find(tried.begin(), tried.begin() + static_cast<std::ptrdiff_t>(t), taken) !=
        tried.begin() + static_cast<std::ptrdiff_t>(t))
      continue;
    if (t + 1 == tried.size() && best.usable) break;
    TESSERA_TRY(PlanReport report, plan(with(job, taken)));
    if (rank(best) <= rank(report)) continue;
    report.memory = MemoryDecision{.without = without.usable ? without.search->cramped->peak_memory
                                                             : without.figures.peak_memory};
    if (without.usable) report.memory->iteration_without = without.figures.iteration;
    tell(taken, means, *report.memory);
    best = std::move(report);
  }
  return best;
}

}  // namespace tessera::train
