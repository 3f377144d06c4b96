#include <fmt/format.h>

#include <algorithm>

#include "schedule_words.h"
#include "table.h"
#include "tessera/core/base/text.h"
#include "tessera/train/explain/schedules.h"

namespace tessera::train {

ScheduleCounts count_cells(const LoweredList& list) {
  ScheduleCounts counts;
  for (const auto& row : list.ranks)
    for (const Cell& cell : row) {
      if (is_message(cell.kind)) counts.messages += is_send(cell.kind) ? 1 : 0;
      if (cell.kind == CellKind::unshard) ++counts.gathers;
      if (cell.kind == CellKind::reduce_gradient) ++counts.reductions;
      if (cell.kind != CellKind::compute) continue;
      const bool pair = cell.action.kind == ActionKind::overlap;
      const ActionKind kind = pair ? cell.action.backward_kind : cell.action.kind;
      counts.pairs += pair ? 1 : 0;
      counts.forwards += pair || kind == ActionKind::forward ? 1 : 0;
      counts.whole_backwards += kind == ActionKind::full_backward ? 1 : 0;
      counts.input_gradients += kind == ActionKind::input_gradient ? 1 : 0;
      counts.weight_gradients += kind == ActionKind::weight_gradient ? 1 : 0;
    }
  return counts;
}

std::vector<std::vector<std::int32_t>> stages_of_ranks(const LoweredList& list) {
  std::vector<std::vector<std::int32_t>> out(list.ranks.size());
  for (std::size_t s = 0; s < list.stages(); ++s)
    out[list.rank_of_stage[s].index()].push_back(static_cast<std::int32_t>(s));
  return out;
}

std::string_view form_name(CsvForm form) noexcept {
  return form == CsvForm::compute_only ? "compute_only" : "compute_comms";
}
std::string_view grammar_name(CsvGrammar grammar) noexcept {
  return grammar == CsvGrammar::current ? "current" : "2024";
}

std::string numbers(const std::vector<std::int32_t>& values) {
  return fmt::format("{}", fmt::join(values, ", "));
}

std::string overtaking_words(const Overtaking& overtaking) {
  return fmt::format("{} from rank {} to rank {}", text(overtaking.send), overtaking.from.value(),
                     overtaking.to.value());
}

namespace {

std::string plural(std::int64_t count, std::string_view word) {
  const std::string_view ending = count == 1 ? "" : word.ends_with("ch") ? "es" : "s";
  return fmt::format("{} {}{}", with_thousands(count), word, ending);
}

// "x.csv   compute only   4 ranks, 8 stages, 10 microbatches".
std::string head_line(std::string_view file, const TorchCsv& csv) {
  return fmt::format("{}   torch CSV, {}   {}, {}, {}\n", file,
                     csv.form == CsvForm::compute_only ? "compute only" : "with communication",
                     plural(static_cast<std::int64_t>(csv.list.ranks.size()), "rank"),
                     plural(static_cast<std::int64_t>(csv.list.stages()), "stage"),
                     plural(csv.list.microbatches, "microbatch"));
}

}  // namespace

std::string schedule_text(std::string_view file, const TorchCsv& csv) {
  std::string out = head_line(file, csv);
  if (csv.grammar == CsvGrammar::of_2024) out += "  grammar of 2024: its BW is B now, its B is I\n";
  const ScheduleCounts counts = count_cells(csv.list);
  out += fmt::format("  {} forwards, {} whole backwards, {} input and {} weight gradients", counts.forwards,
                     counts.whole_backwards, counts.input_gradients, counts.weight_gradients);
  if (counts.pairs > 0) out += fmt::format("; {} pairs of a forward with a backward", counts.pairs);
  if (csv.form == CsvForm::compute_comms)
    out += fmt::format("\n  {} sends, {} weight gathers, {} gradient reductions", counts.messages,
                       counts.gathers, counts.reductions);
  if (csv.idle_cells > 0) out += fmt::format("\n  {} empty cells, which only align rows", csv.idle_cells);
  out += "\n  stages";
  const auto stages = stages_of_ranks(csv.list);
  for (std::size_t r = 0; r < stages.size(); ++r)
    out += fmt::format("{} rank {}: {}", r == 0 ? "" : " ·", r, numbers(stages[r]));
  out += '\n';
  const auto times = time_schedule(without_communication(csv.list));
  if (!times) return out + "  does not run: " + times.error().message + " (tessera check says more)\n";
  return out + fmt::format(
                   "  with F = I = W = 1: {:g} units, work {:g} on the busiest rank, bubble {:.1f} % of the "
                   "step and {:.1f} % of the ranks' own spans\n",
                   times->makespan.value(), std::ranges::max(times->busy).value(), 100 * times->bubble(),
                   100 * times->own_span_bubble());
}

std::string schedule_check_text(std::string_view file, const TorchCsv& csv, const LoweredFacts& facts) {
  std::string out = fmt::format("{}: sound\n", file);
  out += fmt::format(
      "  {} actions on {} ranks: every stage and microbatch forward and backward once, each stage on "
      "one rank\n",
      with_thousands(facts.compute.actions), csv.list.ranks.size());
  out += "  no deadlock when sends wait for nobody (eager)";
  if (csv.form == CsvForm::compute_only)
    out += fmt::format(
        ", nor, once {} sends and receives are added, when each\n  waits for the other (rendezvous)\n",
        with_thousands(facts.messages));
  else
    out += fmt::format(
        ", nor when sends and receives wait for each other\n  (rendezvous: {} messages in {} groups, "
        "the largest of {} cells)\n",
        with_thousands(facts.messages), with_thousands(facts.groups), facts.largest_group);
  out += fmt::format("  live chunk activations at most {} until B, {} until W (per rank)\n",
                     numbers(facts.compute.peak_live), numbers(facts.compute.peak_until_weight));
  if (facts.overtaking)
    out += fmt::format(
        "  warning: {} is received in another order than it is sent; a transport that matches by "
        "order, as NCCL,\n  hands over the wrong tensor\n",
        overtaking_words(*facts.overtaking));
  return out;
}

std::string torch_verdict_text(std::string_view file, const TorchVerdict& verdict) {
  if (verdict.accepted)
    return fmt::format("{}: torch loads it (which proves little: tessera check without --as is stricter)\n",
                       file);
  return fmt::format("{}: torch refuses it\n  {}\n", file, verdict.reason);
}

std::string schedules_text(const SchedulesQuestion& question) {
  const TemplateSizes& sizes = question.sizes;
  std::string out = fmt::format(
      "{} ranks, {} chunks a rank where the template leaves it open, {} microbatches\n"
      "one chunk: forward {:g}, input gradient {:g}, weight gradient {:g}, transfer {:g}; a pair takes {:g} "
      "of its "
      "halves in turn\n\n",
      sizes.pp, sizes.vp, sizes.microbatches, question.chunk.forward.value(),
      question.chunk.input_gradient.value(), question.chunk.weight_gradient.value(),
      question.transfer.value(), question.pair_share);
  Table table;
  table.row({"template", "chunks", "N", "makespan", "over work", "bubble", "own span", "live until B",
             "until W", "in shares"});
  std::string refusals;
  for (const TemplateFigures& row :
       compare_templates(sizes, question.chunk, question.transfer, question.pair_share)) {
    if (!row.legal) {
      refusals += fmt::format("  {}: {}\n", name(row.schedule), row.refusal.message);
      continue;
    }
    table.row({std::string(name(row.schedule)), std::to_string(row.chunks),
               row.group == 0 ? "" : std::to_string(row.group), fmt::format("{:g}", row.makespan.value()),
               fmt::format("{:.3f}", row.over_work), fmt::format("{:.1f} %", 100 * row.bubble),
               fmt::format("{:.1f} %", 100 * row.own_span_bubble), std::to_string(row.peak_live),
               std::to_string(row.peak_until_weight),
               fmt::format("{:.2f}", static_cast<double>(row.peak_until_weight) / row.chunks)});
  }
  out += table.text();
  out +=
      "\nover work    makespan over the work of the busiest rank: compares different numbers of chunks\n"
      "bubble       idle share of the step, all ranks; own span leaves out that ranks start late and end "
      "early\n"
      "live         chunk activations on the fullest rank, until B or W; ranks' worth: divided by its "
      "chunks\n";
  if (!refusals.empty()) out += "\nnot at these sizes:\n" + refusals;
  return out;
}

}  // namespace tessera::train
