#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "decision_text.h"
#include "model_words.h"
#include "table.h"
#include "tessera/core/base/text.h"
#include "tessera/train/explain/explain.h"

namespace tessera::train {

namespace {

std::string percent(double share) {
  return fmt::format("{:.1f}", 100 * share);
}
std::string gib(Bytes size) {
  return fmt::format("{:.1f}", gibibytes(size));
}

std::string layout_lines(const Job& job, const ExecutionPlan& plan) {
  const Layout& l = job.layout;
  std::string parallel = fmt::format("PP {} × VP {}", l.pp, l.vp);
  const std::pair<std::string_view, std::int64_t> sizes[] = {{"TP", l.tp}, {"CP", l.cp}, {"DP", l.dp}};
  for (const auto& [label, size] : sizes)
    if (size > 1) parallel += fmt::format(" × {} {}", label, size);
  parallel += fmt::format(", EP {}", l.ep);
  if (l.etp > 1) parallel += fmt::format(" × ETP {}", l.etp);
  const std::int64_t domains = job.cluster.nodes();
  return fmt::format("{} × {}, {} node{} of {}   {}   {} microbatches of {} × {}   {}   {}\n",
                     job.cluster.gpus, job.cluster.gpu.name, domains, domains == 1 ? "" : "s",
                     job.cluster.fabric.scale_up_size, parallel, l.microbatches, l.microbatch_size,
                     with_thousands(l.sequence), name(l.dtype), plan.schedule);
}

std::string figures_table(const PlanReport& report) {
  std::vector<const PlanFigures*> columns{&report.even, &report.baseline};
  if (report.serial) columns.push_back(&*report.serial);
  columns.push_back(&report.figures);
  Table table(columns.size() + 1);
  const auto row = [&](std::string label, auto&& cell, std::string tail = "") {
    std::vector<std::string> cells{std::move(label)};
    for (const PlanFigures* figure : columns) cells.push_back(cell(*figure));
    if (!tail.empty()) cells.push_back(std::move(tail));
    table.row(std::move(cells));
  };
  const PlanFigures& f = report.figures;
  const bool searched = report.search && report.search->serial_legal;
  std::vector<std::string> top{"", "even split,", searched ? "serial balance," : "same partition,"};
  std::vector<std::string> below{"", "no overlap", "no overlap"};
  if (report.serial) {
    top.emplace_back("serial balance,");
    below.emplace_back("overlap");
  }
  top.emplace_back("this plan");
  table.row(std::move(top));
  table.row(std::move(below));
  row(
      "iteration  s", [](const PlanFigures& p) { return fmt::format("{:.3f}", p.iteration.value()); },
      fmt::format("± {:.0f} % by the costs' error bounds; lower bound {:.3f}",
                  100 * report.plan.predicted.error, f.lower_bound.value()));
  row("tokens/s/GPU",
      [](const PlanFigures& p) { return with_thousands(std::llround(p.tokens_per_second_per_gpu)); });
  row("MFU        %", [](const PlanFigures& p) { return percent(p.mfu); });
  row(
      "bubble     %", [](const PlanFigures& p) { return percent(p.warmup_bubble + p.imbalance_bubble); },
      fmt::format("warm-up and cool-down {}, imbalance {}", percent(f.warmup_bubble),
                  percent(f.imbalance_bubble)));
  row(
      "exposed EP %", [](const PlanFigures& p) { return percent(p.exposed_ep); },
      fmt::format("worst rank {}", percent(f.exposed_ep_worst)));
  row(
      "hidden EP  %", [](const PlanFigures& p) { return percent(p.hidden_ep); },
      fmt::format("worst rank {}", percent(f.hidden_ep_worst)));
  row(
      "peak memory GiB", [](const PlanFigures& p) { return gib(p.peak_memory); },
      fmt::format("of {}, rank {}", gib(report.plan.memory_limit), f.peak_rank));
  return table.text("  ");
}

std::string layer_span(const ModelSpec& model, BlockRange range) {
  std::int32_t first = -1;
  std::int32_t last = -1;
  for (std::int32_t b = range.begin; b < range.end; ++b) {
    const Block& block = model.blocks[static_cast<std::size_t>(b)];
    if (block.kind != BlockKind::layer) continue;
    if (first < 0) first = block.layer;
    last = block.layer;
  }
  return first < 0 ? "–" : fmt::format("{}–{}", first, last);
}

std::string partition_table(const PlanReport& report) {
  const ExecutionPlan& plan = report.plan;
  Table table(5);
  table.row({"stage", "rank", "layers", "F ms", "B ms", "holds"});
  for (std::size_t s = 0; s < plan.partition.stages.size(); ++s) {
    const StageId stage(static_cast<std::int64_t>(s));
    const TaskGraph f = plan.forward_graph(stage);
    const TaskGraph b = plan.backward_graph(stage);
    table.row({fmt::format("{}", s), fmt::format("{}", plan.actions.rank_of_stage[s].value()),
               layer_span(report.model, plan.partition.stages[s]),
               fmt::format("{:.2f}", milliseconds(f.load(Resource::comp) + f.load(Resource::comm))),
               fmt::format("{:.2f}", milliseconds(b.load(Resource::comp) + b.load(Resource::comm))),
               blocks_by_run(report.model, plan.partition.stages[s])});
  }
  return table.text("  ");
}

std::string memory_table(const PlanReport& report) {
  Table table;
  table.row({"rank", "weights", "gradients", "optimizer", "activations", "workspace", "p2p", "context",
             "peak GiB", "live chunks"});
  for (std::size_t r = 0; r < report.plan.memory.size(); ++r) {
    const RankMemory& m = report.plan.memory[r];
    const RankResult& rank = report.simulated.ranks[r];
    table.row({fmt::format("{}", r), gib(m.weights), gib(m.gradients), gib(m.optimizer),
               gib(rank.peak_activation), gib(m.workspace), gib(m.transfer), gib(m.context),
               gib(rank.peak_memory), fmt::format("{}", rank.peak_live)});
  }
  return table.text("  ");
}

std::string pairs_sentence(const PlanReport& report) {
  const auto& pairs = report.plan.pairs;
  if (pairs.empty()) return {};
  const auto optimal =
      std::ranges::count_if(pairs, [](const PairPlan& p) { return p.nominal <= p.bound * (1 + 1e-9); });
  double worst = 0;
  double comm = 0;
  double comp = 0;
  for (const PairPlan& pair : pairs) {
    if (pair.bound.value() > 0) worst = std::max(worst, pair.nominal / pair.bound - 1);
    const TaskGraph graph =
        pair_graph(report.plan.forward_graph(pair.forward), report.plan.backward_graph(pair.backward));
    comm += graph.load(Resource::comm).value();
    comp += graph.load(Resource::comp).value();
  }
  return fmt::format(
      "Pairs: {} overlapped stage pairs, each in the best order under interference; its nominal makespan is "
      "at the proved bound in {}, at most {:.1f} % above it; communication is {:.0f} % of compute in them.\n",
      pairs.size(), optimal, 100 * worst, comp > 0 ? 100 * comm / comp : 0.0);
}

std::string partition_gain(double gain) {
  if (gain < -0.0005)
    return fmt::format(" Serial balance would be {:.1f} % faster, but does not fit.",
                       100 * (1 / (1 + gain) - 1));
  return fmt::format(" The partition adds {:.1f} %.", 100 * std::max(gain, 0.0));
}

// What hiding gains, at one partition, and what the partition gains, with the same hiding.
std::string gain_sentence(const PlanReport& report) {
  if (report.plan.pairs.empty()) return {};
  const PlanFigures& overlapped = report.serial ? *report.serial : report.figures;
  const double gain = report.baseline.iteration / overlapped.iteration - 1;
  const double share = report.baseline.exposed_ep;
  std::string out;
  if (gain < 0.01) {
    out = fmt::format(
        "Little to gain from overlap: {:+.1f} % over the same partition without it, because {}.", 100 * gain,
        share < 0.02
            ? fmt::format("expert communication is only {:.1f} % of the step", 100 * share)
            : std::string("the extra warm-up forward and slower compute beside communication cost as much"));
  } else {
    out = fmt::format(
        "Where it comes from: hiding all-to-all makes the step {:.1f} % faster ({:.1f} % of it was exposed, "
        "{:.1f} % is).",
        100 * gain, 100 * share, 100 * overlapped.exposed_ep);
  }
  if (report.serial) out += partition_gain(report.serial->iteration / report.figures.iteration - 1);
  return out + "\n";
}

std::string sources_sentence(const CostSources& sources) {
  std::string out;
  for (std::size_t s = 0; s < kProvenances; ++s) {
    if (sources.values[s] == 0 && sources.share[s] < 0.0005) continue;
    out += fmt::format("{}{:.0f} % {} ({})", out.empty() ? "" : ", ", 100 * sources.share[s],
                       name(static_cast<Provenance>(s)), sources.values[s]);
  }
  return fmt::format("Costs: {} priced durations; of their time (and by main source): {}.\n", sources.total,
                     out);
}

}  // namespace

std::string plan_text(const PlanReport& report, const Job& job, const TextStyle& style) {
  std::string out = model_line(report.model) + "\n" + layout_lines(job, report.plan) + "\n";
  out += figures_table(report) + "\n";
  if (!report.usable) {
    const std::string warning = fmt::format(
        "NOT USABLE: rank {} needs {:.1f} GiB, and above {:.1f} of {:.1f} GiB the allocator retries.",
        report.figures.peak_rank, gibibytes(report.figures.peak_memory),
        gibibytes(report.plan.memory_limit) * kUsableMemory, gibibytes(report.plan.memory_limit));
    out += (style.color ? "\x1b[31m" + warning + "\x1b[0m" : warning) + "\n" +
           "  Use more pipeline or expert ranks, smaller microbatches, or layout.recompute.\n\n";
  }
  out += partition_table(report) + "\n" + memory_table(report) + "\n";
  out += gain_sentence(report) + partition_text(report) + memory_text(report) + pairs_sentence(report) +
         sources_sentence(report.sources);
  for (const std::string& note : report.notes) out += "Note: " + note + "\n";
  return out;
}

}  // namespace tessera::train
