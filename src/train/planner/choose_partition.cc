#include "choose_partition.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "measured_stage_costs.h"
#include "tessera/core/base/parallel.h"
#include "tessera/train/partition/rivals.h"

namespace tessera::train {
namespace {

// Partitions taken from each proxy: the design asks for at least 50. Of very long schedules fewer, so that
// about as many actions as these are simulated in all.
constexpr std::int32_t kKept = 50;
constexpr std::int64_t kMostActions = 30'000'000;
// Rounds of the descent; each moves the one boundary that helps most.
constexpr int kMostDescents = 24;
// Of templates that order by durations: the effort for one candidate of many, and how many are looked at with
// all of it.
constexpr std::int32_t kSearchEffort = 1;
constexpr std::size_t kFinalists = 6;
// Stages whose blocks are tried elsewhere.
constexpr std::size_t kLongestStages = 3;

// What the stages of a rank may fill: the rest is buffers, context, and the workspace of its blocks.
void set_budgets(const Job& job, const PricedJob& priced, const PlanFrame& frame,
                 const ModelStageCosts& costs, PartitionProblem& problem) {
  const Bytes limit = frame.plan.memory_limit * kUsableMemory;
  if (limit.value() <= 0) return;
  const std::size_t ranks = problem.graph.live.size();  // two with the same stages are one
  const bool pairs = !problem.graph.edges.empty();
  const Bytes workspace = costs.workspace({0, problem.blocks}, pairs);
  const Bytes transfer = job.layout.pp > 1 ? priced.transfer.bytes * 4.0 : Bytes(0);
  problem.budget.assign(ranks, limit - workspace - transfer - job.constants.context);
}

bool better(const Candidate& a, const Candidate& b) noexcept {
  return std::tuple(!a.usable, a.iteration) < std::tuple(!b.usable, b.iteration);
}

class Search {
 public:
  Search(const Job& job, const PricedJob& priced, PlanFrame& frame, const PlanOptions& options)
      : job_(job), options_(options), priced_(priced), frame_(frame), costs_(job, priced, frame) {}

  Result<PartitionSearch> run() {
    TESSERA_TRY(task_, partition_task(job_, priced_, frame_, costs_));
    const Partition& serial = task_.serial;
    PartitionSearch out;
    std::int64_t actions = 1;
    for (const auto& rank : frame_.plan.actions.ranks) actions += std::ssize(rank);
    most_simulated_ = std::max<std::int64_t>(kMostActions / actions, 8);
    kept_ = static_cast<std::int32_t>(std::min<std::int64_t>(kKept, most_simulated_ / 4));
    const WindowOptions options{.solve = {.keep = 2 * kKept, .incumbent = serial},
                                .window = options_.window,
                                .widened = options_.widened};
    out.solved = solve_in_window(task_.problem, task_.legal, costs_, serial, options).result;
    out.serial_legal = legal(serial);
    const WindowResult roomy = without_memory(options);
    if (out.solved.best.empty()) {
      // What would be planned if only it fitted.
      if (roomy.result.best.empty())
        return infeasible("no partition keeps the placement rules: " +
                              (task_.problem.budget.empty() ? out.solved : roomy.result).obstacle,
                          "Give fewer of them, fewer stages, or placement: {empty_stages: true}.");
      TESSERA_TRY(const std::vector<Candidate> two,
                  simulated({roomy.result.best.front().partition, serial}, TemplateSizes{}.effort));
      out.chosen = out.proxy = two[0];
      out.serial = two[1];
      return out;
    }
    TESSERA_TRY(std::vector<Candidate> all, simulated(pool(out.solved.best, serial)));
    out.proxy = all[0];
    out.serial = all[1];
    // Serial balance knows nothing of the placement asked for.
    out.chosen = out.proxy;
    for (const Candidate& candidate : all)
      if (better(candidate, out.chosen) && legal(candidate.partition)) out.chosen = candidate;
    out.simulated = static_cast<std::int32_t>(all.size());
    TESSERA_CHECK(descend(out));
    if (traits(frame_.schedule).durations) TESSERA_CHECK(decide_with_final_orders(all, out));
    if (!roomy.result.best.empty()) {
      std::vector<Partition> more;
      for (std::size_t k = 0; k < std::min(roomy.result.best.size(), kFinalists); ++k)
        more.push_back(roomy.result.best[k].partition);
      TESSERA_TRY(const std::vector<Candidate> wishes, simulated(std::move(more), TemplateSizes{}.effort));
      all.insert(all.end(), wishes.begin(), wishes.end());
      // Budgets are cautious: what they shut out may fit after all.
      for (const Candidate& candidate : wishes)
        if (better(candidate, out.chosen)) out.chosen = candidate;
    }
    for (const Candidate& candidate : all)
      if (!candidate.usable && legal(candidate.partition) && candidate.iteration < out.chosen.iteration &&
          (!out.cramped || candidate.iteration < out.cramped->iteration))
        out.cramped = candidate;
    out.serial_slowest = slowest(serial);
    out.chosen_slowest = slowest(out.chosen.partition);
    out.moved = moves(serial, out.chosen.partition);
    out.signatures = costs_.signatures();
    return out;
  }

