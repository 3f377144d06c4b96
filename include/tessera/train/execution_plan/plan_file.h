// plan.yaml: the ExecutionPlan as text.
//
//   tessera_plan: 1      version; a reader refuses a newer one
//   model, device        names
//   fingerprints         {model, cluster, layout, costs}: 16 hexadecimal digits each
//   layout               parallel sizes, shapes, dtype, recompute switches; where kinds of layers differ,
//                        layer_memory: {kind: {recompute, offload}}
//   schedule             {template, group}
//   blocks               a list of {kind, layer, cost}, cost an index into costs
//   costs                a list of {name, tasks, memory}, with {bytes, seconds} of its offload if any; a
//                        task is {seconds, error, compute_share, bytes, sources: {name: [seconds, error]}}
//   partition            a list of [begin, end) block numbers, one per stage
//   actions              {microbatches, rank_of_stage, ranks}; with pipelines: 2, when the stages are two
//                        pipelines side by side, see action.h; with shadows: [0, 9], the numbers of the
//                        shadow microbatches (pipeline · microbatches + microbatch), if there are any
//                        a rank is one line "0F0 0F1 (2F3;0B0)OVERLAP_F_B …"
//   pairs                a list of {forward, backward, makespan, nominal, bound, sequence}, and measured:
//                        [seconds, relative error] where the pair was measured
//   interference, transfer, rank_speed, step, memory {limit, ranks}, flops_per_token, peak_flops
//   predicted            iteration, error, tokens/s/GPU, MFU, lower bound, peak memory
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
