#include "tessera/train/partition/solve_partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "solvers.h"

namespace tessera::train {

std::string_view name(PartitionReason reason) noexcept {
  switch (reason) {
    case PartitionReason::optimal:
      return "optimal";
    case PartitionReason::work_gap:
      return "work_gap";
    case PartitionReason::limit:
      return "limit";
    case PartitionReason::infeasible:
      return "infeasible";
    case PartitionReason::too_big:
      return "too_big";
  }
  return "unknown";
}

namespace {

PartitionResult solve_by_method(const PartitionProblem& problem, StageCosts& costs,
                                const PartitionOptions& options) {
  switch (options.method) {
    case PartitionMethod::sweep:
      return solve_sweep(problem, costs, options);
    case PartitionMethod::milp:
      return solve_milp(problem, costs, options);
    case PartitionMethod::brute_force:
      return solve_partition_brute_force(problem, costs, options);
  }
  return {.reason = PartitionReason::limit};
}

}  // namespace

PartitionResult solve_partition(const PartitionProblem& problem, StageCosts& costs,
                                const PartitionOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  PartitionResult result = solve_by_method(problem, costs, options);
  if (result.reason == PartitionReason::infeasible) {
    // A solver's tolerance may have ruled out what fits to the byte.
    if (std::optional<std::string> words = explain_infeasible(problem, costs))
      result.obstacle = *std::move(words);
    else
      result.reason = PartitionReason::limit;
  }
  if (result.reason == PartitionReason::limit && result.best.empty())
    result.obstacle = fmt::format(
        "no partition was found before the solver stopped, and none is ruled out ({} states looked at)",
        result.work);
  result.variables = count_variables(problem);
  result.solve_time =
      Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return result;
}

std::vector<PartitionChoice> front(std::vector<PartitionChoice> choices) {
  const auto key = [](const PartitionChoice& choice) {
    return std::tuple(choice.value.slowest, choice.value.work);
  };
  std::ranges::stable_sort(choices, {}, key);
  std::vector<PartitionChoice> out;
  for (PartitionChoice& choice : choices)
    if (out.empty() || choice.value.work < out.back().value.work) out.push_back(std::move(choice));
  return out;
}

}  // namespace tessera::train
