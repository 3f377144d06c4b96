// From what to measure, over the profile database, to a plan that uses it.
#include "tessera/train/planner/to_measure.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "tessera/train/planner/plan.h"
#include "tessera/train/planner/profile_keys.h"

namespace tessera::train {
namespace {

using ::testing::HasSubstr;

Result<Job> read(const std::string& schedule, const std::string& more = "",
                 const std::string& cluster = "preset: H100, gpus: 64") {
  const std::string text = "model: ../data/models/Qwen3-Next-80B-A3B.json\ncluster: {" + cluster +
                           "}\nlayout: {pp: 4, vp: 2, ep: 16, microbatches: 16, sequence: 4096}\n" +
                           "schedule: {template: interleaved-overlap, " + schedule + "}\n" + more;
  const auto document = Document::parse(text, "job.yaml", DocumentFormat::yaml);
  return read_job(*document, TESSERA_SOURCE "/examples");
}

class WithProfile : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    file_ =
        std::filesystem::path(::testing::TempDir()) / fmt::format("tessera-{}-{}.db", test->name(), getpid());
    std::filesystem::remove(file_);
  }
  void TearDown() override { std::filesystem::remove(file_); }
  void add(const std::vector<ProfileCell>& cells) const {
    auto database = ProfileDatabase::open(file_.string(), ProfileAccess::write);
    ASSERT_TRUE(database) << database.error().text();
    ASSERT_TRUE(database->add(cells));
  }
  [[nodiscard]] Job job(const std::string& schedule = "partition: overlap-aware",
                        const std::string& cluster = "preset: H100, gpus: 64") const {
    auto out = read(schedule, "", cluster);
    EXPECT_TRUE(out) << out.error().text();
    if (std::filesystem::exists(file_)) out->profile_file = file_.string();
    return *std::move(out);
  }
  static ProfileCell cell(const PairToProfile& pair, double factor) {
    return {.key = pair.key,
            .source = ProfileSource::chunk_pair,
            .value = {.median = pair.composed * factor, .spread = 0.01, .count = 50, .error = 0.01}};
  }
  std::filesystem::path file_;
};

// Measurements that confirm the composed times: the list grows shorter as it said, down to the end it said.
TEST_F(WithProfile, MeasuringWhatIsListedBringsThePromisedCertainty) {
  const auto before = pairs_to_measure(job());
  ASSERT_TRUE(before) << before.error().text();
  ASSERT_FALSE(before->certain);
  ASSERT_GE(before->next.size(), 2U);
  EXPECT_EQ(before->measured, 0);
  EXPECT_GT(before->distinct, std::ssize(before->next));
  EXPECT_LT(before->lower, before->upper);
  std::set<ProfileKey> keys;
  for (const PairToProfile& pair : before->next) {
    EXPECT_TRUE(keys.insert(pair.key).second) << pair.key.pair;
    EXPECT_EQ(pair.key.schedule, schedule_hash(pair.launch_order));
    // Even at its upper end anything else would be faster than any partition's slowest pair.
    EXPECT_GT(pair.composed.value() * (1 + before->composed_error), before->lower.value());
  }
  add({cell(before->next[0], 1)});
  const auto between = pairs_to_measure(job());
  ASSERT_TRUE(between) << between.error().text();
  EXPECT_EQ(between->measured, 1);
  ASSERT_EQ(between->next.size() + 1, before->next.size());
  for (std::size_t i = 0; i < between->next.size(); ++i)
    EXPECT_EQ(between->next[i].key, before->next[i + 1].key);
  std::vector<ProfileCell> cells;
  for (const PairToProfile& pair : before->next) cells.push_back(cell(pair, 1));
  add(cells);
  const auto after = pairs_to_measure(job());
  ASSERT_TRUE(after) << after.error().text();
  EXPECT_TRUE(after->next.empty());
  EXPECT_EQ(after->certain, before->certain_then);
  EXPECT_DOUBLE_EQ(after->regret, before->regret_then);
  EXPECT_LT(after->regret, before->regret);
}