 private:
  // The same search with all the memory it likes; empty where memory is no matter.
  WindowResult without_memory(WindowOptions options) {
    if (task_.problem.budget.empty()) return {};
    PartitionProblem roomy = task_.problem;
    roomy.budget.clear();
    options.solve.keep = static_cast<std::int32_t>(kFinalists);
    return solve_in_window(roomy, task_.legal, costs_, task_.serial, options);
  }

  // The optimum first, serial balance second, then the best of both proxies and the rivals.
  [[nodiscard]] std::vector<Partition> pool(std::vector<PartitionChoice> best,
                                            const Partition& serial) const {
    std::vector<Partition> out{best.front().partition, serial};
    const auto add = [&](const Partition& partition) {
      if (std::ranges::find(out, partition) == out.end()) out.push_back(partition);
    };
    for (std::size_t k = 0; k < best.size() && std::cmp_less(k, kept_); ++k) add(best[k].partition);
    std::ranges::stable_sort(best, {}, [](const PartitionChoice& c) { return c.value.worst_rank; });
    for (std::size_t k = 0; k < best.size() && std::cmp_less(k, kept_); ++k) add(best[k].partition);
    const std::int64_t stages = distinct_stages(job_);
    const std::vector<Seconds> times = serial_times(job_.model, priced_.cost);
    for (const Result<Partition>& rival :
         {even_partition(job_.model, stages), parameter_balanced_partition(job_.model, stages),
          flop_balanced_partition(job_.model, stages, job_.layout.sequence),
          alpa_partition(job_.model, times, stages, job_.layout.microbatches, stage_speeds(job_))})
      if (rival && legal(*rival)) add(*rival);
    return out;
  }

  [[nodiscard]] bool legal(const Partition& partition) const {
    for (std::size_t s = 1; s < partition.stages.size(); ++s)
      if (std::ranges::find(task_.legal[s - 1], partition.stages[s].begin) == task_.legal[s - 1].end())
        return false;
    return task_.problem.empty_stages ||
           std::ranges::none_of(partition.stages, [](BlockRange range) { return range.begin == range.end; });
  }

  // Where the template orders by durations, candidates get orders of little effort; the last word is with
  // those that the plan itself would have.
  Status decide_with_final_orders(std::vector<Candidate>& all, PartitionSearch& out) {
    std::vector<Candidate> ranked = all;
    std::ranges::stable_sort(ranked, better);
    std::vector<Partition> last{out.chosen.partition, out.proxy.partition, out.serial.partition};
    for (std::size_t i = 0; i < std::min(ranked.size(), kFinalists); ++i) last.push_back(ranked[i].partition);
    TESSERA_TRY(all, simulated(std::move(last), TemplateSizes{}.effort));
    out.chosen = all[0];
    out.proxy = all[1];
    out.serial = all[2];
    for (const Candidate& candidate : all)
      if (better(candidate, out.chosen) && legal(candidate.partition)) out.chosen = candidate;
    return {};
  }

