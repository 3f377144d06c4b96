#include "tessera/train/schedule/megatron_flags.h"

#include <fmt/format.h>

namespace tessera::train {

Result<std::string> megatron_schedule_flags(Template schedule, const TemplateSizes& sizes) {
  const bool overlap = schedule == Template::interleaved_overlap;
  if (schedule != Template::one_f_one_b && schedule != Template::interleaved && !overlap)
    return bad_input(fmt::format("Megatron-Core has no schedule like {}", name(schedule)),
                     "It runs 1f1b, interleaved and interleaved-overlap.");
  if (overlap && sizes.pp > 1 && sizes.vp == 1)
    return bad_input("Megatron-Core overlaps forward and backward only with virtual stages, but vp = 1",
                     "Give at least 2 virtual stages a rank.");
  TESSERA_CHECK(make_schedule(schedule, sizes));
  std::string out = fmt::format("--pipeline-model-parallel-size {}\n", sizes.pp);
  if (sizes.vp > 1)
    out += fmt::format(
        "--num-virtual-stages-per-pipeline-rank {}\n--microbatch-group-size-per-virtual-pipeline-stage {}\n",
        sizes.vp, sizes.group == 0 ? sizes.pp : sizes.group);
  out += fmt::format("--micro-batch-size 1\n--global-batch-size {}\n", sizes.microbatches);
  if (overlap) out += "--overlap-moe-expert-parallel-comm\n";
  return out;
}

}  // namespace tessera::train
