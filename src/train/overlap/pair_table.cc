#include "tessera/train/overlap/pair_table.h"

#include <algorithm>
#include <utility>

#include "tessera/core/base/parallel.h"

namespace tessera::train {
namespace {

std::vector<ChunkBlock> blocks_of(std::span<const BlockCost> kinds, std::span<const std::int32_t> chunk) {
  std::vector<ChunkBlock> blocks;
  blocks.reserve(chunk.size());
  for (std::size_t i = 0; i < chunk.size(); ++i)
    blocks.push_back({&kinds[static_cast<std::size_t>(chunk[i])], static_cast<std::int32_t>(i)});
  return blocks;
}

}  // namespace

TaskGraph pair_graph(std::span<const BlockCost> kinds, const PairKey& key) {
  return pair_graph(forward_chunk(blocks_of(kinds, key.forward)),
                    backward_chunk(blocks_of(kinds, key.backward)));
}

PairTable::PairTable(std::span<const BlockCost> kinds, PairOptions options)
    : kinds_(kinds), options_(options) {}

void PairTable::solve(std::span<const PairKey> keys, unsigned threads) {
  std::vector<std::map<PairKey, PairResult>::iterator> open;
  for (const PairKey& key : keys)
    if (const auto [place, added] = results_.try_emplace(key); added) open.push_back(place);
  parallel_for(open.size(), threads, [&](std::size_t i) {
    open[i]->second = schedule_pair(pair_graph(kinds_, open[i]->first), options_);
  });
}

const PairResult& PairTable::at(const PairKey& key) const {
  return results_.at(key);
}

}  // namespace tessera::train
