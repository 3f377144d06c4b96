// What `tessera pair` prints, whole, for small pairs whose every length is given here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "golden.h"
#include "tessera/core/base/document.h"
#include "tessera/train/explain/explain.h"
#include "train/testing.h"

namespace tessera::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::set;

// Milliseconds of attention, dispatch, MLP, combine; W as long as its input gradient.
BlockCost layer(double attention, double dispatch, double mlp, double combine) {
  BlockCost cost{.name = dispatch > 0 ? "AE" : "AD"};
  for (const Pass pass : {Pass::forward, Pass::backward, Pass::weight}) {
    const double twice = pass == Pass::backward ? 2e-3 : 1e-3;
    set(cost, pass, TaskKind::attention, twice * attention);
    set(cost, pass, TaskKind::mlp, twice * mlp, 0.8);
    if (dispatch <= 0 || pass == Pass::weight) continue;
    set(cost, pass, TaskKind::dispatch, 1e-3 * dispatch);
    set(cost, pass, TaskKind::combine, 1e-3 * combine);
  }
  return cost;
}
BlockCost head(double forward) {
  BlockCost cost{.name = "head"};
  for (const Pass pass : {Pass::forward, Pass::backward, Pass::weight})
    set(cost, pass, TaskKind::head, 1e-3 * forward);
  return cost;
}

// Four stages on two ranks: three MoE layers, dense layers, nothing, an MoE layer and the head.
ExecutionPlan small_plan(Interference interference = {}) {
  const std::vector<BlockCost> moe(3, layer(1.2, 0.7, 1.5, 0.9)), dense(2, layer(1, 0, 2, 0));
  ExecutionPlan plan = testing::make_plan(
      *make_schedule(Template::interleaved_overlap, {.pp = 2, .vp = 2, .microbatches = 4, .group = 2}),
      {moe, dense, {}, {layer(0.5, 2.0, 0.4, 2.5), head(1.1)}});
  plan.model = "Small";
  plan.device = "H100";
  plan.schedule = "interleaved-overlap";
  plan.blocks.back() = {.kind = BlockKind::head, .layer = -1, .cost = plan.blocks.back().cost};
  plan.interference = interference;
  for (PairPlan& pair : plan.pairs) {  // the head's tasks have another name now
    const TaskGraph graph = pair_graph(plan.forward_graph(pair.forward), plan.backward_graph(pair.backward));
    pair.sequence = names_of(graph, testing::defer_sequence(graph));
  }
  return plan;
}

// The solvers' clocks differ from run to run.
std::string text_of(PairReport report, const PairTextOptions& options = {}) {
  for (PairRow& row : report.rows) row.solve_time = Seconds(1e-4);
  return pair_text(report, options);
}

PairReport report_of(const ExecutionPlan& plan, int forward, int backward,
                     const PairReportOptions& options = {}) {
  auto report = report_pair(plan, StageId(forward), StageId(backward), options);
  if (!report) throw std::runtime_error(report.error().text());
  return *std::move(report);
}

void expect_text(const std::string& text, const std::string& name) {
  expect_golden(text, std::string(TESSERA_TEST_DATA) + "/pairs/" + name + ".txt");
}

TEST(PairText, ReadsAsTheGoldenTextsSay) {
  const Interference slow{.compute_bound_rate = 0.8, .memory_bound_rate = 0.95};
  const ExecutionPlan plan = small_plan(), slowed = small_plan(slow);
  expect_text(text_of(report_of(slowed, 0, 0)), "moe-with-itself");
  expect_text(text_of(report_of(plan, 1, 1)), "dense-only");
  expect_text(text_of(report_of(slowed, 1, 3)), "head-beside-dense");
  expect_text(text_of(report_of(plan, 3, 3)), "bound-by-the-order");
  expect_text(text_of(report_of(plan, 2, 0)), "empty-forward");
  expect_text(text_of(report_of(plan, 2, 2)), "both-empty");
  expect_text(text_of(report_of(plan, 0, 1, {.pool_credit = Seconds(3e-3)})), "pool-credit");
}

TEST(PairText, ANarrowChartWrapsAndAbbreviates) {
  const PairReport report = report_of(small_plan(), 0, 0);
  for (const std::size_t columns : {kLeastColumns, std::size_t{60}, std::size_t{160}, kMostColumns}) {
    const std::string text = text_of(report, {.columns = columns});
    expect_text(text, "width-" + std::to_string(columns));
    const std::string chart = text.substr(text.find("  comp"), text.find("optimum") - text.find("  comp"));
    for (const std::string_view line : split(chart, '\n'))
      if (line.starts_with("  com")) {
        const auto glyphs = std::ranges::count_if(line, [](unsigned char c) { return (c & 0xC0U) != 0x80U; });
        EXPECT_LE(static_cast<std::size_t>(glyphs), columns) << line;
      }
  }
}

TEST(PairText, SaysHowToGoOnWithoutAProof) {
  // A pair that needs more than the root's label.
  testing::Random random(5);
  for (int tries = 0; tries < 200; ++tries) {
    ExecutionPlan plan = small_plan();
    for (BlockCost& cost : plan.costs) cost = testing::random_layer(random, 1e-3);
    const PairReport report = report_of(plan, 0, 0, {.labels = 2});
    if (report.proved) continue;
    const std::string text = text_of(report, {.labels = 2});
    EXPECT_THAT(text, HasSubstr("best "));
    EXPECT_THAT(text, HasSubstr("Not proved: no order is shorter than "));
    EXPECT_THAT(text, HasSubstr("--labels 20"));
    EXPECT_THAT(text, HasSubstr("above bound %"));
    EXPECT_THAT(text, Not(HasSubstr("It cannot be shorter")));
    return;
  }
  FAIL() << "two labels proved every pair";
}

TEST(PairText, JsonIsStrictAndSaysTheSame) {
  ExecutionPlan plan = small_plan({.compute_bound_rate = 0.8, .memory_bound_rate = 0.95});
  plan.model = "quote \" and \xff";
  const PairReport report = report_of(plan, 0, 3);
  const auto document = Document::parse(pair_json(report), "pair.json", DocumentFormat::json);
  ASSERT_TRUE(document) << document.error().text();
  const Cursor root = document->root();
  EXPECT_EQ(*root.required_number("optimum_seconds", 0, 1), report.optimum.value());
  EXPECT_EQ(*root.required_boolean("proved"), report.proved);
  EXPECT_EQ(*root.required_map("backward")->required_integer("stage", 0, 3), 3);
  const Cursor methods = *root.required_list("methods");
  ASSERT_EQ(methods.size(), report.rows.size());
  for (std::size_t i = 0; i < methods.size(); ++i) {
    EXPECT_EQ(*methods.item(i).required_string("method"), report.rows[i].name);
    EXPECT_EQ(*methods.item(i).required_number("makespan_seconds", 0, 1), report.rows[i].makespan.value());
  }
  const Cursor order = *root.required_map("order");
  const Cursor tasks = *order.required_list("tasks");
  ASSERT_EQ(tasks.size(), report.graph.tasks.size());
  double last = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    last = std::max(last, *tasks.item(i).required_number("end_seconds", 0, 1));
    EXPECT_LE(*tasks.item(i).required_number("start_seconds", 0, 1), last);
  }
  EXPECT_EQ(last, report.nominal.makespan.value());
}

}  // namespace
}  // namespace tessera::train
