// From a job to an execution plan: price, partition, schedule, interleave, simulate.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/core/model/count.h"
#include "tessera/train/execution_plan/execution_plan.h"
#include "tessera/train/partition/solve_partition.h"
#include "tessera/train/planner/job.h"
#include "tessera/train/simulate/simulate.h"

namespace tessera::train {

/// The figures of one simulated plan, as people compare them.
struct PlanFigures {
  std::string name;
  Seconds iteration;
  Seconds lower_bound;
  double tokens_per_second_per_gpu = 0;
  double mfu = 0;
  double warmup_bubble = 0;  ///< share of the iteration, mean over ranks, cool-down included
  double imbalance_bubble = 0;
  double exposed_ep = 0;        ///< share of the iteration, mean over ranks
  double exposed_ep_worst = 0;  ///< of the worst rank
  double hidden_ep = 0;
  double hidden_ep_worst = 0;  ///< of the rank that hides least
  Bytes peak_memory;
  std::int32_t peak_rank = 0;
};

/// Where the priced time of a plan came from.
struct CostSources {
  std::array<double, kProvenances> share{};         ///< of the priced time of one microbatch
  std::array<std::int64_t, kProvenances> values{};  ///< priced durations, by their main source
  std::int64_t total = 0;                           ///< priced durations
  double error = 0;        ///< likely relative error of the sum, see Estimate::likely_error
  double worst_error = 0;  ///< the same if every cost errs the same way
};

/// A partition, of one pipeline, with what the simulator says of it.
struct Candidate {
  Partition partition;
  Seconds iteration;
  Bytes peak_memory;
  bool usable = true;  ///< within kUsableMemory
};

/// A way to run microbatches that the template cannot take as they are, on the partition that the job's rule
/// gives, or balanced by serial time where it is still to be searched.
struct FillingCandidate {
  Filling filling;
  std::string placement;  ///< of the shadows: "first", "last", "spread", "ends", "searched"; empty = none
  Seconds iteration;
  Bytes peak_memory;
  bool usable = true;  ///< within kUsableMemory
};

/// A boundary that lies elsewhere than serial balance would put it, and the pair that gained most by it.
struct BoundaryMove {
  StageId stage;                  ///< the boundary in front of it
  std::int32_t from = 0, to = 0;  ///< first block of the stage
  StageId forward, backward;  ///< the slowest pair, at the old place, of those the boundary touches; equal
                              ///< stages also stand for a stage that no pair covers
  Seconds before, after;
};

/// How the overlap-aware partition was found, and how sure it is.
struct PartitionSearch {
  Candidate chosen;
  Candidate serial;          ///< balanced by serial time, with the same pair schedules
  bool serial_legal = true;  ///< it keeps the placement rules
  Candidate proxy;           ///< the optimum of the slowest pair, before the simulator had its say
  PartitionResult solved;  ///< the certificate: of the slowest pair, not of the iteration. When no partition
                           ///< fits the memory, `obstacle` says why, and `chosen` is the serial balance
  /// A simulated partition that would be faster than the chosen one, but does not fit the memory.
  std::optional<Candidate> cramped;
  Seconds serial_slowest;  ///< slowest pair of the serial-balanced partition
  Seconds chosen_slowest;
  std::int32_t simulated = 0;
  std::int32_t descents = 0;        ///< boundaries moved on the simulator
  std::size_t signatures = 0;       ///< distinct pairs scheduled
  std::vector<BoundaryMove> moved;  ///< largest gain first
};

/// A way for the layers of one kind to hold less, and what that costs.
struct MemoryMeans {
  std::string kind;  ///< of layers: see kind_name
  std::string unit;  ///< name of a RecomputeUnit, or "offload"
  double share = 1;  ///< of what is kept, that is offloaded
  Bytes saved;       ///< of what a layer keeps of a microbatch, beside the cheaper means
  Seconds time;      ///< added to a layer's F and B of a microbatch; 0 = hidden behind compute
  bool operator==(const MemoryMeans&) const = default;
  /// Seconds for a byte.
  [[nodiscard]] double price() const noexcept { return time.value() / saved.value(); }
};

/// What was decided because the plan, or a faster partition, would not fit without it.
struct MemoryDecision {
  std::vector<MemoryMeans> taken;            ///< cheapest first
  std::vector<MemoryMeans> left;             ///< what would come next, at what price
  Bytes without;                             ///< peak of the fullest rank without any of it
  std::optional<Seconds> iteration_without;  ///< of the plan that fits without it, if one does
};

struct PlanReport {
  ModelSpec model;
  ExecutionPlan plan;
  SimulateResult simulated;                ///< with slices
  PlanFigures figures;                     ///< of the plan
  PlanFigures baseline;                    ///< balanced by serial time where the partition was searched, else
                                           ///< the same partition; the template without overlap
  std::optional<PlanFigures> serial;       ///< of a search: balanced by serial time, the same template
  PlanFigures even;                        ///< the same without overlap, even layers per stage
  std::optional<PartitionSearch> search;   ///< of an overlap-aware partition
  std::optional<MemoryDecision> memory;    ///< when the planner had to find room
  std::vector<FillingCandidate> fillings;  ///< the first was taken; empty when the template takes M as it is
  CostSources sources;
  bool usable = true;              ///< the fullest rank stays within kUsableMemory of the device
  std::vector<std::string> notes;  ///< in words: what was decided and why
};

struct PlanOptions {
  bool slices = true;     ///< keep the simulated slices for a trace
  bool baselines = true;  ///< simulate the two rivals too
  /// How far an overlap-aware partition looks around its center, see WindowOptions.
  std::int32_t window = 2, widened = 0;
};

/// Errors are those of the job (a template that the sizes do not fit, a hand-written pair that is no order).
/// A plan beyond the memory is a result, with usable = false. Pure but for the profile database, where the
/// job names one: the same job and profile give the same plan.
[[nodiscard]] Result<PlanReport> make_plan(const Job& job, const PlanOptions& options = {});
[[nodiscard]] PlanFigures figures(std::string name, const ExecutionPlan& plan,
                                  const SimulateResult& simulated);

}  // namespace tessera::train
