// The only file that knows HiGHS: through its C face, since the library's C++ classes do not link (old string
// ABI).
#include <fmt/format.h>
#include <interfaces/highs_c_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <thread>

#include "tessera/core/solver/mip.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

static_assert(sizeof(HighsInt) == sizeof(std::int32_t));

// HiGHS drops smaller coefficients without a word and refuses larger ones (small_matrix_value and
// large_matrix_value, its defaults); from infinite_cost on a cost is refused.
constexpr double kSmallest = 1e-9, kLargest = 1e15, kLargestCost = 1e20;

// A model of this size takes HiGHS seconds rather than milliseconds.
constexpr std::size_t kManyEntries = 20'000;

struct Destroy {
  void operator()(void* highs) const noexcept { Highs_destroy(highs); }
};
using Highs = std::unique_ptr<void, Destroy>;

std::string fault(const MipModel::View& model) {
  const auto no_interval = [](double lower, double upper) {
    return std::isnan(lower) || std::isnan(upper) || lower == kUnbounded || upper == -kUnbounded;
  };
  for (std::size_t i = 0; i < model.cost.size(); ++i) {
    if (no_interval(model.lower[i], model.upper[i]))
      return fmt::format("column {} has the bounds {} and {}", i, model.lower[i], model.upper[i]);
    if (!(std::abs(model.cost[i]) < kLargestCost))
      return fmt::format("column {} costs {}, expected less than {:g}", i, model.cost[i], kLargestCost);
  }
  for (std::size_t r = 0; r < model.row_lower.size(); ++r) {
    if (no_interval(model.row_lower[r], model.row_upper[r]))
      return fmt::format("row {} has the bounds {} and {}", r, model.row_lower[r], model.row_upper[r]);
    const auto end = static_cast<std::size_t>(model.row_start[r + 1]);
    for (auto k = static_cast<std::size_t>(model.row_start[r]); k < end; ++k) {
      const double size = std::abs(model.coefficient[k]);
      if (size != 0 && !(size >= kSmallest && size < kLargest))
        return fmt::format("row {} has the coefficient {} at column {}, expected a size of {:g} to {:g}", r,
                           model.coefficient[k], model.column[k], kSmallest, kLargest);
    }
  }
  return {};
}

// HiGHS takes a bound beyond the other for a malformed model, and looks at no row of a model without columns.
// Here either is a model without a solution.
bool contradicts_itself(const MipModel::View& model) {
  const auto crossed = [](std::span<const double> lower, std::span<const double> upper) {
    return !std::ranges::equal(lower, upper, std::less_equal());
  };
  if (crossed(model.lower, model.upper) || crossed(model.row_lower, model.row_upper)) return true;
  for (std::size_t r = 0; r < model.row_lower.size(); ++r)
    if (model.row_start[r] == model.row_start[r + 1] && (model.row_lower[r] > 0 || model.row_upper[r] < 0))
      return true;
  return false;
}

std::string fault(const MipModel::View& model, const MipOptions& options) {
  if (!(options.tolerance >= 1e-10 && options.tolerance <= 1e-2))
    return fmt::format("the tolerance is {}, expected 1e-10 to 1e-2", options.tolerance);
  if (!(options.relative_gap >= 0 && options.absolute_gap >= 0))
    return fmt::format("the gaps are {} and {}, expected 0 or more", options.relative_gap,
                       options.absolute_gap);
  if (options.threads < 1) return fmt::format("{} threads, expected 1 or more", options.threads);
  if (!options.warm_start.empty() && options.warm_start.size() != model.cost.size())
    return fmt::format("a warm start of {} values for {} columns", options.warm_start.size(),
                       model.cost.size());
  return fault(model);
}

void set_options(void* highs, const MipModel::View& model, const MipOptions& options) {
  Highs_setBoolOptionValue(highs, "output_flag", 0);
  Highs_setIntOptionValue(highs, "random_seed", std::max(options.seed, 0));
  Highs_setIntOptionValue(highs, "threads", options.threads);
  Highs_setStringOptionValue(highs, "parallel", options.threads > 1 ? "on" : "off");
  Highs_setDoubleOptionValue(highs, "primal_feasibility_tolerance", options.tolerance);
  Highs_setDoubleOptionValue(highs, "dual_feasibility_tolerance", std::min(options.tolerance, 1e-7));
  Highs_setDoubleOptionValue(highs, "mip_feasibility_tolerance", options.tolerance);
  // The heuristic for a first solution takes 25 ms on the smallest model.
  if (!options.warm_start.empty() || model.column.size() < kManyEntries)
    Highs_setBoolOptionValue(highs, "mip_heuristic_run_feasibility_jump", 0);
  Highs_setDoubleOptionValue(highs, "mip_rel_gap", options.relative_gap);
  Highs_setDoubleOptionValue(highs, "mip_abs_gap", options.absolute_gap);
  if (options.time_limit)
    Highs_setDoubleOptionValue(highs, "time_limit", std::max(0.0, options.time_limit->value()));
  if (options.node_limit)
    Highs_setIntOptionValue(highs, "mip_max_nodes",
                            static_cast<HighsInt>(std::clamp<std::int64_t>(
                                *options.node_limit, 0, std::numeric_limits<HighsInt>::max())));
}

