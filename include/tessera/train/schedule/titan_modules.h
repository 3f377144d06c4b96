// torchtitan's list of modules per virtual stage (parallelism.module_fqns_per_model_part), read and written:
//
//   [["tok_embeddings", "layers.0"], ["layers.1", "norm", "lm_head"]]
//
// One list a stage, in model order. Where a stage lives follows from the schedule that torchtitan runs: stage
// k on rank k mod pp, or in a V for ZBVZeroBubble and DualPipeV.
#pragma once

#include <string>
#include <string_view>

#include "tessera/core/base/result.h"
#include "tessera/core/model/model_spec.h"
#include "tessera/train/schedule/partition.h"

namespace tessera::train {

/// Reads a JSON list (also what a TOML array looks like). The head is "lm_head" or, in older versions,
/// "output", with "norm" before it in the same stage. Errors name `file`, line and the module.
[[nodiscard]] Result<Partition> read_titan_modules(std::string_view text, const ModelSpec& model,
                                                   std::string_view file = "module list");

/// On one line. Refused: MTP blocks, which torchtitan has no module for.
[[nodiscard]] Result<std::string> write_titan_modules(const ModelSpec& model, const Partition& partition);

}  // namespace tessera::train
