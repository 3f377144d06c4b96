#include "measure.h"

#include <fmt/format.h>
#include <sched.h>
#include <time.h>

#include <chrono>
#include <cstring>

#include "../report.h"
#include "tessera/train/overlap/check_pair.h"

namespace tessera::bench {
namespace {

// Sums in another order differ in the last bits.
constexpr double kRounding = 1e-9;

bool at_most(Seconds a, Seconds b) {
  return a.value() <= b.value() * (1 + kRounding);
}

std::string text(const train::TaskGraph& graph) {
  std::string out;
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const train::Task& task = graph.tasks[i];
    out += fmt::format("  {:3} {:12} {} {:.17g} s after", i,
                       task_name(task.name.pass, task.name.kind, task.name.layer),
                       task.resource == Resource::comm ? "comm" : "comp", task.duration.value());
    for (const TaskId before : task.after) out += fmt::format(" {}", before.value());
    out += '\n';
  }
  return out;
}

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

Pinned::Pinned(int n) {
  static_assert(sizeof before_ == sizeof(cpu_set_t));
  cpu_set_t allowed;
  verify(sched_getaffinity(0, sizeof allowed, &allowed) == 0, "the cores this thread may use are known");
  std::memcpy(before_.data(), &allowed, sizeof allowed);
  n %= CPU_COUNT(&allowed);
  for (int core = CPU_SETSIZE - 1; core >= 0; --core) {
    if (!CPU_ISSET(core, &allowed) || n-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    verify(sched_setaffinity(0, sizeof one, &one) == 0, "the thread stays on one core");
    return;
  }
}

Pinned::~Pinned() {
  cpu_set_t allowed;
  std::memcpy(&allowed, before_.data(), sizeof allowed);
  sched_setaffinity(0, sizeof allowed, &allowed);
}

Timed timed(const train::TaskGraph& graph, const train::PairOptions& options) {
  const double cpu = thread_seconds();
  const auto begin = std::chrono::steady_clock::now();
  train::PairResult result = train::schedule_pair(graph, options);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  return {std::move(result), spent.count(), thread_seconds() - cpu};
}

void verify_pair(bool holds, const train::TaskGraph& graph, const std::string& what) {
  if (holds) return;
  fmt::print(stderr, "{}", text(graph));
  verify(false, what);
}

void verify_answer(const train::TaskGraph& graph, const train::PairResult& result, const std::string& what) {
  const auto require = [&](bool holds, std::string_view claim) {
    if (!holds) verify_pair(false, graph, fmt::format("{}: {}", what, claim));
  };
  if (const auto legal = train::check_pair(graph, result.schedule); !legal)
    require(false, "the schedule is legal: " + legal.error().text());
  require(at_most(result.best_nominal, result.schedule.makespan), "the best is the shortest");
  require(at_most(result.bound, result.best_nominal), "the schedule is not below its bound");
  require(at_most(train::pair_bound(graph), result.bound), "the bound is not below loads and chains");
  require(result.reason != train::PairReason::optimal || at_most(result.best_nominal, result.bound),
          "what is proved is at its bound");
}

Outcome judge(const train::TaskGraph& graph, const train::PairResult& exact, const std::string& what) {
  verify_answer(graph, exact, what);
  Outcome out;
  out.proved = exact.reason == train::PairReason::optimal;
  out.hard = train::binding(train::pair_bounds(graph), exact.best_nominal / (1 + kRounding)) ==
             train::Binding::order;
  out.gap = exact.gap;
  const Seconds reference = out.proved ? exact.best_nominal : exact.bound;
  for (std::size_t r = 0; r < kRules.size(); ++r) {
    const train::PairResult rule = train::schedule_pair(graph, {.method = kRules[r]});
    verify_answer(graph, rule, fmt::format("{}, {}", what, train::name(kRules[r])));
    if (!at_most(exact.best_nominal, rule.best_nominal))
      verify_pair(false, graph,
                  fmt::format("{}: exact ({:.17g} s) is not longer than {} ({:.17g} s)", what,
                              exact.best_nominal.value(), train::name(kRules[r]), rule.best_nominal.value()));
    out.rule_gap[r] = reference.value() > 0 ? rule.best_nominal / reference - 1 : 0;
  }
  return out;
}

}  // namespace tessera::bench
