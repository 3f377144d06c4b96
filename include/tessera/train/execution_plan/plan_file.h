// plan.yaml: the ExecutionPlan as text.
//
//   tessera_plan: 1              version; a reader refuses a newer one
//   model, device, fingerprints  names, and four hashes
//   layout, schedule, group
//   blocks                       "embedding", "GE L0", …: kind and layer of each block
//   costs                        per block kind: durations in seconds, bytes, provenance
//   partition                    [begin, end) per stage
//   actions                      one line per rank: "0F0 0F1 (2F3;0B0)OVERLAP_F_B …"
//   pairs                        forward, backward, sequence, makespan, bound
//   interference, transfer, step, memory
//   predicted
//
// Writing and reading give back an equal plan, to the last bit of every double. A damaged, foreign or
// hand-broken file is refused with line and key.
#pragma once

#include <string>

#include "tessera/core/base/document.h"
#include "tessera/core/base/result.h"
#include "tessera/train/execution_plan/execution_plan.h"

namespace tessera::train {

[[nodiscard]] std::string write_plan(const ExecutionPlan& plan);
/// Reads the file's shape and ranges only; what it says may still fail check_plan.
[[nodiscard]] Result<ExecutionPlan> parse_plan(Cursor root);
/// Reads and then holds the plan to check_plan, whose failure is then bad input of this file.
[[nodiscard]] Result<ExecutionPlan> read_plan(Cursor root);
[[nodiscard]] Result<ExecutionPlan> read_plan_file(const std::string& path);

}  // namespace tessera::train
