// `tessera pair` in words: the chart, the answer, why it cannot be shorter, and every scheduler beside it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "gantt.h"
#include "table.h"
#include "tessera/core/base/text.h"
#include "tessera/train/explain/explain.h"

namespace tessera::train {
namespace {

// Tasks of a critical path, and idle gaps, that are told one by one.
constexpr std::size_t kToldPath = 16, kToldGaps = 3, kToldTasks = 12;

std::string full_name(const Task& task) {
  return task_name(task.name.pass, task.name.kind, task.name.layer);
}

// F_ATTN:L9 → FA9.
std::string brief_name(const Task& task) {
  constexpr std::string_view kPass = "FBWR", kKind = "EADSMCH";
  static_assert(kPass.size() == kPasses && kKind.size() == kTaskKinds);
  std::string out{kPass[static_cast<std::size_t>(task.name.pass)],
                  kKind[static_cast<std::size_t>(task.name.kind)]};
  if (task.name.layer >= 0) out += std::to_string(task.name.layer);
  return out;
}

class PairText {
 public:
  PairText(const PairReport& report, const PairTextOptions& options)
      : report_(report), options_(options), decimals_(decimals_of(report.optimum)) {}

  std::string text() const {
    std::string out = header();
    if (report_.graph.tasks.empty()) return out + "Both stages are empty: there is nothing to run.\n";
    out += "\n" + chart() + "\n" + answer() + why() + interference() + pool();
    return out + "\n" + table() + ilp();
  }

 private:
  static int decimals_of(Seconds makespan) {
    const double ms = milliseconds(makespan);
    return ms <= 0 || ms >= 10 ? 2 : std::min(6, 2 - static_cast<int>(std::floor(std::log10(ms))));
  }
  [[nodiscard]] std::string ms(Seconds time) const {
    return fmt::format("{:.{}f}", milliseconds(time), decimals_);
  }
  static std::string clock(Seconds time) {
    const double t = time.value();
    return t < 1e-2 ? fmt::format("{:.2f} ms", 1e3 * t)
           : t < 1  ? fmt::format("{:.0f} ms", 1e3 * t)
                    : fmt::format("{:.1f} s", t);
  }
  [[nodiscard]] std::string task(TaskId id) const { return full_name(report_.graph.tasks[id.index()]); }
  [[nodiscard]] std::string tasks(const std::vector<TaskId>& ids) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min(ids.size(), kToldTasks); ++i) names.push_back(task(ids[i]));
    if (ids.size() > kToldTasks) names.push_back(fmt::format("{} more", ids.size() - kToldTasks));
    return join_words(names);
  }
  [[nodiscard]] bool shows_the_shortest() const {
    return report_.nominal.makespan.value() <= report_.optimum.value() * (1 + 1e-9);
  }

  // ------------------------------------------------------------------------------------------ what it is

  static std::string stage(const PairStage& stage) {
    std::string out = fmt::format("stage {}: {}", stage.stage.value(), stage.holds);
    if (!stage.layers.empty())
      out += fmt::format(", layer{} {}", stage.layers.size() == 1 ? "" : "s",
                         stage.layers.size() == 1
                             ? std::to_string(stage.layers.front())
                             : fmt::format("{}–{}", stage.layers.front(), stage.layers.back()));
    return out + fmt::format(", rank {}", stage.rank);
  }

  [[nodiscard]] std::string header() const {
    std::string out = fmt::format("{} on {}   {}\n", report_.model, report_.device, report_.schedule);
    out += "  forward of " + stage(report_.forward) + "\n  backward of " + stage(report_.backward) + "\n";
    if (!report_.overlapped)
      out += fmt::format("  {} never overlaps these two{}; shown as if it did.\n", report_.schedule,
                         report_.forward.rank == report_.backward.rank ? "" : ", which lie on two ranks");
    if (report_.rank_speed != 1)
      out += fmt::format("  Times are those of a rank of speed 1; rank {} has {:g}.\n", report_.backward.rank,
                         report_.rank_speed);
    return out;
  }

  // -------------------------------------------------------------------------------------------- the chart

