#include "choose_filling.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "partition_by_rule.h"
#include "tessera/core/base/text.h"
#include "tessera/train/schedule/shadow.h"

namespace tessera::train {
namespace {

// Of the legal groups, smallest first: larger ones keep more activations, and no step is shorter for it.
constexpr std::size_t kMostGroups = 16;
// Numbers of shadows told one by one.
constexpr std::size_t kToldShadows = 8;

// Fewer microbatches than this leave most ranks idle: padded only where the job says so.
std::int32_t least_microbatches(Template schedule, std::int32_t pp) noexcept {
  return traits(schedule).groups ? pp : 2 * pp;
}

std::optional<ShadowPlacement> asked(ShadowRule rule) noexcept {
  switch (rule) {
    case ShadowRule::first:
      return ShadowPlacement::first;
    case ShadowRule::last:
      return ShadowPlacement::last;
    case ShadowRule::spread:
      return ShadowPlacement::spread;
    case ShadowRule::automatic:
    case ShadowRule::none:
      break;
  }
  return std::nullopt;
}

// How long each action of a plan takes, read off a simulation.
class Durations {
 public:
  explicit Durations(const ExecutionPlan& plan, const SimulateResult& simulated) {
    for (const ActionSpan& span : simulated.actions)
      of_.try_emplace(
          key(plan.actions.ranks[static_cast<std::size_t>(span.rank)][static_cast<std::size_t>(span.index)]),
          span.end - span.start);
  }
  Seconds operator()(const Action& action) const {
    if (const auto known = of_.find(key(action)); known != of_.end()) return known->second;
    // A half that runs in pairs only: the shortest pair that holds it bounds it.
    Seconds least;
    for (const auto& [other, time] : of_) {
      const auto& [kind, backward_kind, stage, backward_stage] = other;
      if (kind != ActionKind::overlap) continue;
      const bool holds = action.kind == ActionKind::forward
                             ? stage == action.stage
                             : backward_stage == action.stage && backward_kind == action.kind;
      if (holds && (least == Seconds(0) || time < least)) least = time;
    }
    return least;
  }

 private:
  using Key = std::tuple<ActionKind, ActionKind, StageId, StageId>;
  static Key key(const Action& a) { return {a.kind, a.backward_kind, a.stage, a.backward_stage}; }
  std::map<Key, Seconds> of_;
};

class Chooser {
 public:
  Chooser(const Job& job, const PricedJob& priced, const Partition& partition)
      : job_(job), priced_(priced), partition_(partition) {
    job_.pairs.clear();  // sequences by hand are for the order that is still to be chosen
  }

  Result<std::vector<FillingCandidate>> run(const TemplateSizes& sizes) {
    const bool groups = traits(job_.schedule).groups;
    const std::int32_t padded = padded_microbatches(job_.schedule, sizes);
    std::vector<FillingCandidate> out;
    if (const auto placement = asked(job_.shadows)) {
      TESSERA_CHECK(consider({sizes.group, padded, places(*placement, padded)}, name(*placement), out));
      return out;
    }
    if (sizes.microbatches < least_microbatches(job_.schedule, sizes.pp) || job_.group != 0) return out;
    // Of equals the one without shadows comes first: every framework can run it.
    if (groups) {
      std::vector<std::int32_t> legal = legal_groups(sizes.pp, sizes.microbatches);
      legal.resize(std::min(legal.size(), kMostGroups));
      for (const std::int32_t group : legal)
        TESSERA_CHECK(consider({group, sizes.microbatches, {}}, "", out));
    }
    for (const ShadowPlacement placement :
         {ShadowPlacement::last, ShadowPlacement::first, ShadowPlacement::spread, ShadowPlacement::ends})
      TESSERA_CHECK(consider({sizes.group, padded, places(placement, padded)}, name(placement), out));
    TESSERA_TRY(const ShadowChoice searched, search(sizes, padded));
    TESSERA_CHECK(consider({sizes.group, padded, searched.places}, "searched", out));
    std::ranges::stable_sort(out, {}, [](const FillingCandidate& c) {
      return std::tuple(!c.usable, c.usable ? c.iteration.value() : c.peak_memory.value());
    });
    return out;
  }

 private:
  [[nodiscard]] std::vector<std::int32_t> places(ShadowPlacement placement, std::int32_t padded) const {
    return shadow_places(placement, padded, padded - static_cast<std::int32_t>(job_.layout.microbatches));
  }

  // The frame, made once: what differs between fillings is the order of the actions.
  Result<ExecutionPlan> plan_of(const Filling& filling) {
    job_.filling = filling;
    if (!frame_) {
      TESSERA_TRY(frame_, make_frame(job_, priced_, job_.schedule, partition_));
    } else {
      TemplateSizes sizes = template_sizes(job_, job_.schedule);
      TESSERA_TRY(frame_->plan.actions,
                  make_padded_schedule(job_.schedule, sizes, filling.microbatches, filling.shadows));
      frame_->plan.group = sizes.group;
    }
    schedule_pairs(*frame_, {&partition_, 1});
    return fill_frame(*frame_, job_, priced_, partition_);
  }

