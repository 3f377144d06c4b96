// The published training runs, and what the software did in them.
#pragma once

#include <string>
#include <vector>

#include "tessera/core/cluster/layout.h"
#include "tessera/core/cost/software_profile.h"
#include "tessera/core/model/model_spec.h"
#include "tessera/train/planner/job.h"

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

/// The model of a run, from the files in `directory` (data/models).
[[nodiscard]] Result<ModelSpec> read_model(const std::string& directory, const Run& run);

/// The job that plans the run: the published layout, the framework's own schedule (no overlapped pairs of
/// ours) and partition, documented constants.
[[nodiscard]] Result<train::Job> job_of(const Run& run, const ModelSpec& model);

}  // namespace tessera::bench
