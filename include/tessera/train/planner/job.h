// The job file: a model, a cluster, a layout, a schedule, what software runs, where costs come from.
//
//   model: ../data/models/Qwen3-Next-80B-A3B.json     config.json or native YAML, beside the job file
//   cluster:  {preset: H100, gpus: 128}
//   layout:   {pp: 8, vp: 2, ep: 16, microbatches: 64, sequence: 4096}
//   schedule: {template: interleaved-overlap}         also group, shadows, partition, megatron_layout, pairs
//   software: {cuda_graphs: none}
//   cost:     {tables: true, constants: {...}, given: {...}, stages: [...], transfer: 0.01, profile: my.db}
//
// docs/job-file.md lists every key. An unknown key is refused.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/core/base/document.h"
#include "tessera/core/base/result.h"
#include "tessera/core/cluster/cluster.h"
#include "tessera/core/cluster/layout.h"
#include "tessera/core/cost/block_cost.h"
#include "tessera/core/cost/software_profile.h"
#include "tessera/core/model/model_spec.h"
#include "tessera/train/partition/partition_problem.h"
#include "tessera/train/schedule/partition.h"
#include "tessera/train/schedule/schedule_template.h"

namespace tessera::train {

enum class PartitionRule : std::uint8_t {
  overlap_aware,    ///< "overlap-aware": the default, see partition/solve_partition.h
  serial_balanced,  ///< "serial-balanced"
  even,             ///< "even"
  parameter_balanced,
  flop_balanced,
  alpa,   ///< by these names: what others do, see partition/rivals.h
  given,  ///< layers per stage, a Megatron layout string, or Megatron's counting options
};

/// Durations of a whole stage by hand, instead of those of its layers, per microbatch.
struct StageDurations {
  Seconds forward;
  Seconds backward;  ///< input gradient
  Seconds weight;    ///< weight gradient
};

/// What becomes of microbatches that the template cannot take as they are: those of interleaved templates
/// that leave a last group smaller than PP, an odd number for dualpipe.
enum class ShadowRule : std::uint8_t {
  automatic,  ///< "auto": the fastest that fits of larger groups and of shadows, see PlanReport::fillings; a
              ///< group that is given, or fewer microbatches than the template's least, stay an error
  none,       ///< "none": the smallest legal group, else an error
  first,      ///< "first", "last", "spread": shadows there, with the group given, else PP
  last,
  spread,
};

/// How a template's order is filled with the job's microbatches.
struct Filling {
  std::int32_t group = 0;             ///< N
  std::int32_t microbatches = 0;      ///< shadows included
  std::vector<std::int32_t> shadows;  ///< their numbers, see make_padded_schedule
  bool operator==(const Filling&) const = default;
};

struct HandWrittenPair {
  std::int32_t forward = 0, backward = 0;  ///< stages
  std::vector<std::string> sequence;
  int line = 0;
};

struct Job {
  std::string file;
  std::string model_file;
  ModelSpec model;
  Cluster cluster;
  Layout layout;
  bool memory_open = false;  ///< recompute and offload are the planner's to decide, see leaves_memory_open
  Template schedule = Template::interleaved_overlap;
  std::int32_t group = 0;  ///< 0 = the template's default
  ShadowRule shadows = ShadowRule::automatic;
  std::optional<Filling> filling;  ///< what make_plan decided; a job file has none
  PartitionRule partition_rule = PartitionRule::overlap_aware;
  PlacementRules placement;            ///< where overlap-aware may put boundaries
  std::optional<Partition> partition;  ///< when the rule gives one; of one pipeline
  std::vector<HandWrittenPair> pairs;
  SoftwareProfile software;
  CostConstants constants;
  bool tables = true;                           ///< false: price by roofline alone
  std::vector<StageDurations> stage_durations;  ///< empty, or one per stage of one pipeline
  std::optional<Seconds>
      transfer_time;         ///< from stage to stage by hand, instead of the fabric's latency and bandwidth
  std::string profile_file;  ///< profile database with measured pairs; empty = none
  std::optional<Document> document;  ///< kept so that `cost.given` can be applied after pricing
};

/// Stages that hold different blocks: pp · vp, but pp for dualpipe, which has every stage on two ranks.
[[nodiscard]] std::int64_t distinct_stages(const Job& job) noexcept;

/// Values given on the command line, each over the file's: "layout.pp" = "4".
struct JobOverride {
  std::string key;
  std::string value;
};

[[nodiscard]] Result<Job> read_job(const Document& document, const std::string& directory);
[[nodiscard]] Result<Job> read_job_file(const std::string& path,
                                        const std::vector<JobOverride>& overrides = {});

}  // namespace tessera::train