  Status consider(Filling filling, std::string_view placement, std::vector<FillingCandidate>& out) {
    const auto same = [&](const FillingCandidate& other) { return other.filling == filling; };
    if (std::ranges::any_of(out, same)) return {};
    TESSERA_TRY(const ExecutionPlan plan, plan_of(filling));
    TESSERA_TRY(const SimulateResult result, simulate(plan));
    FillingCandidate candidate{.placement = std::string(placement), .iteration = result.iteration};
    for (const RankResult& rank : result.ranks)
      candidate.peak_memory = std::max(candidate.peak_memory, rank.peak_memory);
    candidate.usable =
        plan.memory_limit.value() <= 0 || candidate.peak_memory <= plan.memory_limit * kUsableMemory;
    candidate.filling = std::move(filling);
    out.push_back(std::move(candidate));
    return {};
  }

  Result<ShadowChoice> search(const TemplateSizes& sizes, std::int32_t padded) {
    TESSERA_TRY(ExecutionPlan plan, plan_of({sizes.group, padded, places(ShadowPlacement::last, padded)}));
    // Without the flags: every action then shows how long it takes.
    plan.actions.shadow.clear();
    frame_->plan.actions = plan.actions;
    schedule_pairs(*frame_, {&partition_, 1});
    TESSERA_TRY(plan, fill_frame(*frame_, job_, priced_, partition_));
    TESSERA_TRY(const SimulateResult result, simulate(plan, {.slices = true}));
    const Durations durations(plan, result);
    return best_shadows(job_.schedule, sizes, padded, std::cref(durations),
                        plan.transfer_latency + plan.transfer_time);
  }

  Job job_;
  const PricedJob& priced_;
  const Partition& partition_;
  std::optional<PlanFrame> frame_;
};

std::string figures_of(const FillingCandidate& candidate) {
  return fmt::format("{:.3f} s, {:.1f} GiB{}", candidate.iteration.value(), gibibytes(candidate.peak_memory),
                     candidate.usable ? "" : ", does not fit");
}

std::string shadows_text(const Filling& filling) {
  const std::vector<std::int32_t>& shadows = filling.shadows;
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min(shadows.size(), kToldShadows); ++i)
    words.push_back(std::to_string(shadows[i]));
  if (shadows.size() > kToldShadows) words.emplace_back("others");
  return fmt::format("{} shadow microbatch{} (number{} {} of {})", shadows.size(),
                     shadows.size() == 1 ? "" : "es", shadows.size() == 1 ? "" : "s", join_words(words),
                     filling.microbatches);
}

}  // namespace

Result<std::vector<FillingCandidate>> choose_filling(const Job& job) {
  const bool dual = job.schedule == Template::dual_pipe || job.schedule == Template::dual_pipe_v;
  const bool groups = traits(job.schedule).groups && job.layout.vp > 1;
  if ((!dual && !groups) || job.filling || job.shadows == ShadowRule::none)
    return std::vector<FillingCandidate>{};
  TemplateSizes sizes = template_sizes(job, job.schedule);
  sizes.group = !groups ? 0 : job.group != 0 ? job.group : sizes.pp;
  if (padded_microbatches(job.schedule, sizes) == sizes.microbatches) return std::vector<FillingCandidate>{};
  TESSERA_TRY(const PricedJob priced, price_job(job));
  TESSERA_TRY(const Partition partition, partition_by_rule(job, priced, job.partition_rule));
  return Chooser(job, priced, partition).run(sizes);
}

std::string filling_note(const Job& job, const std::vector<FillingCandidate>& candidates) {
  if (candidates.empty()) return {};
  const FillingCandidate& taken = candidates.front();
  const bool padded = !taken.filling.shadows.empty(), groups = traits(job.schedule).groups;
  const auto rival = std::ranges::find_if(
      candidates, [&](const FillingCandidate& c) { return c.filling.shadows.empty() == padded; });
  const std::string in_groups = groups ? fmt::format(" in groups of {}", taken.filling.group) : "";
  std::string out;
  if (groups && job.layout.microbatches < taken.filling.group)
    out =
        fmt::format("{} microbatches cannot fill groups of {}", job.layout.microbatches, taken.filling.group);
  else if (groups)
    out = fmt::format("{} microbatches in groups of {} leave a last group that is too small",
                      job.layout.microbatches,
                      job.group != 0 ? fmt::format("{}", job.group) : fmt::format("PP = {}", job.layout.pp));
  else
    out = fmt::format("{} does not take {} microbatches on {} ranks", name(job.schedule),
                      job.layout.microbatches, job.layout.pp);
  out += padded ? fmt::format("; {} make{} up for it{}", shadows_text(taken.filling),
                              taken.filling.shadows.size() == 1 ? "s" : "", in_groups)
                : fmt::format("; groups of {} are used", taken.filling.group);
  const auto other = [](const FillingCandidate& c) {
    return c.filling.shadows.empty()
               ? fmt::format("groups of {} and no shadows", c.filling.group)
               : fmt::format("{} in groups of {}", shadows_text(c.filling), c.filling.group);
  };
  if (rival != candidates.end())
    out += fmt::format(" ({}; {}: {}; both before the partition was chosen)", figures_of(taken),
                       other(*rival), figures_of(*rival));
  else
    out += fmt::format(" ({} before the partition was chosen)", figures_of(taken));
  return out + ".";
}

}  // namespace tessera::train
