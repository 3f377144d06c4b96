// One job's partition problem, set up as the planner does, and solvers called with a clock around them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/train/partition/model_costs.h"
#include "tessera/train/partition/solve_partition.h"
#include "train/planner/choose_partition.h"

namespace tessera::bench {

struct InstanceSpec {
  std::string name;
  std::string file;  ///< below bench/
  std::vector<train::JobOverride> overrides;
  std::int64_t variables = 0;  ///< the window grows until the programme has as many; 0: it stays
  std::int32_t window = 2;     ///< blocks to each side, to begin with
};
/// The four sizes of the Tessera paper's solver table (M and L, PP 8, 2 and 4 chunks per rank).
[[nodiscard]] std::vector<InstanceSpec> paper_specs();
/// The eight models of BENCH=plan.
[[nodiscard]] std::vector<InstanceSpec> model_specs();

struct Simulated {
  Seconds iteration;
  bool fits = true;  ///< every rank stays within the memory a plan may use
};

class Instance {
 public:
  static Result<std::unique_ptr<Instance>> open(const InstanceSpec& spec);
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  std::string name;
  train::Job job;
  train::PricedJob priced;
  std::unique_ptr<train::PlanFrame> frame;
  std::unique_ptr<train::ModelStageCosts> costs;
  train::PartitionProblem problem;  ///< places: around the serial-balanced partition
  std::vector<std::vector<std::int32_t>> legal;
  train::Partition serial;
  std::int32_t window = 2, widened = 0;

  /// With costs of its own, so that instances may be solved beside each other; `threads` for pairs.
  [[nodiscard]] std::unique_ptr<train::ModelStageCosts> own_costs(unsigned threads) const;
  /// The sweep with recentring, as the planner calls it.
  [[nodiscard]] train::WindowResult sweep(std::int32_t keep);
  /// The same problem around another center.
  [[nodiscard]] train::PartitionProblem around(const train::Partition& center) const;
  /// Slowest pair of any partition, wherever its boundaries lie.
  [[nodiscard]] Seconds slowest(const train::Partition& partition);
  /// May every boundary lie where it does?
  [[nodiscard]] bool places(const train::Partition& partition) const;
  /// On the simulator, pairs scheduled as in a plan.
  [[nodiscard]] Result<Simulated> simulated(const train::Partition& partition);

 private:
  Instance() = default;
};

struct Rival {
  std::string name;
  train::Partition partition;
};
/// Even, parameter-, FLOP- and serial-balanced, and Alpa's.
[[nodiscard]] Result<std::vector<Rival>> rivals(const Instance& instance);

[[nodiscard]] double seconds_since(std::chrono::steady_clock::time_point start);

/// Every partition of a result satisfies the problem and has the value it claims, the first is not below the
/// bound, and none exceeds the reach. A failure ends the benchmark.
void verify_result(const train::PartitionProblem& problem, train::StageCosts& costs,
                   const train::PartitionResult& result, const std::string& name);

}  // namespace tessera::bench
