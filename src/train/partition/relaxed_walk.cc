#include "relaxed_walk.h"

#include <algorithm>

namespace tessera::train {

RelaxedWalk::RelaxedWalk(const WalkGraph& graph) : graph_(graph) {
  for (const WalkGraph::Stitch& stitch : graph.stitches())
    price_.emplace_back(graph.layers().open(stitch.boundary).size(), 0.0);
  best_price_ = price_;
  for (std::size_t at = 0; at < graph.depth(); ++at) to_go_.emplace_back(graph.nodes(at), kForever);
}

double RelaxedWalk::start_price(std::size_t start) const noexcept {
  const auto stitches = graph_.stitches();
  double price = 0;
  for (std::size_t j = 0; j < price_.size(); ++j) price += price_[j][stitches[j].start[start]];
  return price;
}

void RelaxedWalk::sweep() {
  const auto stitches = graph_.stitches();
  for (std::size_t end = 0; end < to_go_.back().size(); ++end) {
    double price = 0;
    for (std::size_t j = 0; j < price_.size(); ++j) price += price_[j][stitches[j].end[end]];
    to_go_.back()[end] = price;
  }
  for (std::size_t at = graph_.depth() - 1; at-- > 0;) {
    const std::vector<double>& after = to_go_[at + 1];
    for (std::size_t node = 0; node < to_go_[at].size(); ++node) {
      double best = kForever;
      const auto steps = graph_.steps(at, node);
      for (const WalkGraph::Step& step : steps)
        best = std::min(best, step.work + after[static_cast<std::size_t>(step.to)]);
      to_go_[at][node] = best;
      states_ += std::ssize(steps);
    }
  }
  bound_ = kForever;
  for (std::size_t start = 0; start < to_go_.front().size(); ++start) {
    const double value = to_go_.front()[start] - start_price(start);
    if (value < bound_) bound_ = value, best_start_ = start;
  }
}

bool RelaxedWalk::adjust(double upper, double step) {
  if (!(bound_ < kForever)) return false;
  // Follow the best relaxed walk to its end.
  std::size_t node = best_start_;
  for (std::size_t at = 0; at + 1 < graph_.depth(); ++at) {
    std::size_t next = 0;
    double best = kForever;
    for (const WalkGraph::Step& one : graph_.steps(at, node)) {
      const double work = one.work + to_go_[at + 1][static_cast<std::size_t>(one.to)];
      if (work < best) best = work, next = static_cast<std::size_t>(one.to);
    }
    node = next;
  }
  const auto stitches = graph_.stitches();
  std::size_t mismatches = 0;
  for (std::size_t j = 0; j < price_.size(); ++j)
    mismatches += stitches[j].end[node] != stitches[j].start[best_start_];
  if (mismatches == 0) return false;
  const double length = step * std::max(upper - bound_, 0.0) / (2.0 * static_cast<double>(mismatches));
  for (std::size_t j = 0; j < price_.size(); ++j) {
    if (stitches[j].end[node] == stitches[j].start[best_start_]) continue;
    price_[j][stitches[j].end[node]] += length;
    price_[j][stitches[j].start[best_start_]] -= length;
  }
  return true;
}

void RelaxedWalk::keep_best() {
  if (bound_ <= best_bound_) return;
  best_bound_ = bound_;
  best_price_ = price_;
}

void RelaxedWalk::restore_best() {
  if (bound_ >= best_bound_) return;
  price_ = best_price_;
  sweep();
}

}  // namespace tessera::train
