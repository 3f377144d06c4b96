// Discrete-event simulation of one training step, task by task, deterministic.
//
// Per rank there are three streams: comp, comm (expert all-to-all) and p2p. An action starts when the rank's
// previous action has ended and its inputs have arrived; inside it, the tasks run as two in-order streams in
// plan order (serially where the action is not an overlap, but for a shared expert beside its all-to-all). A
// forward's output leaves on the p2p stream at its end and arrives after latency + transfer; neighbours on
// one rank pay nothing. A shadow microbatch (see action.h) takes no time and holds nothing, but what it sends
// takes its time on the link; the real half of a pair with a shadow half runs alone.
//
// Gradients are reduced on a stream of their own, bucket by bucket, from the start of a stage's last action
// with weight gradients; a rank's stages one after another, each with its share of the rank's reduction by
// gradient bytes. The share `exposed_reduction` of it waits for the end of the rank's pipeline. The optimizer
// follows. The all-gather of its weights runs beside the first forwards of the next step, a stage's share of
// it done by the end of the stage's first forward; the same share of it never hides, and what does not fit
// delays the step.
//
// With fixed costs it reproduces the closed forms where one exists, and one pair alone equals run_order().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/core/base/units.h"
#include "tessera/train/execution_plan/execution_plan.h"

namespace tessera::train {

struct SimulateOptions {
  bool slices = false;  ///< record every task and action (for the trace and for tests); off for search
};

/// One task on one stream of one rank.
struct Slice {
  std::int32_t rank = 0;
  Resource stream = Resource::comp;
  TaskName task;
  StageId stage;
  MicrobatchId microbatch;
  Seconds start, end;
};

/// One action of one rank; `index` into ExecutionPlan::actions.ranks[rank].
struct ActionSpan {
  std::int32_t rank = 0;
  std::int32_t index = 0;
  Seconds start, end;
};

/// A send, from the end of the action that made the data to its arrival.
struct TransferSpan {
  std::int32_t from_rank = 0, to_rank = 0;
  StageId from_stage, to_stage;
  MicrobatchId microbatch;
  bool backward = false;
  Seconds ready, start, end;  ///< ready: data made; start: link free; end: arrived
};

struct MemoryPoint {
  Seconds time;
  Bytes used;
};

struct RankResult {
  Seconds comp_busy;           ///< tasks of the pipeline on comp
  Seconds comm_busy;           ///< expert all-to-all
  Seconds exposed_comm;        ///< comm running while this rank's comp is idle
  Seconds warmup_idle;         ///< no action running, before the first backward starts
  Seconds cooldown_idle;       ///< no action running, after the last forward ends, up to the pipeline's end
  Seconds imbalance_idle;      ///< no action running, in between
  Seconds pipeline_end;        ///< end of its last action
  Seconds step_end;            ///< after reduction, optimizer and what shows of the all-gather
  std::int32_t peak_live = 0;  ///< chunk activations alive at once; an empty stage has none
  Bytes peak_activation;       ///< activations, weight stashes, and what comes and goes inside actions
  Bytes peak_memory;           ///< with RankMemory::total()
  std::vector<MemoryPoint> memory;  ///< total over time; only with slices
};

struct SimulateResult {
  Seconds iteration;    ///< from the first task to the last rank's step_end
  Seconds pipeline;     ///< from the first task to the last action's end
  Seconds lower_bound;  ///< see lower_bound()
  std::vector<RankResult> ranks;
  std::vector<Slice> slices;
  std::vector<ActionSpan> actions;
  std::vector<TransferSpan> transfers;
};

/// The plan must have passed check_plan (read_plan and the planner see to it); a deadlock is an infeasible
/// error. Thread-safe; equal plans give equal results. Linear in the actions, and in the tasks with slices.
[[nodiscard]] Result<SimulateResult> simulate(const ExecutionPlan& plan, const SimulateOptions& options = {});

/// max over ranks of (earliest start of its first task + larger of its total comp and total comm time +
/// shortest tail after its last task, reduction and optimizer included). No order of this partition's actions
/// is faster: a full backward sends its gradient when its weight gradients are done too, so they are part of
/// the tail; a stage whose weight gradients are actions of their own may end with one, and then only its
/// reduction follows. The part of the all-gather that can hide counts as hidden.
[[nodiscard]] Seconds lower_bound(const ExecutionPlan& plan);

}  // namespace tessera::train
