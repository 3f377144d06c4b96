#include "tessera/train/planner/to_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "assemble.h"
#include "choose_filling.h"
#include "choose_partition.h"
#include "measured_stage_costs.h"
#include "tessera/train/partition/measure.h"
#include "tessera/train/planner/plan.h"

namespace tessera::train {
namespace {

std::string holds(std::span<const BlockCost> kinds, std::span<const std::int32_t> chunk) {
  std::string out;
  for (std::size_t first = 0; first < chunk.size();) {
    std::size_t last = first;
    while (last < chunk.size() && chunk[last] == chunk[first]) ++last;
    if (!out.empty()) out += " ";
    out += kinds[static_cast<std::size_t>(chunk[first])].name;
    if (last - first > 1) out += fmt::format("×{}", last - first);
    first = last;
  }
  return out.empty() ? "(empty)" : out;
}

// What is certain within the tolerance may be so although the ends are further apart.
double regret(const MeasurePlan& plan, double tolerance) {
  const double apart = plan.lower > Seconds(0) ? std::max(0.0, plan.upper / plan.lower - 1) : 0;
  return plan.certain ? std::min(apart, tolerance) : apart;
}

class Planner {
 public:
  Planner(const Job& job, const PricedJob& priced, PlanFrame& frame)
      : frame_(frame),
        keys_(job, priced.cost),
        composed_(stage_costs(job, priced, frame)),
        measured_(job, priced, frame) {}

  Result<MeasureReport> run(const Job& job, const PricedJob& priced) {
    TESSERA_TRY(PartitionTask task, partition_task(job, priced, frame_, measured_));
    if (task.problem.graph.edges.empty())
      return bad_input(
          fmt::format("template {} overlaps no forward with a backward: there are no pairs to measure",
                      name(job.schedule)),
          "Use template interleaved-overlap.");
    const WindowOptions options{.solve = {.incumbent = task.serial}};
    const WindowResult found = solve_in_window(task.problem, task.legal, measured_, task.serial, options);
    problem_ = std::move(task.problem);
    problem_.places = places_around(task.legal, found.center, options.window);
    const SignatureOf signature = [this](const PairQuery& query) { return signature_of(query); };
    MeasureReport out;
    look_up(out);
    const MeasurePlan now = plan_measurements(problem_, composed_, signature, known_, with(out, 0));
    if (!now.obstacle.empty()) return infeasible("no partition fits the job: " + now.obstacle);
    out.certain = now.certain;
    out.choice = now.choice;
    out.upper = now.upper;
    out.lower = now.lower;
    out.regret = regret(now, out.tolerance);
    const MeasurePlan plan =
        plan_measurements(problem_, composed_, signature, known_, with(out, MeasureOptions{}.most));
    out.certain_then = plan.certain;
    out.regret_then = regret(plan, out.tolerance);
    for (const PairToMeasure& pair : plan.next) out.next.push_back(described(pair));
    return out;
  }

 private:
  [[nodiscard]] static MeasureOptions with(const MeasureReport& report, std::int32_t most) {
    return {.composed_error = report.composed_error, .tolerance = report.tolerance, .most = most};
  }

  // A pair at another speed is another measurement.
  [[nodiscard]] PairSignature signature_of(const PairQuery& query) const {
    const PairKey key = measured_.key(query);
    const auto speed = std::ranges::find(speeds_, measured_.speed(query));
    PairSignature out{static_cast<std::int32_t>(speed - speeds_.begin()),
                      static_cast<std::int32_t>(key.forward.size())};
    out.insert(out.end(), key.forward.begin(), key.forward.end());
    out.insert(out.end(), key.backward.begin(), key.backward.end());
    return out;
  }