  Result<std::vector<Candidate>> simulated(std::vector<Partition> partitions,
                                           std::int32_t effort = kSearchEffort) {
    schedule_pairs(frame_, partitions);
    std::vector<Candidate> out(partitions.size());
    std::vector<Status> failed(partitions.size());
    parallel_for(partitions.size(), 0,
                 [&](std::size_t i) { failed[i] = simulate_one(std::move(partitions[i]), effort, out[i]); });
    for (Status& status : failed) TESSERA_CHECK(std::move(status));
    return out;
  }

  Status simulate_one(Partition partition, std::int32_t effort, Candidate& out) const {
    TESSERA_TRY(const ExecutionPlan plan, fill_frame(frame_, job_, priced_, partition, effort));
    TESSERA_TRY(const SimulateResult result, simulate(plan));
    out.partition = std::move(partition);
    out.iteration = result.iteration;
    for (const RankResult& rank : result.ranks) out.peak_memory = std::max(out.peak_memory, rank.peak_memory);
    out.usable = plan.memory_limit.value() <= 0 || out.peak_memory <= plan.memory_limit * kUsableMemory;
    return {};
  }

  // Makes the move that shortens the iteration most, until none does: single boundaries first, then blocks of
  // the longest stages further away.
  Status descend(PartitionSearch& out) {
    while (out.descents < kMostDescents && out.simulated < most_simulated_) {
      TESSERA_TRY(bool moved, try_moves(boundary_moves(out.chosen.partition), out));
      if (!moved) {
        TESSERA_TRY(moved, try_moves(block_moves(out.chosen.partition), out));
      }
      if (!moved) return {};
      ++out.descents;
    }
    return {};
  }

  Result<bool> try_moves(std::vector<Partition> moves, PartitionSearch& out) {
    TESSERA_TRY(const std::vector<Candidate> all, simulated(std::move(moves)));
    out.simulated += static_cast<std::int32_t>(all.size());
    const auto best = std::ranges::min_element(all, better);
    if (best == all.end() || !better(*best, out.chosen)) return false;
    out.chosen = *best;
    return true;
  }

  // Boundaries first … last by one block, when the outcome is legal.
  void shift(const Partition& now, std::size_t first, std::size_t last, std::int32_t step,
             std::vector<Partition>& out) const {
    Partition next = now;
    for (std::size_t s = first; s <= last; ++s)
      next.stages[s].begin = next.stages[s - 1].end = now.stages[s].begin + step;
    if (next.stages[first - 1].begin > next.stages[first - 1].end ||
        next.stages[last].begin > next.stages[last].end || !legal(next))
      return;
    out.push_back(std::move(next));
  }

  [[nodiscard]] std::vector<Partition> boundary_moves(const Partition& now) const {
    std::vector<Partition> out;
    for (std::size_t s = 1; s < now.stages.size(); ++s)
      for (const std::int32_t step : {-1, 1}) shift(now, s, s, step, out);
    return out;
  }

  // A block of each of the longest stages goes to every stage that is no neighbour; what lies between passes
  // its own on.
  [[nodiscard]] std::vector<Partition> block_moves(const Partition& now) const {
    std::vector<std::size_t> stages(now.stages.size());
    std::iota(stages.begin(), stages.end(), std::size_t{0});
    std::ranges::stable_sort(stages, std::greater<>{}, [&](std::size_t s) {
      return costs_.alone(StageId(static_cast<std::int64_t>(s)), now.stages[s]);
    });
    std::vector<Partition> out;
    for (std::size_t k = 0; k < std::min(stages.size(), kLongestStages); ++k) {
      const std::size_t from = stages[k];
      for (std::size_t to = 0; to + 1 < from; ++to) shift(now, to + 1, from, 1, out);
      for (std::size_t to = from + 2; to < stages.size(); ++to) shift(now, from + 1, to, -1, out);
    }
    return out;
  }

