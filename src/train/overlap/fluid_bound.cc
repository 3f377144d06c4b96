#include "fluid_bound.h"

#include <algorithm>

namespace tessera::train {
namespace {

// Least times at which any schedule can stand at a point.
struct Heads {
  Ticks comp = 0, comm = 0, chain = 0, work = 0;
};

std::vector<Heads> heads_of(const ChainPair& pair, std::size_t side) {
  std::vector<Heads> heads(1);
  for (const ChainOp& op : pair.chain[side]) {
    Heads next = heads.back();
    (op.comm ? next.comm : next.comp) += op.duration;
    next.chain += op.duration;
    next.work += (op.comm ? 0 : op.duration) + pair.sum(op.released);
    heads.push_back(next);
  }
  return heads;
}

// The offsets before an operation, from those after it.
Times before(const Times& after, const ChainOp& op, std::size_t side, Ticks released) noexcept {
  Times way = after;
  const std::size_t ready = kReady + side;
  if (op.comm) {
    way[kComm] = way[ready] = std::min(after[kComm], after[ready]) - op.duration;
  } else {
    way[kWork] = after[kWork] - released - op.duration;
    way[kComp] = way[ready] = std::min({after[kComp], after[ready], after[kWork] - released}) - op.duration;
  }
  return way;
}

bool covers(const Times& a, const Times& b) noexcept {
  for (std::size_t k = 0; k < a.size(); ++k)
    if (a[k] < b[k]) return false;
  return true;
}

// Keeps the Pareto-maximal ways.
void add(std::vector<Times>& ways, const Times& way) {
  for (const Times& kept : ways)
    if (covers(kept, way)) return;
  std::erase_if(ways, [&](const Times& kept) { return covers(way, kept); });
  ways.push_back(way);
}

// The two ways closest to each other become one that allows whatever either did.
void merge_closest(std::vector<Times>& ways) {
  std::size_t first = 0, second = 1;
  Ticks least = FluidBound::kNever;
  for (std::size_t a = 0; a < ways.size(); ++a)
    for (std::size_t b = a + 1; b < ways.size(); ++b) {
      Ticks distance = 0;
      for (std::size_t k = 0; k < ways[a].size(); ++k)
        distance += std::min(std::abs(ways[a][k] - ways[b][k]), FluidBound::kNever / 8);
      if (distance < least) least = distance, first = a, second = b;
    }
  Times both = ways[first];
  for (std::size_t k = 0; k < both.size(); ++k) both[k] = std::max(both[k], ways[second][k]);
  ways.erase(ways.begin() + static_cast<std::ptrdiff_t>(second));
  ways.erase(ways.begin() + static_cast<std::ptrdiff_t>(first));
  add(ways, both);
}

}  // namespace

void FluidBound::build(const ChainPair& pair, Ticks horizon, std::size_t keep) {
  const auto& [forward, backward] = pair.chain;
  columns_ = backward.size() + 1;
  ranges_.assign((forward.size() + 1) * columns_, {});
  ways_.clear();
  const std::vector<Heads> f = heads_of(pair, 0), b = heads_of(pair, 1);
  const Ticks at_start = pair.sum(pair.at_start);
  std::vector<Ticks> released[2];
  for (std::size_t side = 0; side < 2; ++side)
    for (const ChainOp& op : pair.chain[side]) released[side].push_back(pair.sum(op.released));

  for (std::size_t i = forward.size() + 1; i-- > 0;) {
    for (std::size_t j = backward.size() + 1; j-- > 0;) {
      const Times least{f[i].comp + b[j].comp, f[i].comm + b[j].comm, f[i].chain, b[j].chain,
                        f[i].work + b[j].work + at_start};
      cell_ways_.clear();
      const auto keep_if_reached = [&](const Times& way) {
        for (std::size_t k = 0; k < way.size(); ++k)
          if (least[k] - way[k] >= horizon) return;
        add(cell_ways_, way);
      };
      if (i == forward.size() && j == backward.size()) {
        keep_if_reached({0, 0, kNever, kNever, pair.credit});
      } else {
        if (i < forward.size())
          for (const Times& way : ways(i + 1, j)) keep_if_reached(before(way, forward[i], 0, released[0][i]));
        if (j < backward.size())
          for (const Times& way : ways(i, j + 1))
            keep_if_reached(before(way, backward[j], 1, released[1][j]));
      }
      while (cell_ways_.size() > keep) merge_closest(cell_ways_);
      ranges_[cell(i, j)] = {ways_.size(), ways_.size() + cell_ways_.size()};
      ways_.insert(ways_.end(), cell_ways_.begin(), cell_ways_.end());
    }
  }
}

}  // namespace tessera::train
