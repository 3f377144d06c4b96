// The keys of the profile database: when two measurements are the same one.
//
// Four strings of `name=value` pairs, readable, the same on every machine and in every run:
//
//   mesh      gpu=H100 bf16=989e12 hbm=3350e9 sms=132 domain=8 up=450e9 out=50e9 tp=1 cp=1 ep=16 etp=1
//             nodes=2 speed=1
//             the GPU (FLOP/s, bytes/s), the fabric (GPUs of a scale-up domain, bytes/s per GPU inside and
//             between domains), the parallel sizes inside a stage, the scale-up domains that a stage's groups
//             span, the speed of the rank. Not DP and not PP: equal pairs are measured once, whatever rank,
//             replica or plan they occur in.
//   pair      F[3*gdn(…)+moe(…), …] B[…] hidden=2048 sequences=1 sequence=4096 dtype=bf16
//             the blocks of the forward and of the backward chunk in model order, runs counted, each with
//             every width that its time depends on; +recompute(norm,…) and +offload(0.5) where a layer has
//             them.
//   schedule  16 hexadecimal digits: FNV-1a of the launch order, task names separated by blanks, layers
//             numbered from 0 in each chunk as in pair_graph(kinds, key).
//   software  graphs=none dispatcher=deduplicated ep_sms=20 fused_mlp=0 …
//             what the software profile says, as far as a pair's time depends on it.
//
// The cost model's constants are in none of them: they do not change what a device measures.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/core/cost/block_cost.h"
#include "tessera/core/cost/profile_database.h"
#include "tessera/train/overlap/pair_table.h"
#include "tessera/train/planner/job.h"

namespace tessera::train {

/// Of one job. Thread-safe once made.
class ProfileKeys {
 public:
  /// `cost` says which blocks are of one kind; neither needs to outlive this.
  ProfileKeys(const Job& job, const ModelCost& cost);

  /// Of a rank of this speed, 1 = nominal.
  [[nodiscard]] std::string mesh(double rank_speed) const;
  [[nodiscard]] std::string pair(const PairKey& key) const;
  [[nodiscard]] const std::string& software() const noexcept { return software_; }

 private:
  std::vector<std::string> kinds_;
  std::string mesh_, shapes_, software_;
};

/// Of task names in launch order, layers numbered from 0 in each chunk.
[[nodiscard]] std::string schedule_hash(std::span<const std::string> launch_order);

}  // namespace tessera::train