  [[nodiscard]] std::string chart() const {
    const PairSchedule& shown = report_.slowed;
    if (shown.makespan <= Seconds(0)) return "  no task takes any time\n";
    std::vector<GanttTask> cells;
    std::vector<TaskId> ids;
    for (const TaskId id : shown.order) {
      const Task& task = report_.graph.tasks[id.index()];
      cells.push_back({.lane = task.resource == Resource::comm ? 1U : 0U,
                       .label = full_name(task),
                       .brief = brief_name(task),
                       .start = shown.start[id.index()],
                       .end = shown.end[id.index()]});
      ids.push_back(id);
    }
    const Gantt gantt = draw_gantt({"  comp", "  comm"}, cells, shown.makespan, options_.columns);
    std::string out = gantt.text;
    if (gantt.briefs) out += wrap("  " + legend());
    std::vector<TaskId> hidden;
    for (const std::size_t cell : gantt.unlabelled) hidden.push_back(ids[cell]);
    if (!hidden.empty()) out += wrap("  too short to label: " + tasks(hidden));
    return out;
  }

  [[nodiscard]] std::string legend() const {
    constexpr std::string_view kWords[] = {"E embedding", "A attention", "D dispatch", "S shared expert",
                                           "M MLP",       "C combine",   "H head"};
    std::set<TaskKind> kinds;
    const Task* example = nullptr;
    for (const Task& task : report_.graph.tasks) {
      kinds.insert(task.name.kind);
      if (example == nullptr || (example->name.layer < 0 && task.name.layer >= 0)) example = &task;
    }
    std::string out = fmt::format("{} is {}:", brief_name(*example), full_name(*example));
    for (const TaskKind kind : kinds)
      out += fmt::format(" {}{}", kWords[static_cast<std::size_t>(kind)], kind == *kinds.rbegin() ? "" : ",");
    const bool recompute = std::ranges::any_of(
        report_.graph.tasks, [](const Task& task) { return task.name.pass == Pass::recompute; });
    return out + "; F forward, B input gradient, W weight gradient" + (recompute ? ", R recompute" : "");
  }

  // ------------------------------------------------------------------------------------------- the answer

  [[nodiscard]] std::string beside(std::string_view name, std::string_view label) const {
    const PairRow* row = report_.row(name);
    if (row == nullptr) return {};
    return row->above < 5e-5 ? fmt::format("   {} equal", label)
                             : fmt::format("   {} +{:.1f} %", label, 100 * row->above);
  }

  [[nodiscard]] std::string answer() const {
    const PairRow& exact = *report_.row("exact");
    std::string out =
        report_.proved
            ? fmt::format("optimum {} ms (proved in {})", ms(report_.optimum), clock(exact.solve_time))
            : fmt::format("best {} ms, bound {} ms (gap {:.2f} %, after {})", ms(report_.optimum),
                          ms(report_.bound), 100 * (report_.optimum / report_.bound - 1),
                          clock(exact.solve_time));
    out += beside("fifo", "FIFO") + beside("align", "Align") + beside("defer", "Defer");
    return out + fmt::format("   serial {} ms\n", ms(report_.row("serial")->makespan));
  }

  // ---------------------------------------------------------------------------------------------- the why

  [[nodiscard]] std::string chain(bool forward) const {
    const PairBounds& bounds = report_.bounds;
    return fmt::format("the {} chunk is a chain of {} ms, in which each task needs the one before",
                       forward ? "forward" : "backward",
                       ms(forward ? bounds.forward_chain : bounds.backward_chain));
  }

  [[nodiscard]] std::string why() const {
    const PairBounds& bounds = report_.bounds;
    if (!report_.proved) return not_proved() + order();
    const bool credit = report_.pool_credit > Seconds(0);
    if (report_.gaps.empty() && report_.binding == Binding::order && credit)
      return wrap(fmt::format(
          "It cannot be shorter: compute is busy all the time ({} ms of work beyond what the pool "
          "takes), and no more of the credit can be used.",
          ms(report_.optimum)));
    switch (report_.binding) {
      case Binding::compute:
        return wrap(fmt::format(
            "It cannot be shorter: compute is busy all the time ({} ms of work{}); {}.", ms(bounds.compute),
            credit ? " beyond what the pool takes" : "",
            bounds.communication > Seconds(0) ? "all communication is hidden" : "there is no communication"));
      case Binding::communication:
        return wrap(fmt::format(
            "It cannot be shorter: communication is busy all the time ({} ms); {} ms of it is exposed.",
            ms(bounds.communication), ms(exposed_communication(report_.graph, report_.explained))));
      case Binding::forward_chain:
      case Binding::backward_chain:
        return wrap(fmt::format("It cannot be shorter: {}.",
                                chain(report_.binding == Binding::forward_chain))) +
               path();
      case Binding::order:
        break;
    }
    const Seconds longest = bounds.longest();
    return wrap(fmt::format(
               "It cannot be shorter, though no resource and no chain fills it: {} ms ({:.2f} %) are above "
               "the largest of compute {}, communication {}, forward chain {} and backward chain {} ms. No "
               "order does better{}.",
               ms(report_.optimum - longest), 100 * (report_.optimum / longest - 1), ms(bounds.compute),
               ms(bounds.communication), ms(bounds.forward_chain), ms(bounds.backward_chain), proof())) +
           order();
  }

