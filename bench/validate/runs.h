// The published training runs, and what the software did in them.
#pragma once

#include <string>
#include <vector>

#include "tessera/core/cluster/layout.h"
#include "tessera/core/cost/software_profile.h"

namespace tessera::bench {

struct Run {
  int line = 0;
  std::string model;   ///< as published
  std::string system;  ///< "GB300", a cluster preset
  double release = 0;  ///< 26.06
  std::int64_t gpus = 0;
  std::int64_t global_batch = 0;
  Layout layout;
  double tokens_per_second_per_gpu = 0;
  SoftwareProfile software;  ///< by the recipes
};

/// Reads rows and recipes and applies these to those. The directory is data/training.
[[nodiscard]] Result<std::vector<Run>> read_runs(const std::string& directory);

}  // namespace tessera::bench
