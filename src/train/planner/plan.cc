#include "tessera/train/planner/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "assemble.h"
#include "choose_filling.h"
#include "choose_memory.h"
#include "choose_partition.h"
#include "partition_by_rule.h"
#include "tessera/train/partition/rivals.h"

namespace tessera::train {

namespace {

// What people run without overlap, with the same stages on the same ranks. With one chunk per rank,
// interleaving has nothing to interleave. Without DualPipe every stage is on one rank.
Job without_overlap(const Job& job) {
  Job out = job;
  if (!traits(job.schedule).pairs) return out;
  out.pairs.clear();  // by hand, for the job's own template
  if (job.schedule == Template::dual_pipe) {
    out.schedule = Template::one_f_one_b;
    out.layout.vp = 1;
  } else if (job.schedule == Template::dual_pipe_v) {
    out.schedule = Template::zb_v;
  } else {
    out.schedule = job.layout.vp == 1 ? Template::one_f_one_b : Template::interleaved;
  }
  return out;
}

struct Simulated {
  ExecutionPlan plan;
  SimulateResult result;
};

Result<Simulated> build(const Job& job, const PricedJob& priced, const Partition& partition,
                        Template schedule, bool slices) {
  Simulated out;
  TESSERA_TRY(out.plan, assemble_plan(job, priced, partition, schedule));
  TESSERA_TRY(out.result, simulate(out.plan, {.slices = slices}));
  return out;
}

// The rivals that overlap nothing, on the partition that is known and on an even one.
Status add_baselines(const Job& job, const PricedJob& priced, const Partition& known, PlanReport& report) {
  const Job plain = without_overlap(job);
  // Their prices differ only where a stage is no longer on two ranks.
  std::optional<PricedJob> own;
  if (plain.layout != job.layout) {
    TESSERA_TRY(own, price_job(plain));
  }
  const PricedJob& prices = own ? *own : priced;
  TESSERA_TRY(const Simulated baseline, build(plain, prices, known, plain.schedule, false));
  report.baseline = figures("no overlap", baseline.plan, baseline.result);
  TESSERA_TRY(const Partition even, even_partition(job.model, distinct_stages(job)));
  TESSERA_TRY(const Simulated even_split, build(plain, prices, even, plain.schedule, false));
  report.even = figures("even split", even_split.plan, even_split.result);
  if (report.search && report.search->serial_legal && plain.schedule != job.schedule) {
    TESSERA_TRY(const Simulated serial, build(job, priced, known, job.schedule, false));
    report.serial = figures("serial balance", serial.plan, serial.result);
  }
  return {};
}

void add_notes(const Job& job, PlanReport& report) {
  report.notes = job.model.notes;
  if (std::string note = profile_note(job, report.plan); !note.empty())
    report.notes.push_back(std::move(note));
  if (std::string note = filling_note(job, report.fillings); !note.empty())
    report.notes.push_back(std::move(note));
  else if (job.group == 0 && report.plan.group != job.layout.pp)
    report.notes.push_back(fmt::format(
        "{} microbatches in groups of PP = {} leave a last group that is too small; groups of {} are used.",
        job.layout.microbatches, job.layout.pp, report.plan.group));
  const Template plain = without_overlap(job).schedule;
  if (plain == job.schedule) {
    report.notes.push_back(
        fmt::format("Template {} overlaps no forward with a backward: all expert communication is exposed.",
                    name(plain)));
  } else if (report.figures.iteration > report.baseline.iteration && report.baseline.iteration > Seconds(0) &&
             report.baseline.peak_memory <= report.plan.memory_limit * kUsableMemory) {
    report.notes.push_back(fmt::format("Overlap makes this job {:.1f} % slower; use template {}.",
                                       100 * (report.figures.iteration / report.baseline.iteration - 1),
                                       name(plain)));
  }
  if (report.plan.layout.ep == 1)
    report.notes.emplace_back("EP is 1: there is no expert communication to hide.");
}

}  // namespace

PlanFigures figures(std::string label, const ExecutionPlan& plan, const SimulateResult& simulated) {
  PlanFigures out{
      .name = std::move(label), .iteration = simulated.iteration, .lower_bound = simulated.lower_bound};
  const double step = simulated.iteration.value();
  const auto ranks = static_cast<double>(simulated.ranks.size());
  if (step <= 0 || simulated.ranks.empty()) return out;
  const double tokens =
      static_cast<double>(plan.layout.tokens_per_step()) / static_cast<double>(plan.layout.world());
  out.tokens_per_second_per_gpu = tokens / step;
  if (plan.peak.value() > 0)
    out.mfu = plan.flops_per_token * out.tokens_per_second_per_gpu / plan.peak.value();
  double least_hidden = 1e300;
  for (std::size_t r = 0; r < simulated.ranks.size(); ++r) {
    const RankResult& rank = simulated.ranks[r];
    out.warmup_bubble += (rank.warmup_idle + rank.cooldown_idle).value() / step / ranks;
    out.imbalance_bubble += rank.imbalance_idle.value() / step / ranks;
    const double exposed = rank.exposed_comm.value() / step;
    const double hidden = (rank.comm_busy - rank.exposed_comm).value() / step;
    out.exposed_ep += exposed / ranks;
    out.hidden_ep += hidden / ranks;
    out.exposed_ep_worst = std::max(out.exposed_ep_worst, exposed);
    least_hidden = std::min(least_hidden, hidden);
    if (rank.peak_memory > out.peak_memory) {
      out.peak_memory = rank.peak_memory;
      out.peak_rank = static_cast<std::int32_t>(r);
    }
  }
  out.hidden_ep_worst = least_hidden;
  return out;
}

namespace {

Result<PlanReport> plan_layout(const Job& job, std::vector<FillingCandidate> fillings,
                               const PlanOptions& options) {
  TESSERA_TRY(const PricedJob priced, price_job(job));
  PlanReport report;
  report.fillings = std::move(fillings);
  report.model = job.model;
  Partition partition;
  if (job.partition_rule == PartitionRule::overlap_aware && job.stage_durations.empty()) {
    TESSERA_TRY(PlanFrame frame, make_frame(job, priced, job.schedule));
    TESSERA_TRY(report.search, search_partition(job, priced, frame, options));
    partition = report.search->chosen.partition;
  } else {
    TESSERA_TRY(partition, partition_by_rule(job, priced, job.partition_rule));
  }
  TESSERA_TRY(Simulated chosen, build(job, priced, partition, job.schedule, options.slices));

  report.figures = figures("this plan", chosen.plan, chosen.result);
  report.sources = count_sources(chosen.plan);
  chosen.plan.predicted = Prediction{.iteration = chosen.result.iteration,
                                     .error = report.sources.error,
                                     .tokens_per_second_per_gpu = report.figures.tokens_per_second_per_gpu,
                                     .mfu = report.figures.mfu,
                                     .lower_bound = chosen.result.lower_bound,
                                     .peak_memory = report.figures.peak_memory,
                                     .peak_rank = report.figures.peak_rank};
  report.usable = chosen.plan.memory_limit.value() <= 0 ||
                  report.figures.peak_memory <= chosen.plan.memory_limit * kUsableMemory;
  if (options.baselines) {
    const bool serial = report.search && report.search->serial_legal;
    const Partition known = serial ? report.search->serial.partition : partition;
    TESSERA_CHECK(add_baselines(job, priced, known, report));
  }
  report.plan = std::move(chosen.plan);
  report.simulated = std::move(chosen.result);
  add_notes(job, report);
  return report;
}

}  // namespace

Result<PlanReport> make_plan(const Job& given, const PlanOptions& options) {
  TESSERA_TRY(const std::vector<FillingCandidate> fillings, choose_filling(given));
  Job job = given;
  if (!fillings.empty()) job.filling = fillings.front().filling;
  TESSERA_TRY(PlanReport report, plan_layout(job, fillings, options));
  const bool binds = !report.usable || (report.search && report.search->cramped);
  // Durations by hand do not follow what is computed again.
  if (!binds || !job.memory_open || !job.stage_durations.empty()) return report;
  return plan_within_memory(job, report,
                            [&](const Job& decided) { return plan_layout(decided, fillings, options); });
}

}  // namespace tessera::train
