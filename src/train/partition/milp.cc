// The paper's programme on HiGHS: the reference that the sweep is held against.
#include <algorithm>
#include <chrono>
#include <limits>
#include <tuple>

#include "partition_mip.h"
#include "solvers.h"

namespace tessera::train {

namespace {

// HiGHS' own, 1e-6, is as much as the differences that are to be told apart.
constexpr double kTolerance = 1e-9;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Milp {
 public:
  Milp(const PartitionProblem& problem, StageCosts& costs, const PartitionOptions& options)
      : problem_(problem),
        costs_(costs),
        options_(options),
        stages_(stages_of_ranks(problem.graph)),
        incumbent_(valued(options.incumbent)),
        tables_(problem, costs, incumbent_ ? incumbent_->value.slowest : Seconds(kInfinity)) {}

  PartitionResult run() {
    result_.pairs_timed = tables_.timed();
    best_ = incumbent_;
    find_slowest();
    if (result_.reason == PartitionReason::optimal && options_.least_work) find_least_work();
    if (best_) {
      result_.best = {*best_};
      result_.reach = best_->value.slowest;
      if (result_.bound.value() > 0) result_.gap = std::max(0.0, best_->value.slowest / result_.bound - 1);
    }
    return std::move(result_);
  }

 private:
  std::optional<PartitionChoice> valued(const std::optional<Partition>& partition) {
    if (!partition) return std::nullopt;
    const Result<PartitionValue> value = evaluate(problem_, costs_, *partition);
    if (!value) return std::nullopt;
    return PartitionChoice{*partition, *value};
  }

  [[nodiscard]] std::optional<Seconds> time_left() const {
    if (!options_.time_limit) return std::nullopt;
    const Seconds spent(std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
    return std::max(Seconds(0), *options_.time_limit - spent);
  }

  // The solver's tolerance lets a rank through that is over its budget by a billionth: exclude what does not
  // fit and solve again.
  MipResult solve_within_memory(PartitionMip& mip) {
    std::vector<double> start;
    if (best_) start = mip.values_of(best_->partition);
    for (;;) {
      MipResult result = solve(mip.model(), {.time_limit = time_left(),
                                             .absolute_gap = kTolerance,
                                             .tolerance = kTolerance,
                                             .warm_start = start});
      result_.work += result.nodes;
      if (!result.solved()) return result;
      const Partition partition = mip.partition_of(result.values);
      const Result<PartitionValue> value = evaluate(problem_, costs_, partition);
      if (value) {
        take({partition, *value});
        return result;
      }
      bool excluded = false;
      for (const std::vector<StageId>& of_rank : stages_)
        if (!fits(partition, of_rank)) {
          mip.exclude(partition, of_rank);
          excluded = true;
        }
      if (!excluded) {
        result.reason = MipReason::failed;
        return result;
      }
    }
  }

  // The rank alone, all others without a limit.
  [[nodiscard]] bool fits(const Partition& partition, const std::vector<StageId>& of_rank) {
    if (of_rank.empty()) return true;
    PartitionProblem one = problem_;
    for (std::size_t r = 0; r < one.budget.size(); ++r)
      if (r != problem_.graph.rank_of_stage[of_rank.front().index()].index())
        one.budget[r] = Bytes(kInfinity);
    return evaluate(one, costs_, partition).has_value();
  }

  void take(PartitionChoice choice) {
    const auto key = [](const PartitionChoice& c) { return std::tuple(c.value.slowest, c.value.work); };
    if (!best_ || key(choice) < key(*best_)) best_ = std::move(choice);
  }

  void find_slowest() {
    const Seconds longest = tables_.longest();
    const Seconds unit = incumbent_ && incumbent_->value.slowest.value() > 0 ? incumbent_->value.slowest
                         : longest.value() > 0                               ? longest
                                                                             : Seconds(1);
    PartitionMip mip(problem_, costs_, tables_, PartitionMip::Objective::slowest, unit);
    result_.variables_pruned = mip.variables();
    const MipResult solved = solve_within_memory(mip);
    if (solved.reason == MipReason::infeasible) {
      // With an incumbent something fits, so the programme may only be wrong by its tolerance.
      result_.reason = best_ ? PartitionReason::limit : PartitionReason::infeasible;
      return;
    }
    // A stage's row and those around it may each be off by the tolerance.
    const double inexact = kTolerance * static_cast<double>(4 + problem_.stages());
    const Seconds bound = unit * std::max(0.0, solved.bound - inexact);
    result_.bound = next_time(bound);
    const bool proved = solved.reason == MipReason::optimal && best_ &&
                        best_->value.slowest <= unit * (solved.objective + inexact);
    result_.reason = proved ? PartitionReason::optimal : PartitionReason::limit;
    if (best_) result_.bound = std::min(result_.bound, best_->value.slowest);
  }

  // The slowest pair is one of the times in the tables: the first that the bound admits.
  [[nodiscard]] Seconds next_time(Seconds bound) const {
    Seconds next(kInfinity);
    const auto look = [&](Seconds time) {
      if (time >= bound) next = std::min(next, time);
    };
    for (const PairTables::Table& table : tables_.tables())
      for (const PairTables::Cell& cell : table.cells) look(cell.slowest);
    for (const PairTables::Alone& alone : tables_.alone()) std::ranges::for_each(alone.times, look);
    return next < Seconds(kInfinity) ? next : bound;
  }

  void find_least_work() {
    tables_.keep_within(best_->value.slowest);
    const Seconds first = best_->value.work;
    const Seconds unit = first.value() > 0 ? first : Seconds(1);
    PartitionMip mip(problem_, costs_, tables_, PartitionMip::Objective::work, unit);
    const MipResult solved = solve_within_memory(mip);
    if (solved.reason == MipReason::optimal) return;
    const Seconds bound = unit * std::max(0.0, solved.bound);
    result_.work_gap = bound.value() > 0 ? std::max(0.0, best_->value.work / bound - 1) : kInfinity;
    result_.reason = PartitionReason::work_gap;
  }

  const PartitionProblem& problem_;
  StageCosts& costs_;
  const PartitionOptions& options_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<std::vector<StageId>> stages_;
  std::optional<PartitionChoice> incumbent_, best_;
  PairTables tables_;
  PartitionResult result_;
};

}  // namespace

PartitionResult solve_milp(const PartitionProblem& problem, StageCosts& costs,
                           const PartitionOptions& options) {
  return Milp(problem, costs, options).run();
}

}  // namespace tessera::train
