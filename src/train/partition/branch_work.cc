#include "branch_work.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tessera::train {
namespace {

constexpr double kRounding = 1e-12;

class Branch {
 public:
  Branch(const Labelling& labelling, double limit, std::size_t keep, std::int64_t nodes)
      : labelling_(labelling), propagation_(labelling), limit_(limit), keep_(keep), nodes_(nodes) {}

  LeastWork run(const Alive& alive) {
    out_.bound = least(alive);
    descend(alive);
    if (out_.complete && !out_.found.empty()) out_.bound = out_.found.front().work;
    return std::move(out_);
  }

 private:
  // Every stage and every pair at its least by itself.
  [[nodiscard]] double least(const Alive& alive) const {
    double sum = 0;
    for (std::size_t s = 0; s < alive.size(); ++s) {
      double best = kForever;
      for (std::size_t v = 0; v < alive[s].size(); ++v)
        if (alive[s][v] != 0) best = std::min(best, labelling_.work(s, v));
      sum += best;
    }
    for (const StagePair& pair : labelling_.pairs()) {
      double best = kForever;
      const std::size_t columns = alive[pair.second].size();
      for (std::size_t p = 0; p < alive[pair.first].size(); ++p) {
        if (alive[pair.first][p] == 0) continue;
        for (std::size_t q = 0; q < columns; ++q)
          if (alive[pair.second][q] != 0 && pair.time[p * columns + q] <= limit_)
            best = std::min(best, pair.work[p * columns + q]);
      }
      sum += best;
    }
    return sum;
  }

  void descend(const Alive& alive) {
    if (++out_.states > nodes_) {
      out_.complete = false;
      return;
    }
    const double bound = least(alive);
    if (!(bound < upper_ - kRounding * std::abs(upper_)) && upper_ < kForever) return;
    const std::vector<std::uint64_t> open = open_places(labelling_, alive);
    const std::size_t boundary = boundary_to_branch(open);
    if (boundary == 0) return record(alive, bound);
    std::vector<std::pair<double, Alive>> children;
    for (std::uint64_t set = open[boundary]; set != 0; set &= set - 1) {
      const auto place = static_cast<std::size_t>(std::countr_zero(set));
      Alive next = with_place(labelling_, alive, boundary, place);
      if (propagation_.narrow(next, limit_, boundary)) children.emplace_back(least(next), std::move(next));
    }
    std::ranges::stable_sort(children, {}, [](const auto& child) { return child.first; });
    for (const auto& [value, child] : children) descend(child);
  }

  void record(const Alive& alive, double work) {
    LeastWork::Found found{.work = work, .chosen = only_values(alive)};
    if (!labelling_.fits(found.chosen)) return;  // over a budget by rounding
    const auto place = std::ranges::upper_bound(out_.found, work, {}, &LeastWork::Found::work);
    out_.found.insert(place, std::move(found));
    if (out_.found.size() > keep_) out_.found.pop_back();
    if (out_.found.size() == keep_) upper_ = std::min(upper_, out_.found.back().work);
  }

  const Labelling& labelling_;
  Propagation propagation_;
  double limit_;
  std::size_t keep_;
  double upper_ = kForever;
  std::int64_t nodes_;
  LeastWork out_;
};

}  // namespace

LeastWork branch_work(const Labelling& labelling, const Alive& alive, double limit, std::size_t keep,
                      std::int64_t node_limit) {
  return Branch(labelling, limit, keep, node_limit).run(alive);
}

}  // namespace tessera::train