  [[nodiscard]] Seconds time_of(const OverlapEdge& edge, const Partition& partition) {
    const PairQuery query{edge.forward, partition.stages[edge.forward.index()], edge.backward,
                          partition.stages[edge.backward.index()]};
    return costs_.times({&query, 1}).front();
  }

  [[nodiscard]] Seconds slowest(const Partition& partition) {
    Seconds out;
    for (const OverlapEdge& edge : task_.problem.graph.edges) out = std::max(out, time_of(edge, partition));
    for (const AloneStage& alone : task_.problem.graph.alone)
      out = std::max(out, costs_.alone(alone.stage, partition.stages[alone.stage.index()]));
    return out;
  }

  std::vector<BoundaryMove> moves(const Partition& serial, const Partition& chosen) {
    std::vector<BoundaryMove> out;
    for (std::size_t s = 1; s < serial.stages.size(); ++s) {
      if (serial.stages[s].begin == chosen.stages[s].begin) continue;
      BoundaryMove move{.stage = StageId(static_cast<std::int64_t>(s)),
                        .from = serial.stages[s].begin,
                        .to = chosen.stages[s].begin};
      const auto touches = [s](StageId stage) { return stage.index() + 1 == s || stage.index() == s; };
      const auto consider = [&](StageId forward, StageId backward, Seconds before, auto&& after) {
        if (before <= move.before) return;
        move.before = before;
        move.after = after();
        move.forward = forward;
        move.backward = backward;
      };
      for (const OverlapEdge& edge : task_.problem.graph.edges)
        if (touches(edge.forward) || touches(edge.backward))
          consider(edge.forward, edge.backward, time_of(edge, serial), [&] { return time_of(edge, chosen); });
      for (const AloneStage& alone : task_.problem.graph.alone) {
        if (!touches(alone.stage)) continue;
        const auto time = [&](const Partition& partition) {
          return costs_.alone(alone.stage, partition.stages[alone.stage.index()]);
        };
        consider(alone.stage, alone.stage, time(serial), [&] { return time(chosen); });
      }
      out.push_back(move);
    }
    std::ranges::stable_sort(out, std::greater<>{}, [](const BoundaryMove& m) { return m.before - m.after; });
    return out;
  }

  const Job& job_;
  const PlanOptions& options_;
  const PricedJob& priced_;
  PlanFrame& frame_;
  MeasuredStageCosts costs_;
  PartitionTask task_;
  std::int32_t kept_ = kKept;
  std::int64_t most_simulated_ = 0;
};

}  // namespace

ModelStageCosts stage_costs(const Job& job, const PricedJob& priced, PlanFrame& frame) {
  return ModelStageCosts(
      priced.input, priced.cost,
      {.interference = priced.interference, .stage_speed = stage_speeds(job), .nominal = &frame.pairs});
}

Result<PartitionTask> partition_task(const Job& job, const PricedJob& priced, const PlanFrame& frame,
                                     const ModelStageCosts& costs) {
  PartitionTask out;
  out.problem.blocks = static_cast<std::int32_t>(job.model.blocks.size());
  out.problem.graph = overlap_graph(frame.plan.actions);
  out.problem.empty_stages = job.placement.empty_stages;
  // The rules are told ranks; where every stage is on two, the ranks of the first pipeline do.
  std::vector<RankId> ranks = frame.plan.actions.rank_of_stage;
  ranks.resize(out.problem.graph.rank_of_stage.size());
  TESSERA_TRY(out.legal, legal_places(job.model, ranks, job.placement));
  TESSERA_TRY(out.serial, serial_balanced_partition(job.model, serial_times(job.model, priced.cost),
                                                    distinct_stages(job), stage_speeds(job)));
  set_budgets(job, priced, frame, costs, out.problem);
  return out;
}

Result<PartitionSearch> search_partition(const Job& job, const PricedJob& priced, PlanFrame& frame,
                                         const PlanOptions& options) {
  return Search(job, priced, frame, options).run();
}

}  // namespace tessera::train
