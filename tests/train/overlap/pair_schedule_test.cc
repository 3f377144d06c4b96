#include "tessera/train/overlap/pair_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "tessera/train/overlap/check_pair.h"
#include "tessera/train/overlap/pair_bounds.h"
#include "train/overlap/graphs.h"

namespace tessera::train {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using testing::Random;
using testing::random_pair;
using testing::rounds;
using testing::set;
using testing::shortest_makespan;

constexpr PairMethod kRules[] = {PairMethod::serial, PairMethod::fifo, PairMethod::align,
                                 PairMethod::defer_literal, PairMethod::defer};

std::vector<double> values(const std::vector<Seconds>& times) {
  std::vector<double> out;
  for (const Seconds t : times) out.push_back(t.value());
  return out;
}

Task task(TaskName name, Resource resource, double duration, std::vector<int> after, bool movable = false) {
  Task t{.name = name, .resource = resource, .duration = Seconds(duration), .movable = movable};
  for (const int a : after) t.after.emplace_back(a);
  return t;
}

// A forward MoE layer beside a backward one, durations chosen so that each rule decides differently.
TaskGraph layer_pair(double f_attn, double f_comm, double f_mlp, double b_comm, double b_mlp, double b_attn,
                     double w) {
  BlockCost cost;
  set(cost, Pass::forward, TaskKind::attention, f_attn);
  set(cost, Pass::forward, TaskKind::dispatch, f_comm);
  set(cost, Pass::forward, TaskKind::mlp, f_mlp);
  set(cost, Pass::forward, TaskKind::combine, f_comm);
  set(cost, Pass::backward, TaskKind::combine, b_comm);
  set(cost, Pass::backward, TaskKind::mlp, b_mlp);
  set(cost, Pass::backward, TaskKind::dispatch, b_comm);
  set(cost, Pass::backward, TaskKind::attention, b_attn);
  set(cost, Pass::weight, TaskKind::mlp, w);
  set(cost, Pass::weight, TaskKind::attention, w);
  const std::vector<ChunkBlock> f{{&cost, 0}}, b{{&cost, 1}};
  return pair_graph(forward_chunk(f), backward_chunk(b));
}

TEST(SchedulePair, HidesCommunicationBehindTheOtherChunk) {
  const TaskGraph graph = layer_pair(2, 2, 2, 2, 2, 2, 1);
  EXPECT_EQ(schedule_pair(graph, {.method = PairMethod::serial}).schedule.makespan, Seconds(18));
  const PairResult result = schedule_pair(graph, {.method = PairMethod::defer});
  EXPECT_EQ(result.schedule.makespan, Seconds(10));
  EXPECT_EQ(result.bound, Seconds(10));
  EXPECT_EQ(result.reason, PairReason::optimal);
  EXPECT_EQ(result.gap, 0);
}

TEST(SchedulePair, AlignTakesTheTaskThatFitsTheWindow) {
  // Comm runs for 1, then for 3. Of the compute tasks, 3 and 1 long, the second fits the first window.
  TaskGraph graph;
  graph.tasks = {task({Pass::forward, TaskKind::attention, 0}, Resource::comp, 3, {}),
                 task({Pass::forward, TaskKind::attention, 1}, Resource::comp, 1, {}),
                 task({Pass::forward, TaskKind::dispatch, 2}, Resource::comm, 1, {}),
                 task({Pass::forward, TaskKind::dispatch, 3}, Resource::comm, 3, {2})};
  const auto starts = [&](PairMethod rule) {
    return values(schedule_pair(graph, {.method = rule}).schedule.start);
  };
  EXPECT_THAT(starts(PairMethod::fifo), ElementsAre(0, 3, 0, 1));
  EXPECT_THAT(starts(PairMethod::align), ElementsAre(1, 0, 0, 1));
}

TEST(SchedulePair, AlignRunsTheBackboneBeforeWeightGradients) {
  TaskGraph graph;
  graph.tasks = {task({Pass::weight, TaskKind::mlp, 0}, Resource::comp, 5, {}, true),
                 task({Pass::backward, TaskKind::mlp, 1}, Resource::comp, 1, {}),
                 task({Pass::backward, TaskKind::dispatch, 1}, Resource::comm, 5, {1})};
  EXPECT_EQ(schedule_pair(graph, {.method = PairMethod::fifo}).schedule.makespan, Seconds(11));
  EXPECT_EQ(schedule_pair(graph, {.method = PairMethod::align}).schedule.makespan, Seconds(6));
}

TEST(SchedulePair, DeferKeepsAWeightGradientFromDelayingTheChain) {
  // While B_DISP runs (1 long) only W (4 long) could; started at once it would hold up B_ATTN and the
  // communication after it. Put off, it runs beside that communication.
  TaskGraph graph;
  graph.tasks = {task({Pass::backward, TaskKind::mlp, 0}, Resource::comp, 1, {}),
                 task({Pass::weight, TaskKind::mlp, 0}, Resource::comp, 4, {0}, true),
                 task({Pass::backward, TaskKind::dispatch, 0}, Resource::comm, 1, {0}),
                 task({Pass::backward, TaskKind::attention, 0}, Resource::comp, 1, {2}),
                 task({Pass::backward, TaskKind::combine, 1}, Resource::comm, 6, {3})};
  EXPECT_EQ(schedule_pair(graph, {.method = PairMethod::align}).schedule.makespan, Seconds(12));
  for (const PairMethod rule : {PairMethod::defer_literal, PairMethod::defer}) {
    const PairSchedule s = schedule_pair(graph, {.method = rule}).schedule;
    EXPECT_EQ(s.makespan, Seconds(9));
    EXPECT_THAT(values(s.start), ElementsAre(0, 3, 1, 2, 3));
  }
}

TEST(SchedulePair, OnlyDeferLetsABackfilledTaskOvershoot) {
  // W (4 long) is put off at 1. The compute gaps are [1, 4], [5, 8] and [9, 12], each too short for it. In
  // the second it pushes F_HEAD on from 8 to 9, where the last communication still ends the pair at 12.
  TaskGraph graph;
  graph.tasks = {task({Pass::backward, TaskKind::mlp, 0}, Resource::comp, 1, {}),
                 task({Pass::weight, TaskKind::mlp, 0}, Resource::comp, 4, {0}, true),
                 task({Pass::backward, TaskKind::dispatch, 0}, Resource::comm, 3, {0}),
                 task({Pass::backward, TaskKind::attention, 0}, Resource::comp, 1, {2}),
                 task({Pass::forward, TaskKind::combine, 1}, Resource::comm, 3, {3}),
                 task({Pass::forward, TaskKind::head, 1}, Resource::comp, 1, {4}),
                 task({Pass::backward, TaskKind::combine, 2}, Resource::comm, 4, {3})};
  EXPECT_EQ(schedule_pair(graph, {.method = PairMethod::align}).schedule.makespan, Seconds(13));
  EXPECT_EQ(schedule_pair(graph, {.method = PairMethod::defer_literal}).schedule.makespan, Seconds(13));
  const PairSchedule s = schedule_pair(graph, {.method = PairMethod::defer}).schedule;
  EXPECT_EQ(s.makespan, Seconds(12));
  EXPECT_THAT(values(s.start), ElementsAre(0, 5, 1, 4, 5, 9, 8));
}

TEST(SchedulePair, IsDeterministic) {
  Random random(5);
  for (int i = 0; i < 50; ++i) {
    const TaskGraph graph = random_pair(random, random.below(6), random.below(6), i % 2 == 0 ? 0 : 1);
    for (const PairMethod rule : kRules) {
      const PairResult a = schedule_pair(graph, {.method = rule}), b = schedule_pair(graph, {.method = rule});
      EXPECT_EQ(a.schedule.order, b.schedule.order);
      EXPECT_EQ(a.schedule.makespan, b.schedule.makespan);
    }
  }
}

TEST(SchedulePair, EveryRuleIsLegalOnRandomPairs) {
  Random random(11);
  const int pairs = rounds(2'000, 40'000);
  std::map<PairMethod, double> gap;
  for (int i = 0; i < pairs; ++i) {
    const TaskGraph graph = random_pair(random, random.below(7), random.below(7), i % 4 == 0 ? 0 : 1);
    const double bound = pair_bound(graph).value();
    double aligned = 0;
    for (const PairMethod rule : kRules) {
      const PairResult result = schedule_pair(graph, {.method = rule});
      const Status status = check_pair(graph, result.schedule);
      ASSERT_TRUE(status) << name(rule) << ", pair " << i << ": " << status.error().text();
      const double makespan = result.schedule.makespan.value();
      ASSERT_GE(makespan, bound * (1 - 1e-12));
      ASSERT_LE(result.bound, result.schedule.makespan);
      EXPECT_EQ(result.reason == PairReason::optimal, result.gap == 0);
      if (rule != PairMethod::serial) {  // the order alone, on two streams, gives the same times
        ASSERT_EQ(run_order(graph, result.schedule.order).makespan, result.schedule.makespan);
        ASSERT_EQ(run_order(graph, result.schedule.order).start, result.schedule.start);
      }
      if (rule == PairMethod::align) aligned = makespan;
      if (rule == PairMethod::defer) {
        ASSERT_LE(makespan, aligned);
      }
      gap[rule] += bound > 0 ? makespan / bound - 1 : 0;
    }
  }
  // Mean gaps to the bound, which is below the optimum on hard pairs.
  for (const PairMethod rule : kRules)
    RecordProperty(std::string(name(rule)), std::to_string(100 * gap[rule] / pairs));
  EXPECT_LT(gap[PairMethod::defer], gap[PairMethod::align]);
  EXPECT_LT(gap[PairMethod::align], gap[PairMethod::fifo]);
  EXPECT_LT(gap[PairMethod::fifo], gap[PairMethod::serial]);
}

TEST(SchedulePair, NoRuleBeatsTheOptimum) {
  Random random(23);
  int small = 0, hard = 0;
  std::map<PairMethod, int> optimal;
  const int pairs = rounds(600, 6'000);
  while (small < pairs) {
    const TaskGraph graph = random_pair(random, random.below(3), random.below(3), random.chance(0.3) ? 0 : 1);
    if (graph.tasks.size() < 4 || graph.tasks.size() > 10) continue;
    ++small;
    const double optimum = shortest_makespan(graph);
    const double bound = pair_bound(graph).value();
    ASSERT_LE(bound, optimum * (1 + 1e-12));
    hard += bound < optimum * (1 - 1e-9) ? 1 : 0;
    for (const PairMethod rule : kRules) {
      const double makespan = schedule_pair(graph, {.method = rule}).schedule.makespan.value();
      ASSERT_GE(makespan, optimum * (1 - 1e-12)) << name(rule);
      optimal[rule] += makespan <= optimum * (1 + 1e-9) ? 1 : 0;
    }
  }
  for (const PairMethod rule : kRules) RecordProperty(std::string(name(rule)), optimal[rule]);
  RecordProperty("hard", hard);
  EXPECT_GT(optimal[PairMethod::defer], pairs * 8 / 10);
}

// ---------------------------------------------------------------------------------- interference

TEST(RunOrder, SlowsComputeOnlyWhileACommunicationRuns) {
  // Comm runs in [0, 2] and [5, 6]; compute at half speed meanwhile: 1 done at 2, 4 at 5, 4.5 at 6, 10
  // at 11.5.
  TaskGraph graph;
  graph.tasks = {task({Pass::forward, TaskKind::dispatch, 0}, Resource::comm, 2, {}),
                 task({Pass::forward, TaskKind::attention, 0}, Resource::comp, 4, {}),
                 task({Pass::forward, TaskKind::dispatch, 1}, Resource::comm, 1, {1}),
                 task({Pass::forward, TaskKind::attention, 1}, Resource::comp, 6, {})};
  const std::vector<TaskId> order{TaskId(0), TaskId(1), TaskId(2), TaskId(3)};
  const PairSchedule s = run_order(graph, order, {.compute_bound_rate = 0.5});
  EXPECT_THAT(values(s.start), ElementsAre(0, 0, 5, 5));
  EXPECT_THAT(values(s.end), ElementsAre(2, 5, 6, 11.5));
  EXPECT_EQ(s.makespan, Seconds(11.5));
  EXPECT_EQ(run_order(graph, order).makespan, Seconds(10));
}

TEST(RunOrder, WeighsTheRatesByTheTasksShares) {
  TaskGraph graph;
  graph.tasks = {task({Pass::forward, TaskKind::dispatch, 0}, Resource::comm, 100, {}),
                 task({Pass::forward, TaskKind::attention, 0}, Resource::comp, 8, {})};
  graph.tasks[1].compute_share = 0.75;  // 6 s at 0.5 and 2 s at 0.8
  const std::vector<TaskId> order{TaskId(0), TaskId(1)};
  EXPECT_DOUBLE_EQ(
      run_order(graph, order, {.compute_bound_rate = 0.5, .memory_bound_rate = 0.8}).end[1].value(), 14.5);
}

// Waiting for the host is not slowed by what else the GPU does.
TEST(RunOrder, LeavesHostTimeAlone) {
  TaskGraph graph;
  graph.tasks = {task({Pass::forward, TaskKind::dispatch, 0}, Resource::comm, 100, {}),
                 task({Pass::forward, TaskKind::attention, 0}, Resource::comp, 8, {})};
  graph.tasks[1].compute_share = 0.5;  // 4 s at 0.5, 2 s at 0.8 and 2 s as they are
  graph.tasks[1].host_share = 0.25;
  const std::vector<TaskId> order{TaskId(0), TaskId(1)};
  const Interference rates{.compute_bound_rate = 0.5, .memory_bound_rate = 0.8};
  EXPECT_DOUBLE_EQ(run_order(graph, order, rates).end[1].value(), 12.5);
  graph.tasks[1].compute_share = 0;
  graph.tasks[1].host_share = 1;
  EXPECT_DOUBLE_EQ(run_order(graph, order, rates).end[1].value(), 8);
}

TEST(RunOrder, WaitsForTheCommunicationWhenItTakesEverything) {
  TaskGraph graph;
  graph.tasks = {task({Pass::forward, TaskKind::dispatch, 0}, Resource::comm, 3, {}),
                 task({Pass::forward, TaskKind::attention, 0}, Resource::comp, 2, {})};
  const std::vector<TaskId> order{TaskId(0), TaskId(1)};
  EXPECT_EQ(run_order(graph, order, {.compute_bound_rate = 0}).makespan, Seconds(5));
}

// The same in small steps of time.
double stepped(const TaskGraph& graph, std::span<const TaskId> order, const Interference& interference,
               double dt) {
  std::vector<double> left;
  for (const Task& t : graph.tasks) left.push_back(t.duration.value());
  std::vector<TaskId> queue[2];
  for (const TaskId id : order) queue[graph.tasks[id.index()].resource == Resource::comm].push_back(id);
  std::size_t next[2] = {0, 0};
  std::vector<bool> finished(graph.tasks.size(), false);
  double now = 0;
  while (next[0] < queue[0].size() || next[1] < queue[1].size()) {
    const auto runs = [&](int stream) {
      while (next[stream] < queue[stream].size()) {
        const std::size_t id = queue[stream][next[stream]].index();
        if (!std::ranges::all_of(graph.tasks[id].after, [&](TaskId t) { return finished[t.index()]; }))
          return false;
        if (left[id] > 1e-12) return true;
        finished[id] = true;
        ++next[stream];
      }
      return false;
    };
    bool comm = runs(1), comp = runs(0);
    comm = runs(1);
    if (comm) left[queue[1][next[1]].index()] -= dt;
    if (comp) {
      const Task& t = graph.tasks[queue[0][next[0]].index()];
      const double stretch = t.compute_share / interference.compute_bound_rate +
                             (1 - t.compute_share) / interference.memory_bound_rate;
      left[queue[0][next[0]].index()] -= comm ? dt / stretch : dt;
    }
    if (comm || comp) now += dt;
  }
  return now;
}

TEST(RunOrder, AgreesWithSmallStepsOfTime) {
  Random random(31);
  for (int i = 0; i < 60; ++i) {
    const TaskGraph graph = random_pair(random, random.between(1, 3), random.between(1, 3));
    const std::vector<TaskId> order = schedule_pair(graph, {.method = PairMethod::align}).schedule.order;
    const Interference rates{.compute_bound_rate = 0.5 + 0.5 * random.unit(),
                             .memory_bound_rate = 0.5 + 0.5 * random.unit()};
    const double dt = 1e-4;
    const double slack = 3 * dt * static_cast<double>(graph.tasks.size());
    EXPECT_NEAR(run_order(graph, order, rates).makespan.value(), stepped(graph, order, rates, dt), slack)
        << i;
  }
}

TEST(RunOrder, IsNeverFasterThanNominalNorSlowerThanAllSlowed) {
  Random random(37);
  for (int i = 0; i < rounds(500, 5'000); ++i) {
    const TaskGraph graph = random_pair(random, random.below(5), random.below(5), i % 3 == 0 ? 0 : 1);
    const Interference rates{.compute_bound_rate = 0.8, .memory_bound_rate = 0.9};
    for (const PairMethod rule : kRules) {
      const PairResult nominal = schedule_pair(graph, {.method = rule});
      const PairSchedule slowed = run_order(graph, nominal.schedule.order, rates);
      const double base = run_order(graph, nominal.schedule.order).makespan.value();
      ASSERT_GE(slowed.makespan.value(), base * (1 - 1e-12));
      ASSERT_LE(slowed.makespan.value(), base / 0.8 * (1 + 1e-12));
    }
  }
}

TEST(BestPair, IsTheBestRuleUnderInterference) {
  Random random(41);
  for (int i = 0; i < rounds(300, 3'000); ++i) {
    const TaskGraph graph = random_pair(random, random.below(6), random.below(6), i % 3 == 0 ? 0 : 1);
    const Interference rates{.compute_bound_rate = 0.85, .memory_bound_rate = 0.95};
    const PairResult best = schedule_pair(graph, {.interference = rates});
    ASSERT_TRUE(check_pair(graph, best.schedule));
    const double time = run_order(graph, best.schedule.order, rates).makespan.value();
    for (const PairMethod rule : kRules) {
      const std::vector<TaskId> order = schedule_pair(graph, {.method = rule}).schedule.order;
      ASSERT_LE(time, run_order(graph, order, rates).makespan.value() * (1 + 1e-12)) << name(rule);
    }
  }
}

// ------------------------------------------------------------------------------------- by names

TEST(OrderByNames, ReadsBackWhatNamesOfWrites) {
  Random random(43);
  for (int i = 0; i < 100; ++i) {
    const TaskGraph graph = random_pair(random, random.below(6), random.below(6));
    const std::vector<TaskId> order = schedule_pair(graph, {}).schedule.order;
    const auto read = order_by_names(graph, names_of(graph, order));
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(*read, order);
  }
}

TEST(OrderByNames, SaysExactlyWhatIsWrong) {
  const TaskGraph graph = layer_pair(1, 1, 1, 1, 1, 1, 1);
  const std::vector<std::string> good = names_of(graph, schedule_pair(graph, {}).schedule.order);
  const auto fault = [&](std::vector<std::string> names) {
    const auto order = order_by_names(graph, names);
    return order ? "sound" : order.error().text();
  };
  std::vector<std::string> names = good;
  names[0] = "F_ATNN:L0";
  EXPECT_EQ(
      fault(names),
      "task 1 of the sequence, F_ATNN:L0, is not one of the pair's 10 tasks\n  Did you mean F_ATTN:L0?");
  names = good;
  names[1] = names[0];
  EXPECT_EQ(
      fault(names),
      names[0] + " stands twice in the sequence, as task 1 and task 2\n  Every task of the pair runs once.");
  names = good;
  names.pop_back();
  EXPECT_EQ(fault(names), "the sequence lacks " + good.back() + "\n  Every task of the pair runs once.");
  names = good;
  std::swap(*std::ranges::find(names, "F_DISP:L0"), *std::ranges::find(names, "F_ATTN:L0"));
  EXPECT_THAT(fault(names),
              Eq("F_DISP:L0 is task 2 of the sequence, before F_ATTN:L0, task 3, which it needs"));
  EXPECT_THAT(fault({}), HasSubstr("the sequence lacks F_ATTN:L0, F_DISP:L0"));
}

// ------------------------------------------------------------------------------------- check_pair

TEST(CheckPair, FindsEveryKindOfFault) {
  const TaskGraph graph = layer_pair(2, 2, 2, 2, 2, 2, 1);
  const PairSchedule good = schedule_pair(graph, {.method = PairMethod::defer}).schedule;
  ASSERT_TRUE(check_pair(graph, good));
  const auto fault = [&](auto&& change) {
    PairSchedule bad = good;
    change(bad);
    const Status status = check_pair(graph, bad);
    return status ? "sound" : status.error().text();
  };
  EXPECT_THAT(fault([](PairSchedule& s) { s.start[1] -= Seconds(1); }),
              HasSubstr("F_DISP:L0 starts at 1 s, before F_ATTN:L0 ends at 2 s"));
  EXPECT_THAT(fault([](PairSchedule& s) { s.makespan += Seconds(1); }),
              HasSubstr("the makespan is 10 s, not 11 s"));
  EXPECT_THAT(fault([](PairSchedule& s) { s.order.pop_back(); }),
              HasSubstr("10 tasks, but 10 starts, 9 launches and 0 left to the pool"));
  EXPECT_THAT(fault([](PairSchedule& s) { s.order[1] = s.order[0]; }), HasSubstr("is launched twice"));
  EXPECT_THAT(fault([](PairSchedule& s) { std::swap(s.order[8], s.order[9]); }),
              HasSubstr("is launched after W_ATTN:L1 but starts before it"));
  EXPECT_THAT(fault([](PairSchedule& s) { s.start[0] = Seconds(-1); }),
              HasSubstr("F_ATTN:L0 starts at -1 s"));
  // W_ATTN onto W_MLP: both on the compute stream.
  EXPECT_THAT(fault([](PairSchedule& s) { s.start[9] -= Seconds(0.5); }),
              HasSubstr("s, while W_MLP:L1 runs until"));
}

}  // namespace
}  // namespace tessera::train
