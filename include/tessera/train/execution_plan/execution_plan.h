// The plan: everything needed to run, simulate or check one training step, and where it came from.
//
// It stands alone: a plan file can be simulated, checked and exported without the job or the model that made
// it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/base/ids.h"
#include "tessera/core/base/result.h"
#include "tessera/core/base/units.h"
#include "tessera/core/cluster/layout.h"
#include "tessera/core/cost/block_cost.h"
#include "tessera/train/overlap/pair_schedule.h"
#include "tessera/train/overlap/task_graph.h"
#include "tessera/train/schedule/action.h"
#include "tessera/train/schedule/partition.h"

namespace tessera::train {

inline constexpr int kPlanVersion = 1;

/// Above this share of device memory the allocator retries and time explodes, so a plan is not usable.
inline constexpr double kUsableMemory = 0.97;

struct PlanBlock {
  BlockKind kind = BlockKind::layer;
  std::int32_t layer = -1;
  std::int32_t cost = 0;  ///< index into ExecutionPlan::costs
  bool operator==(const PlanBlock&) const = default;
};

/// What a whole pair took on the rank that runs it.
struct MeasuredPair {
  Seconds makespan;  ///< above 0
  double error = 0;  ///< relative bound, below 1
  bool operator==(const MeasuredPair&) const = default;
};

/// The interleaving of one (forward stage, backward stage) that some rank overlaps.
struct PairPlan {
  StageId forward;
  StageId backward;
  std::vector<std::string> sequence;  ///< task names in launch order
  Seconds makespan;                   ///< of the sequence, under interference, on a rank of nominal speed
  Seconds nominal;                    ///< of the sequence, without interference
  Seconds bound;                      ///< on the nominal makespan of any sequence
  /// Of the sequence with a full backward. Then the simulator stretches the tasks of the pair to it.
  std::optional<MeasuredPair> measured;
};

/// A measured time is of a pair with a full backward.
[[nodiscard]] constexpr bool is_measured(const Action& overlap) noexcept {
  return overlap.backward_kind == ActionKind::full_backward;
}

/// Per pipeline rank, at the end of a step: whole times, of which part hides
/// (ExecutionPlan::exposed_reduction).
struct RankStep {
  Seconds reduce_scatter;  ///< of gradients
  Seconds all_gather;      ///< of weights
  Seconds optimizer;
};

/// What does not change during a step, per rank. Activations and stashes come from the simulation.
struct RankMemory {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes workspace;     ///< dispatch buffers of one block, and what recompute brings back
  Bytes transfer;      ///< p2p buffers
  Bytes context;       ///< CUDA context, allocator, NCCL
  Bytes pair_buffers;  ///< not in the total: dispatch buffers of a pair's forward, from its first
                       ///< communication to its last
  [[nodiscard]] Bytes total() const noexcept {
    return weights + gradients + optimizer + workspace + transfer + context;
  }
};

/// Where a number that a plan reports came from, and what it promises.
struct Prediction {
  Seconds iteration;
  double error = 0;  ///< ± relative
  double tokens_per_second_per_gpu = 0;
  double mfu = 0;  ///< 0 … 1
  Seconds lower_bound;
  Bytes peak_memory;  ///< of the fullest rank
  std::int32_t peak_rank = 0;
};

struct ExecutionPlan {
  int version = kPlanVersion;
  std::string model;                        ///< name
  std::string device;                       ///< GPU name
  std::array<std::string, 4> fingerprints;  ///< of model, cluster, layout, costs: 16 hex digits each
  Layout layout;
  std::string schedule;    ///< template name
  std::int32_t group = 0;  ///< N of the template
  std::vector<PlanBlock> blocks;
  std::vector<BlockCost> costs;  ///< distinct block costs; provenance is kept
  Partition partition;
  ActionList actions;
  std::vector<PairPlan> pairs;  ///< one per overlapped (forward, backward), in order of appearance
  Interference interference;
  Seconds transfer_latency;
  Seconds transfer_time;           ///< of one activation between ranks, without latency
  std::vector<double> rank_speed;  ///< empty = all 1
  std::vector<RankStep> step;      ///< per rank
  double exposed_reduction = 0;    ///< share of reduce_scatter and all_gather that never hides, 0 … 1
  std::vector<RankMemory> memory;  ///< per rank
  Bytes memory_limit;              ///< of the device
  double flops_per_token = 0;      ///< training, 3 × forward, for MFU
  FlopsPerSecond peak;             ///< dense, of the dtype
  Prediction predicted;

  [[nodiscard]] TaskGraph forward_graph(StageId stage) const;
  [[nodiscard]] TaskGraph backward_graph(StageId stage, Backward part = Backward::full) const;
  [[nodiscard]] Bytes activation(StageId stage) const noexcept;    ///< of one microbatch, F → B
  [[nodiscard]] Bytes logits(StageId stage) const noexcept;        ///< of those, see BlockMemory
  [[nodiscard]] Bytes weight_stash(StageId stage) const noexcept;  ///< of one microbatch, B → W
  /// Of what one microbatch offloads, one way.
  [[nodiscard]] Seconds copy_time(StageId stage) const noexcept;
  /// The plan of this pair; null when the template never overlaps it.
  [[nodiscard]] const PairPlan* pair(StageId forward, StageId backward) const noexcept;
};

/// What an overlap action runs: both chunks side by side, in the pair's launch order.
struct PairRun {
  TaskGraph graph;
  std::vector<TaskId> order;
};
/// An overlap with an input gradient leaves the weight gradients of the pair's sequence out. Errors: the plan
/// has no such pair, or those of order_by_names.
[[nodiscard]] Result<PairRun> pair_run(const ExecutionPlan& plan, const Action& overlap);

/// Consistent in itself: sizes agree, partition covers, actions pass check_schedule, every overlapped pair
/// has a sequence that passes order_by_names, durations are finite and not negative.
[[nodiscard]] Status check_plan(const ExecutionPlan& plan);

}  // namespace tessera::train