TEST_F(WithProfile, AnErrorAboveOnePercentIsKept) {
  const auto before = pairs_to_measure(job());
  ASSERT_TRUE(before);
  ProfileCell rough = cell(before->next[0], 1);
  rough.value.error = 0.04;
  add({rough});
  EXPECT_EQ(pairs_to_measure(job())->measured_error, 0.04);
}

TEST_F(WithProfile, OtherMeasurementsDoNotCount) {
  const auto before = pairs_to_measure(job());
  ASSERT_TRUE(before);
  ProfileCell elsewhere = cell(before->next[0], 2), composed = elsewhere, reordered = elsewhere;
  elsewhere.key.software += " x=1";
  composed.source = ProfileSource::primitive;
  reordered.key.schedule = "0000000000000000";
  add({elsewhere, composed, reordered});
  EXPECT_EQ(pairs_to_measure(job())->measured, 0);
  const auto plan = make_plan(job("partition: even"));
  ASSERT_TRUE(plan) << plan.error().text();
  for (const PairPlan& pair : plan->plan.pairs) EXPECT_FALSE(pair.measured);
}

// All pairs of a plan measured a quarter slower: the step is slower, and it is counted where it comes from.
TEST_F(WithProfile, APlanTakesWhatWasMeasured) {
  const Job plain_job = job("partition: even");
  const auto plain = make_plan(plain_job);
  ASSERT_TRUE(plain) << plain.error().text();
  const ExecutionPlan& p = plain->plan;
  ModelCost cost{.kinds = p.costs};
  for (const PlanBlock& block : p.blocks) cost.kind_of_block.push_back(block.cost);
  const ProfileKeys keys(plain_job, cost);
  std::vector<ProfileCell> cells;
  for (const PairPlan& pair : p.pairs) {
    const auto kinds = [&](StageId stage) {
      const BlockRange blocks = p.partition.stages[stage.index()];
      return std::vector<std::int32_t>(cost.kind_of_block.begin() + blocks.begin,
                                       cost.kind_of_block.begin() + blocks.end);
    };
    const PairKey key{kinds(pair.forward), kinds(pair.backward)};
    const TaskGraph graph = pair_graph(p.forward_graph(pair.forward), p.backward_graph(pair.backward));
    const auto order = order_by_names(graph, pair.sequence);
    ASSERT_TRUE(order);
    cells.push_back({.key = {keys.mesh(1), keys.pair(key),
                             schedule_hash(names_of(pair_graph(p.costs, key), *order)), keys.software()},
                     .value = {.median = pair.makespan * 1.25, .count = 50, .error = 0.02}});
  }
  add(cells);
  const auto measured = make_plan(job("partition: even"));
  ASSERT_TRUE(measured) << measured.error().text();
  ASSERT_EQ(measured->plan.pairs.size(), p.pairs.size());
  for (std::size_t i = 0; i < p.pairs.size(); ++i) {
    ASSERT_TRUE(measured->plan.pairs[i].measured);
    EXPECT_EQ(measured->plan.pairs[i].measured->makespan, p.pairs[i].makespan * 1.25);
    EXPECT_EQ(measured->plan.pairs[i].measured->error, 0.02);
    EXPECT_EQ(measured->plan.pairs[i].sequence, p.pairs[i].sequence);
  }
  EXPECT_GT(measured->figures.iteration, plain->figures.iteration * 1.05);
  EXPECT_LT(measured->figures.iteration, plain->figures.iteration * 1.25);
  EXPECT_NE(measured->plan.fingerprints[3], p.fingerprints[3]);
  EXPECT_EQ(measured->plan.fingerprints[2], p.fingerprints[2]);
  // What is measured is most of the work; warm-up and cool-down run no pairs.
  const auto source = static_cast<std::size_t>(Provenance::measured_pair);
  EXPECT_EQ(plain->sources.values[source], 0);
  EXPECT_EQ(measured->sources.values[source], std::ssize(p.pairs));
  EXPECT_EQ(measured->sources.total, plain->sources.total + std::ssize(p.pairs));
  EXPECT_GT(measured->sources.share[source], 0.4);
  EXPECT_LT(measured->sources.share[source], 1);
  EXPECT_LT(measured->sources.error, plain->sources.error);
  EXPECT_THAT(measured->notes, testing::Contains(HasSubstr(fmt::format(
                                   "{0} of the {0} overlapped pairs have a measured time", p.pairs.size()))));
}

