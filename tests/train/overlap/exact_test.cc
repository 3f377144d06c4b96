// The exact scheduler against brute force, and against every other scheduler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/train/overlap/check_pair.h"
#include "tessera/train/overlap/pair_bounds.h"
#include "tessera/train/overlap/pair_schedule.h"
#include "train/overlap/brute_force.h"
#include "train/testing.h"

namespace tessera::train {
namespace {

using testing::BruteForce;
using testing::Random;
using testing::random_pair;
using testing::rounds;

std::string text(const TaskGraph& graph) {
  std::string out;
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    out += fmt::format("{:3} {:14} {} {:.17g} after", i,
                       task_name(task.name.pass, task.name.kind, task.name.layer),
                       task.resource == Resource::comm ? "comm" : "comp", task.duration.value());
    for (const TaskId before : task.after) out += fmt::format(" {}", before.value());
    out += '\n';
  }
  return out;
}

// Durations drawn anew, in several flavours.
void redraw(Random& random, TaskGraph& graph) {
  const int flavour = random.below(7);
  for (Task& task : graph.tasks) {
    const bool comm = task.resource == Resource::comm;
    double d = 0.05 + random.unit();
    if (flavour == 1) d = random.between(0, 4);
    if (flavour == 2) d = 1;
    if (flavour == 3 && comm) d = 0;
    if (flavour == 4 && !comm) d = 0;
    if (flavour == 5) d = task.movable ? random.between(1, 9) : random.between(1, 4);
    if (flavour == 6) d *= comm ? 2 : task.movable ? 1.5 : 0.5;
    task.duration = Seconds(d);
  }
}

TEST(ExactPair, EqualsBruteForce) {
  Random random(101);
  const int pairs = rounds(3'000, 30'000);
  int hard = 0;
  for (int done = 0; done < pairs;) {
    TaskGraph graph = random_pair(random, random.below(3), random.below(3));
    if (graph.tasks.size() < 2 || graph.tasks.size() > 10) continue;
    redraw(random, graph);
    ++done;
    const double optimum = BruteForce(graph).makespan();
    const PairResult result = schedule_pair(graph);
    const Status status = check_pair(graph, result.schedule);
    ASSERT_TRUE(status) << status.error().text() << text(graph);
    ASSERT_NEAR(result.schedule.makespan.value(), optimum, 1e-9 * optimum) << done << "\n" << text(graph);
    ASSERT_LE(result.bound.value(), optimum * (1 + 1e-9)) << text(graph);
    hard += binding(pair_bounds(graph), Seconds(optimum)) == Binding::order ? 1 : 0;
  }
  RecordProperty("hard", hard);
  EXPECT_GT(hard, pairs / 20);
}

TEST(ExactPair, IsNeverLongerThanARule) {
  Random random(103);
  const int pairs = rounds(3'000, 120'000);
  int proved = 0;
  double worst = 0;
  for (int i = 0; i < pairs; ++i) {
    TaskGraph graph = random_pair(random, random.below(7), random.below(7));
    redraw(random, graph);
    const PairResult result = schedule_pair(graph);
    const Status status = check_pair(graph, result.schedule);
    ASSERT_TRUE(status) << status.error().text() << text(graph);
    proved += result.reason == PairReason::optimal ? 1 : 0;
    worst = std::max(worst, result.gap);
    for (const PairMethod rule :
         {PairMethod::serial, PairMethod::fifo, PairMethod::align, PairMethod::defer_literal, PairMethod::defer})
      ASSERT_LE(result.schedule.makespan.value(),
                schedule_pair(graph, {.method = rule}).schedule.makespan.value() * (1 + 1e-12))
          << name(rule) << "\n"
          << text(graph);
  }
  RecordProperty("proved", proved);
  std::printf("proved %d of %d, worst gap %g\n", proved, pairs, worst);
}

}  // namespace
}  // namespace tessera::train