  // What the profile has of the pairs in the window.
  void look_up(MeasureReport& out) {
    const MeasureOptions defaults;
    out.composed_error = defaults.composed_error;
    out.measured_error = defaults.measured_error;
    out.tolerance = defaults.tolerance;
    known_.clear();
    const std::vector<PairQuery> pairs = possible_pairs(problem_);
    speeds_.clear();
    for (const PairQuery& query : pairs)
      if (const double speed = measured_.speed(query); std::ranges::find(speeds_, speed) == speeds_.end())
        speeds_.push_back(speed);
    std::map<PairSignature, bool> distinct;
    for (const PairQuery& query : pairs) {
      PairSignature signature = signature_of(query);
      if (!distinct.try_emplace(signature, true).second) continue;
      const auto value = measured_.measured(query);
      if (!value) continue;
      const double error = std::max(defaults.measured_error, value->error);
      known_[std::move(signature)] = {value->median, error};
      out.measured_error = std::max(out.measured_error, error);
    }
    out.distinct = std::ssize(distinct);
    out.measured = std::ssize(known_);
  }

  [[nodiscard]] PairToProfile described(const PairToMeasure& pair) {
    const PairKey key = measured_.key(pair.pair);
    PairToProfile out{.forward = pair.pair.forward,
                      .backward = pair.pair.backward,
                      .forward_blocks = pair.pair.forward_blocks,
                      .backward_blocks = pair.pair.backward_blocks,
                      .forward_holds = holds(frame_.plan.costs, key.forward),
                      .backward_holds = holds(frame_.plan.costs, key.backward),
                      .composed = pair.composed,
                      .launch_order = measured_.launch_order(key)};
    // With two pipelines the pairs are of one's forward and the other's backward.
    if (const ActionList& actions = frame_.plan.actions; actions.pipelines > 1)
      out.backward = StageId(pair.pair.backward.value() + static_cast<std::int64_t>(actions.stages()) / 2);
    out.key = {.mesh = keys_.mesh(measured_.speed(pair.pair)),
               .pair = keys_.pair(key),
               .schedule = schedule_hash(out.launch_order),
               .software = keys_.software()};
    return out;
  }

  PartitionProblem problem_;
  PlanFrame& frame_;
  ProfileKeys keys_;
  ModelStageCosts composed_;
  MeasuredStageCosts measured_;
  std::vector<double> speeds_;
  MeasuredPairs known_;
};

Status has_a_choice(const Job& job) {
  const auto refuse = [&](std::string key, std::string message, std::string hint) {
    Error error{
        .file = job.file, .key = std::move(key), .message = std::move(message), .hint = std::move(hint)};
    if (job.document)
      if (const auto section = job.document->root().find(error.key.substr(0, error.key.find('.'))))
        error.line = section->line();
    return std::unexpected(std::move(error));
  };
  if (job.partition_rule != PartitionRule::overlap_aware)
    return refuse("schedule", "the partition is not searched, so no measurement can change it",
                  "Use partition: overlap-aware.");
  if (!job.stage_durations.empty())
    return refuse("cost.stages", "durations by hand per stage leave no pair to measure",
                  "Remove cost.stages.");
  return {};
}

}  // namespace

Result<MeasureReport> pairs_to_measure(const Job& given) {
  TESSERA_CHECK(has_a_choice(given));
  TESSERA_TRY(const std::vector<FillingCandidate> fillings, choose_filling(given));
  Job job = given;
  if (!fillings.empty()) job.filling = fillings.front().filling;
  if (job.memory_open) {
    // The plan may recompute or offload, and then runs other pairs.
    TESSERA_TRY(const PlanReport plan, make_plan(job, {.slices = false, .baselines = false}));
    Job decided = job;
    decided.layout = plan.plan.layout;
    decided.memory_open = false;
    return pairs_to_measure(decided);
  }
  TESSERA_TRY(const PricedJob priced, price_job(job));
  TESSERA_TRY(PlanFrame frame, make_frame(job, priced, job.schedule));
  auto out = Planner(job, priced, frame).run(job, priced);
  if (!out) return out;
  out->model = job.model.name;
  out->device = job.cluster.gpu.name;
  out->schedule = frame.plan.schedule;
  return out;
}

}  // namespace tessera::train
