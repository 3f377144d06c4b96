// A plan in the formats of other frameworks.
#pragma once

#include <string>
#include <string_view>

#include "tessera/core/base/result.h"
#include "tessera/train/execution_plan/execution_plan.h"
#include "tessera/train/schedule/megatron_layout.h"
#include "tessera/train/schedule/torch_csv.h"

namespace tessera::train {

/// Refuses a plan with shadow microbatches for a target whose runtime knows none, with the legal group
/// nearest to the plan's, which needs none. `target` begins the sentence: "Megatron's layout string".
[[nodiscard]] Status check_no_shadows(const ExecutionPlan& plan, std::string_view target);

/// Megatron's pipeline layout string of the plan's partition. Refused where the target cannot hold it: stage
/// k elsewhere than on rank k mod pp, shadow microbatches.
[[nodiscard]] Result<std::string> megatron_layout(const ExecutionPlan& plan,
                                                  const MegatronTarget& target = {});

/// The plan's actions as a torch.distributed.pipelining CSV; with sends, receives and sharding, or without.
/// Refused for two pipelines side by side.
[[nodiscard]] Result<std::string> torch_csv(const ExecutionPlan& plan, CsvForm form);

/// The [parallelism] and [training] settings of a torchtitan 0.2 job file: degrees, batch, modules per stage,
/// and a schedule that places the stages as the plan does and reads `csv_path`. torchtitan takes the order
/// from that file, but the placement from the schedule's name. Refused: MTP blocks, placements other than a
/// loop or a V.
[[nodiscard]] Result<std::string> torchtitan_settings(const ExecutionPlan& plan, const std::string& csv_path);

}  // namespace tessera::train
