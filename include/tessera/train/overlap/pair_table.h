// Schedules of many pairs, each solved once: pairs of chunks made of the same blocks share one result.
//
//   PairTable table(model_cost.kinds, {.method = PairMethod::exact});
//   table.solve(keys, 8);                   // in parallel; the same results for any number of threads
//   const PairResult& r = table.at(keys[0]);
//
// Task ids of a result are those of the pair_graph of any two chunks with that signature.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tessera/core/cost/block_cost.h"
#include "tessera/train/overlap/pair_schedule.h"

namespace tessera::train {

/// Chunk signatures: the cost kinds of a chunk's blocks, in model order.
struct PairKey {
  std::vector<std::int32_t> forward;
  std::vector<std::int32_t> backward;
  auto operator<=>(const PairKey&) const = default;
};

/// The graph of a pair; layers are numbered from 0 in each chunk.
[[nodiscard]] TaskGraph pair_graph(std::span<const BlockCost> kinds, const PairKey& key);

/// Not thread-safe itself; at() may be called from many threads while none solves.
class PairTable {
 public:
  /// `kinds` must outlive the table.
  PairTable(std::span<const BlockCost> kinds, PairOptions options);

  /// Solves what is not known yet, on up to `threads` threads (0 = as many as the machine has).
  void solve(std::span<const PairKey> keys, unsigned threads = 0);
  /// The pair must have been solved.
  [[nodiscard]] const PairResult& at(const PairKey& key) const;
  [[nodiscard]] std::size_t size() const noexcept { return results_.size(); }

 private:
  std::span<const BlockCost> kinds_;
  PairOptions options_;
  std::map<PairKey, PairResult> results_;
};

}  // namespace tessera::train
