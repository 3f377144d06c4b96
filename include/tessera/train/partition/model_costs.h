// What the stages of a priced model cost: pairs by the exact scheduler under interference, each signature
// once; memory by the cost room's accounting.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "tessera/core/cost/block_cost.h"
#include "tessera/train/overlap/pair_table.h"
#include "tessera/train/partition/partition_problem.h"

namespace tessera::train {

struct ModelCostOptions {
  Interference interference;
  /// Per stage; empty = all 1. A rank at 0.5 computes half as fast.
  std::vector<double> stage_speed;
  unsigned threads = 0;  ///< for pairs; 0 = as many as the machine has
  /// A table over the same kinds and interference, used for stages of speed 1; null = a table of its own.
  PairTable* nominal = nullptr;
};

/// Not thread-safe; solves pairs on several threads itself.
class ModelStageCosts : public StageCosts {
 public:
  /// `input` and `cost` must outlive it.
  ModelStageCosts(const CostInput& input, const ModelCost& cost, ModelCostOptions options);

  /// Loads, chains and copies to and from the host: what no interleaving can be shorter than.
  [[nodiscard]] Seconds bound(const PairQuery& query) const override;
  /// Makespans under interference of the best order known, every W included; not shorter than the copies.
  [[nodiscard]] std::vector<Seconds> times(std::span<const PairQuery> queries) override;
  [[nodiscard]] Seconds alone(StageId stage, BlockRange blocks) const override;
  /// Weights, gradients and optimizer state. Workspace is shared by a rank's blocks: see workspace().
  [[nodiscard]] Bytes held(StageId stage, BlockRange blocks) const override;
  [[nodiscard]] Bytes activation(StageId stage, BlockRange blocks) const override;

  /// The most that any of these blocks needs while it runs.
  [[nodiscard]] Bytes workspace(BlockRange blocks, bool pairs) const;
  /// Of the pair in a PairTable: the kinds of its blocks.
  [[nodiscard]] PairKey key(const PairQuery& query) const;
  /// Distinct signatures scheduled so far.
  [[nodiscard]] std::size_t signatures() const noexcept;

 private:
  // Sums over the blocks before each, at one speed.
  struct Sums {
    std::vector<BlockCost> kinds;
    std::vector<Seconds> forward_comp, forward_comm, backward_comp, backward_comm;  // backward with W
    std::vector<Seconds> forward_chain, backward_chain;                             // without leaves
    std::vector<Seconds> forward, backward;
  };
  [[nodiscard]] std::size_t speed_of(StageId stage) const noexcept;
  [[nodiscard]] Seconds copies(const PairQuery& query) const noexcept;

  const CostInput& input_;
  const ModelCost& cost_;
  ModelCostOptions options_;
  std::vector<double> speeds_;  // distinct
  std::vector<Sums> sums_;      // per speed
  std::deque<PairTable> own_;
  std::vector<PairTable*> tables_;  // per speed
  std::vector<Bytes> activation_;   // before each block
  std::vector<Seconds> copy_;       // the same, of one microbatch's offload, one way
};

}  // namespace tessera::train