  [[nodiscard]] std::string proof() const {
    const PairRow& exact = *report_.row("exact");
    if (exact.reason != PairReason::optimal) return ": the MILP proves it";
    return exact.work <= 1 ? ": the bound with divisible weight gradients proves it"
                           : fmt::format(": {} labels of the search prove it", with_thousands(exact.work));
  }

  [[nodiscard]] std::string not_proved() const {
    const PairRow& exact = *report_.row("exact");
    std::string out = fmt::format("Not proved: no order is shorter than {} ms, the best found takes {} ms.",
                                  ms(report_.bound), ms(report_.optimum));
    const bool stopped = exact.work >= options_.labels;
    out += stopped ? fmt::format(" The search stopped after {} labels. To go on: --labels {}",
                                 with_thousands(exact.work), 10 * options_.labels)
                   : std::string(
                         " The exact search does not cover this pair in full "
                         "(docs/pair-schedules.md, Limits). To go on:");
    const bool ilp = report_.row("ilp") != nullptr;
    return wrap(out + (ilp       ? stopped ? ", or a longer --time-limit." : " a longer --time-limit."
                       : stopped ? ", or --ilp."
                                 : " --ilp."));
  }

  // What holds an order up that neither stream nor chain explains.
  [[nodiscard]] std::string order() const {
    if (shows_the_shortest()) return path() + gaps();
    return "Of the shortest order, which is not the one shown:\n" + path() + gaps();
  }

  [[nodiscard]] std::string path() const {
    std::string out = "Critical path (→ needs the task before, ⇢ waits for its stream):";
    const auto& path = report_.path;
    const bool all = path.size() <= kToldPath;
    for (std::size_t i = 0; i < path.size(); ++i) {
      if (!all && i == kToldPath / 2) {
        out += fmt::format(" … {} more …", path.size() - kToldPath);
        i += path.size() - kToldPath;
      }
      out += fmt::format(" {}{}", i == 0 ? "" : path[i].waited_for_stream ? "⇢ " : "→ ", task(path[i].task));
    }
    return wrap(out);
  }

  [[nodiscard]] std::string gaps() const {
    std::string out;
    Seconds all;
    for (const ComputeGap& gap : report_.gaps) all += gap.end - gap.begin;
    if (report_.gaps.empty()) return {};
    out = fmt::format("Compute idles {} ms in {} gap{}:", ms(all), report_.gaps.size(),
                      report_.gaps.size() == 1 ? "" : "s");
    for (std::size_t i = 0; i < std::min(kToldGaps, report_.gaps.size()); ++i) {
      const ComputeGap& gap = report_.gaps[i];
      out += fmt::format("{} {} ms at {} ms, {}{}", i == 0 ? "" : ";", ms(gap.end - gap.begin), ms(gap.begin),
                         gap.next ? task(*gap.next) + " waits" : "the end waits",
                         gap.awaited ? " for " + task(*gap.awaited) : "");
      if (gap.queued_behind) out += fmt::format(", which queued behind {}", task(*gap.queued_behind));
    }
    if (report_.gaps.size() > kToldGaps) out += "; …";
    return wrap(out + ".");
  }

  // -------------------------------------------------------------------- interference, pool, all schedulers