bool pass(void* highs, const MipModel::View& model, bool integral, const double* cost) {
  const auto count = [](std::size_t size) { return static_cast<HighsInt>(size); };
  return Highs_passMip(highs, count(model.cost.size()), count(model.row_lower.size()),
                       count(model.column.size()), kHighsMatrixFormatRowwise, kHighsObjSenseMinimize, 0, cost,
                       model.lower.data(), model.upper.data(), model.row_lower.data(), model.row_upper.data(),
                       model.row_start.data(), model.column.data(), model.coefficient.data(),
                       integral ? model.integral.data() : nullptr) != kHighsStatusError;
}

// Presolve sometimes ends with "unbounded or infeasible"; without an objective it can only be the latter.
bool feasible_without_costs(const MipModel::View& model, bool integral, const MipOptions& options) {
  const Highs highs(Highs_create());
  set_options(highs.get(), model, options);
  const std::vector<double> nothing(model.cost.size(), 0.0);
  return pass(highs.get(), model, integral, nothing.data()) && Highs_run(highs.get()) != kHighsStatusError &&
         Highs_getModelStatus(highs.get()) == kHighsModelStatusOptimal;
}

template <class T, class Get>
T info(void* highs, const char* key, T fallback, Get get) {
  T value = fallback;
  return get(highs, key, &value) == kHighsStatusOk ? value : fallback;
}

void read_solution(void* highs, const MipModel::View& model, MipResult& result) {
  result.values.resize(model.cost.size());
  std::vector<double> column_dual(model.cost.size()), row_value(model.row_lower.size()),
      row_dual(model.row_lower.size());
  Highs_getSolution(highs, result.values.data(), column_dual.data(), row_value.data(), row_dual.data());
  for (std::size_t i = 0; i < result.values.size(); ++i)
    if (model.integral[i] != 0) result.values[i] = std::round(result.values[i]);
  result.objective = std::inner_product(model.cost.begin(), model.cost.end(), result.values.begin(), 0.0);
}

MipResult run(const MipModel& problem, const MipOptions& options) {
  const MipModel::View model = problem.view();
  MipResult result;
  result.error = fault(model, options);
  if (!result.error.empty()) return result;
  if (contradicts_itself(model)) {
    result.reason = MipReason::infeasible;
    return result;
  }

  const bool integral = problem.integral_columns() > 0;
  const Highs highs(Highs_create());
  set_options(highs.get(), model, options);
  if (!pass(highs.get(), model, integral, model.cost.data())) {
    result.error = "HiGHS does not take the model";
    return result;
  }
  if (integral && !options.warm_start.empty())
    Highs_setSolution(highs.get(), options.warm_start.data(), nullptr, nullptr, nullptr);
  const HighsInt ran = Highs_run(highs.get());
  const HighsInt status = Highs_getModelStatus(highs.get());

  const bool has_solution = info<HighsInt>(highs.get(), "primal_solution_status", 0, Highs_getIntInfoValue) ==
                            kHighsSolutionStatusFeasible;
  const double infinity = Highs_getInfinity(highs.get());
  if (integral) {
    result.nodes = std::max<std::int64_t>(
        0, info<std::int64_t>(highs.get(), "mip_node_count", 0, Highs_getInt64InfoValue));
    result.bound = info(highs.get(), "mip_dual_bound", -kUnbounded, Highs_getDoubleInfoValue);
    if (result.bound >= infinity) result.bound = -kUnbounded;
  }
  result.iterations = info<HighsInt>(highs.get(), "simplex_iteration_count", 0, Highs_getIntInfoValue);

  switch (status) {
    case kHighsModelStatusOptimal:
    case kHighsModelStatusModelEmpty:
      result.reason = MipReason::optimal;
      break;
    case kHighsModelStatusInfeasible:
      result.reason = MipReason::infeasible;
      break;
    case kHighsModelStatusUnbounded:
      result.reason = MipReason::unbounded;
      break;
    case kHighsModelStatusUnboundedOrInfeasible:
      result.reason =
          feasible_without_costs(model, integral, options) ? MipReason::unbounded : MipReason::infeasible;
      break;
    case kHighsModelStatusTimeLimit:
    case kHighsModelStatusIterationLimit:
    case kHighsModelStatusSolutionLimit:
    case kHighsModelStatusInterrupt:
      result.reason = has_solution ? MipReason::feasible : MipReason::limit;
      break;
    default:
      result.error = fmt::format("HiGHS gave up: return code {}, model status {}", ran, status);
      break;
  }
  if (!result.solved()) return result;
  read_solution(highs.get(), model, result);
  if (!integral && result.reason == MipReason::optimal) result.bound = result.objective;
  result.bound = std::min(result.bound, result.objective);
  const double distance = result.objective - result.bound;
  result.gap = distance == 0 ? 0 : distance / std::abs(result.objective);
  return result;
}

MipResult run_guarded(const MipModel& model, const MipOptions& options) {
  try {
    return run(model, options);
  } catch (const std::exception& thrown) {
    MipResult result;
    result.error = fmt::format("HiGHS gave up: {}", thrown.what());
    return result;
  }
}

}  // namespace

MipResult solve(const MipModel& model, const MipOptions& options) {
  const auto began = Clock::now();
  MipResult result;
  if (options.threads == 1) {
    result = run_guarded(model, options);
  } else {
    // HiGHS fixes the number of workers at its first run in a thread, for as long as that thread lives.
    std::jthread([&] { result = run_guarded(model, options); }).join();
  }
  result.solve_time = Seconds(std::chrono::duration<double>(Clock::now() - began).count());
  return result;
}

}  // namespace tessera