// A pair of the chosen partition that turns out slow: the search leaves it.
TEST_F(WithProfile, TheSearchGoesByWhatWasMeasured) {
  const auto before = make_plan(job());
  ASSERT_TRUE(before) << before.error().text();
  const auto report = pairs_to_measure(job());
  ASSERT_TRUE(report);
  std::vector<ProfileCell> cells;
  for (const PairToProfile& pair : report->next) cells.push_back(cell(pair, cells.empty() ? 1.6 : 1));
  add(cells);
  const auto after = make_plan(job());
  ASSERT_TRUE(after) << after.error().text();
  const PairToProfile& slow = report->next.front();
  EXPECT_GE(before->search->proxy.iteration, before->search->chosen.iteration);
  // The certificate is of measured times now.
  EXPECT_LE(after->search->solved.bound.value(), slow.composed.value() * 1.6);
  for (const PairPlan& pair : after->plan.pairs)
    if (pair.measured) {
      EXPECT_LT(pair.measured->makespan.value(), slow.composed.value() * 1.59);
    }
}

TEST_F(WithProfile, ASlowRankIsAnotherMeasurement) {
  const std::string cluster = "preset: H100, gpus: 64, rank_speed: [1, 1, 0.5, 1]";
  const auto report = pairs_to_measure(job("partition: overlap-aware", cluster));
  ASSERT_TRUE(report) << report.error().text();
  std::set<std::string> meshes;
  std::vector<ProfileCell> cells;
  for (const PairToProfile& pair : report->next) {
    meshes.insert(pair.key.mesh);
    cells.push_back(cell(pair, 1));
    EXPECT_THAT(pair.key.mesh, testing::EndsWith(pair.forward.value() % 4 == 2 ? "speed=0.5" : "speed=1"));
  }
  add(cells);
  const auto after = pairs_to_measure(job("partition: overlap-aware", cluster));
  ASSERT_TRUE(after) << after.error().text();
  EXPECT_EQ(after->measured, std::ssize(cells));
  EXPECT_TRUE(after->next.empty());
}

TEST(ToMeasure, RefusesWhatLeavesNoChoice) {
  const auto fault = [](const std::string& schedule, const std::string& more = "") {
    const auto job = read(schedule, more);
    if (!job) return job.error().text();
    const auto report = pairs_to_measure(*job);
    return report ? std::string("no error") : report.error().text();
  };
  EXPECT_THAT(
      fault("partition: [6, 6, 6, 6, 6, 6, 6, 6]"),
      HasSubstr("job.yaml:4: schedule: the partition is not searched, so no measurement can change it"));
  EXPECT_THAT(fault("partition: overlap-aware", "cost: {profile: none.db}\n"),
              HasSubstr("none.db: no such file"));
  std::string stages = "cost: {stages: [";
  for (int s = 0; s < 8; ++s) stages += std::string(s == 0 ? "" : ", ") + "{forward: 1, backward: 2}";
  EXPECT_THAT(fault("partition: overlap-aware", stages + "]}\n"),
              HasSubstr("job.yaml:5: cost.stages: durations by hand per stage leave no pair to measure"));
}

}  // namespace
}  // namespace tessera::train