  [[nodiscard]] std::string interference() const {
    if (!report_.slows()) return {};
    if (report_.slowed.makespan.value() <= report_.nominal.makespan.value() * (1 + 1e-9) &&
        shows_the_shortest())
      return "Interference slows nothing here.\n";
    const Interference& i = report_.interference;
    std::string out = fmt::format(
        "Under interference the order shown takes {} ms, as drawn: while communication runs, compute-bound "
        "work has {:.0f} % of its speed, memory-bound work {:.0f} %. The {} ms bound the time without it, "
        "and "
        "so also this one, since interference only slows; the best under interference is not proved.",
        ms(report_.slowed.makespan), 100 * i.compute_bound_rate, 100 * i.memory_bound_rate,
        ms(report_.bound));
    if (!shows_the_shortest())
      out += fmt::format(
          " Without it, this order takes {} ms, {:.2f} % above the shortest, which would take {} ms under "
          "it.",
          ms(report_.nominal.makespan), 100 * (report_.nominal.makespan / report_.optimum - 1),
          ms(report_.row("exact")->slowed));
    return wrap(out);
  }

  [[nodiscard]] std::string pool() const {
    if (report_.pool_credit <= Seconds(0)) return {};
    const auto& left = report_.slowed.left;
    Seconds sum;
    for (const TaskId id : left) sum += report_.graph.tasks[id.index()].duration;
    if (left.empty())
      return fmt::format("Nothing is left to the pool, of a credit of {} ms.\n", ms(report_.pool_credit));
    return wrap(
        fmt::format("Left to the pool: {} ({} ms of a credit of {} ms), to be charged elsewhere on "
                    "the rank.",
                    tasks(left), ms(sum), ms(report_.pool_credit)));
  }

  static std::string label(std::string_view name) {
    constexpr std::pair<std::string_view, std::string_view> kLabels[] = {
        {"serial", "serial"}, {"fifo", "FIFO"},   {"align", "Align"}, {"defer-literal", "Defer, literal"},
        {"defer", "Defer"},   {"exact", "exact"}, {"ilp", "ILP"},     {"exact-slowed", "exact, interference"},
        {"plan", "the plan"}};
    const auto* found =
        std::ranges::find(kLabels, name, &std::pair<std::string_view, std::string_view>::first);
    return std::string(found->second);
  }

  [[nodiscard]] std::string table() const {
    Table table;
    std::vector<std::string> head{"", "makespan ms", report_.proved ? "above optimum %" : "above bound %",
                                  "exposed comm ms", "of comm %"};
    if (report_.slows()) head.emplace_back("under interference ms");
    table.row(head);
    const double comm = report_.bounds.communication.value();
    for (const PairRow& row : report_.rows) {
      std::vector<std::string> cells{
          label(row.name), ms(row.makespan), fmt::format("{:.2f}", 100 * row.above), ms(row.exposed),
          comm > 0 ? fmt::format("{:.1f}", 100 * row.exposed.value() / comm) : "–"};
      if (report_.slows()) cells.push_back(ms(row.slowed));
      table.row(cells);
    }
    return table.text("  ");
  }

  [[nodiscard]] std::string ilp() const {
    const PairRow* row = report_.row("ilp");
    if (row == nullptr) return {};
    return fmt::format("ILP (HiGHS): {} in {}, {} node{}, bound {} ms\n", name(row->reason),
                       clock(row->solve_time), with_thousands(row->work), row->work == 1 ? "" : "s",
                       ms(row->bound));
  }

  // Lines of at most the chart's width; what follows the first is indented.
  [[nodiscard]] std::string wrap(const std::string& text) const {
    const std::size_t indent = std::min(text.find_first_not_of(' '), text.size());
    std::vector<std::string> words;
    for (const std::string_view word : split(std::string_view(text).substr(indent), ' ')) {
      if (!words.empty() && (word.starts_with('%') || word.starts_with("ms")))
        words.back() += " " + std::string(word);  // a unit stays with its number
      else
        words.emplace_back(word);
    }
    std::string out, line(indent, ' ');
    bool first = true;
    for (const std::string& word : words) {
      if (!first && display_width(line) + 1 + display_width(word) > options_.columns) {
        out += line + "\n";
        line = std::string(indent + 2, ' ') + word;
      } else {
        line += (first ? "" : " ") + word;
      }
      first = false;
    }
    return out + line + "\n";
  }

  const PairReport& report_;
  const PairTextOptions& options_;
  int decimals_;
};

}  // namespace

std::string pair_text(const PairReport& report, const PairTextOptions& options) {
  return PairText(report, options).text();
}

}  // namespace tessera::train
