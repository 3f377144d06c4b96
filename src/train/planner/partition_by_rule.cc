#include "partition_by_rule.h"

#include "tessera/train/partition/rivals.h"

namespace tessera::train {

Result<Partition> partition_by_rule(const Job& job, const PricedJob& priced, PartitionRule rule) {
  const std::int64_t stages = distinct_stages(job);
  if (rule != PartitionRule::given && !job.stage_durations.empty()) return even_partition(job.model, stages);
  switch (rule) {
    case PartitionRule::given:
      return *job.partition;
    case PartitionRule::even:
      return even_partition(job.model, stages);
    case PartitionRule::parameter_balanced:
      return parameter_balanced_partition(job.model, stages);
    case PartitionRule::flop_balanced:
      return flop_balanced_partition(job.model, stages, job.layout.sequence);
    case PartitionRule::alpa:
      return alpa_partition(job.model, serial_times(job.model, priced.cost), stages, job.layout.microbatches,
                            stage_speeds(job));
    case PartitionRule::overlap_aware:
    case PartitionRule::serial_balanced:
      return serial_balanced_partition(job.model, serial_times(job.model, priced.cost), stages,
                                       stage_speeds(job));
  }
  return bad_input("unknown partition rule");
}

}  // namespace tessera::train
