// Megatron-LM's command line for a schedule without a plan.
#pragma once

#include <string>

#include "tessera/core/base/result.h"
#include "tessera/train/schedule/schedule_template.h"

namespace tessera::train {

/// The flags that make Megatron-Core 0.16.1 or 0.19.2 run this template at these sizes, one a line, for one
/// data-parallel copy with one sequence a microbatch. Refused: templates Megatron-Core does not have, and
/// sizes that make_schedule refuses.
[[nodiscard]] Result<std::string> megatron_schedule_flags(Template schedule, const TemplateSizes& sizes);

}  // namespace tessera::train
