// Plans and simulations in words, tables and JSON: what the command line prints.
//
// Every function returns text; units stand on every number. JSON is strict and its keys are stable.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tessera/core/cost/profile_database.h"
#include "tessera/core/model/model_spec.h"
#include "tessera/train/execution_plan/execution_plan.h"
#include "tessera/train/planner/pair_report.h"
#include "tessera/train/planner/plan.h"
#include "tessera/train/planner/to_measure.h"
#include "tessera/train/simulate/audit.h"
#include "tessera/train/simulate/simulate.h"

namespace tessera::train {

struct TextStyle {
  bool color = false;  ///< ANSI colours, for terminals
};

/// `tessera import`: layers by kind, parameters, what the importer decided.
[[nodiscard]] std::string model_text(const ModelSpec& model, const TextStyle& style = {});
[[nodiscard]] std::string model_json(const ModelSpec& model);

/// `tessera plan`: the model, the layout, the figures beside the rivals, partition, memory, where the time
/// goes.
[[nodiscard]] std::string plan_text(const PlanReport& report, const Job& job, const TextStyle& style = {});
[[nodiscard]] std::string plan_json(const PlanReport& report, const Job& job);

/// `tessera plan --to-measure`: whether the choice is certain, and what to measure, most useful first.
[[nodiscard]] std::string measure_text(const MeasureReport& report);
[[nodiscard]] std::string measure_json(const MeasureReport& report);

/// `tessera profile list`: cells in the order of ProfileDatabase::cells(). The JSON is what `profile add`
/// reads.
[[nodiscard]] std::string profile_text(std::span<const ProfileCell> cells);
[[nodiscard]] std::string profile_json(std::span<const ProfileCell> cells);

struct PairTextOptions {
  std::size_t columns = 100;                       ///< of the chart and of the text, at least kLeastColumns
  std::int64_t labels = PairOptions{}.work_limit;  ///< the exact search was given, to say how to go on
};
inline constexpr std::size_t kLeastColumns = 40;
inline constexpr std::size_t kMostColumns = 1000;

/// `tessera pair`: a chart of the order that is best under interference, the optimum with its reason, every
/// scheduler beside it.
[[nodiscard]] std::string pair_text(const PairReport& report, const PairTextOptions& options = {});
[[nodiscard]] std::string pair_json(const PairReport& report);

/// `tessera check`: what was proved, and what the plan says of itself that no longer holds.
[[nodiscard]] std::string audit_text(const std::string& file, const ExecutionPlan& plan,
                                     const PlanAudit& audit);
[[nodiscard]] std::string audit_json(const ExecutionPlan& plan, const PlanAudit& audit);

/// `tessera simulate`: the figures of a plan file, per rank.
[[nodiscard]] std::string simulation_text(const ExecutionPlan& plan, const SimulateResult& result,
                                          const TextStyle& style = {});
[[nodiscard]] std::string simulation_json(const ExecutionPlan& plan, const SimulateResult& result);

}  // namespace tessera::train
