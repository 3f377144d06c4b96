// From a block of a model to its tasks' durations and bytes on one rank, under a layout and a software
// profile.
//
// Every duration is GEMM or core time (measured table, else roofline) plus elementwise traffic, combined with
// host time; TP and CP collectives sit inside the task they block. MoE tasks and all-to-alls are priced at
// the expected largest of the EP ranks under balanced routing. docs/cost-model.md has each formula and its
// source.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/core/base/units.h"
#include "tessera/core/cluster/cluster.h"
#include "tessera/core/cluster/layout.h"
#include "tessera/core/cost/estimate.h"
#include "tessera/core/cost/kernel_table.h"
#include "tessera/core/cost/software_profile.h"
#include "tessera/core/cost/task.h"
#include "tessera/core/model/model_spec.h"

namespace tessera {

struct TaskCost {
  bool exists = false;  ///< a layer has only the tasks it needs
  Estimate duration;
  /// Share of the time bound by SMs; what is neither this nor the host's is bound by memory. Decides the loss
  /// under interference.
  double compute_share = 1.0;
  Bytes communicated;  ///< of a comm task, per rank
  /// Share of the time the GPU waits for the host (all of provenance `constant`): nothing on the GPU slows
  /// it.
  [[nodiscard]] double host_share() const noexcept;
};

/// What one block keeps alive, per rank.
struct BlockMemory {
  std::int64_t dense_parameters = 0;      ///< on this rank, reduced over dp·cp
  std::int64_t expert_parameters = 0;     ///< on this rank, reduced over expert dp
  std::int64_t embedding_parameters = 0;  ///< of the dense ones, a copy of the embedding matrix: also a tied
                                          ///< head's and an MTP block's. A rank holds one for all its blocks
  std::int64_t head_parameters = 0;       ///< the same of an untied head's matrix
  Bytes weights;                          ///< and their low-precision copies
  Bytes gradients;
  Bytes optimizer;         ///< this rank's shard
  Bytes activation;        ///< F → B, per microbatch; of a head with its logits
  Bytes logits;            ///< of the activation: from F_HEAD to B_HEAD, a third of it to W_HEAD
  Bytes weight_stash;      ///< B → W, per microbatch: inputs and output gradients W still needs
  Bytes workspace;         ///< while the block runs: dispatch buffers, and what recompute brings back
  Bytes dispatch_buffers;  ///< of the workspace, at the fullest rank
  Bytes offloaded;         ///< on the host from F to B, per microbatch; not in `activation`
};

struct BlockCost {
  /// "GE", "AD", "embedding", "head", "mtp AE"; distinct layers of one symbol count on: "AE.2". Equal names
  /// mean equal costs.
  std::string name;
  std::array<std::array<TaskCost, kTaskKinds>, kPasses> tasks;
  /// Layers are computed again as a whole (layout.recompute.full): R_MLP reads what R_ATTN makes.
  bool recomputed_whole = false;
  BlockMemory memory;
  /// Of `memory.offloaded` over the host link, once after F and once before B. The link copies both ways at
  /// once, beside compute and communication; a chunk lasts at least as long as its copies.
  Seconds copy_time;

  [[nodiscard]] TaskCost& task(Pass pass, TaskKind kind) noexcept {
    return tasks[static_cast<std::size_t>(pass)][static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] const TaskCost& task(Pass pass, TaskKind kind) const noexcept {
    return tasks[static_cast<std::size_t>(pass)][static_cast<std::size_t>(kind)];
  }
  /// Sum over a pass's tasks, nothing overlapped; of the backward with what is computed again for it.
  [[nodiscard]] Seconds serial(Pass pass) const noexcept;
};

struct CostInput {
  const ModelSpec* model = nullptr;
  const Cluster* cluster = nullptr;
  const Layout* layout = nullptr;
  SoftwareProfile software;
  CostConstants constants;
  const KernelTable* table = nullptr;  ///< null = roofline only
};

/// Costs of a whole model: one entry per distinct block kind, and which one each block has.
struct ModelCost {
  std::vector<BlockCost> kinds;
  std::vector<std::int32_t> kind_of_block;  ///< per ModelSpec block, index into kinds
  [[nodiscard]] const BlockCost& of(BlockId block) const {
    return kinds[static_cast<std::size_t>(kind_of_block[block.index()])];
  }
};

/// The layout must have passed check_layout. Errors: a device without the dtype, nothing else.
[[nodiscard]] Result<ModelCost> price_model(const CostInput& input);

/// Step costs outside the pipeline, for a rank holding these parameters.
struct StepCost {
  Estimate reduce_scatter;  ///< gradients, dense over dp·cp and experts over expert dp
  Estimate all_gather;      ///< weights, when the optimizer is distributed; otherwise 0
  Estimate optimizer;
};
[[nodiscard]] StepCost price_step(const CostInput& input, std::int64_t dense_parameters,
                                  std::int64_t expert_parameters);

/// What a rank holds whatever microbatches it works on.
struct StaticMemory {
  std::int64_t dense_parameters = 0;
  std::int64_t expert_parameters = 0;
  Bytes weights, gradients, optimizer;
  Bytes workspace;
  Bytes pair_buffers;  ///< of the workspace, the second block's; needed while a pair's forward communicates
};
/// Of a rank with these blocks, all its stages together. Copies of one vocabulary matrix are held once.
/// Blocks run one after another, so the rank needs the largest dispatch buffers and room for the most that
/// recompute brings back in one block; not of the same block, for a block's recompute may start while the
/// last communication of the one before it still runs. With `pairs` a forward runs beside a backward, and the
/// second block has dispatch buffers of its own.
[[nodiscard]] StaticMemory price_static_memory(const CostInput& input,
                                               std::span<const BlockMemory* const> blocks, bool pairs);

/// One activation sent between neighbouring stages.
struct TransferCost {
  Seconds latency;
  Estimate duration;  ///< of the bytes on the link, without latency
  Bytes bytes;
};
[[nodiscard]] TransferCost price_transfer(const CostInput& input);

/// How concurrent communication slows compute down, and the SMs it takes.
struct Interference {
  double compute_bound_rate =
      1.0;                         ///< speed of SM-bound compute while a comm task runs: (SMs − comm SMs)/SMs
  double memory_bound_rate = 1.0;  ///< speed of memory-bound compute meanwhile
  bool operator==(const Interference&) const = default;
};
[[nodiscard]] Interference interference(const CostInput& input) noexcept;

/// The `given:` section of a job's cost: milliseconds by hand per block kind and task, such as
/// `{GE: {F_ATTN: 1.2}, head: {F_HEAD: 3}}`, replacing those of price_model; provenance `given`. A kind the
/// model or a task the kind does not have is refused. See docs/job-file.md.
[[nodiscard]] Status apply_given(Cursor section, ModelCost& cost);

}  // namespace tessera
