#include "relaxed_walk.h"

#include <algorithm>

namespace tessera::train {

RelaxedWalk::RelaxedWalk(const Layers& layers) : layers_(layers) {
  for (const Join& join : layers.walk().joins) {
    const bool stitch = join.kind == Join::Kind::stitch;
    price_.emplace_back(stitch ? layers.open(join.boundary).size() : 0, 0.0);
  }
  best_price_ = price_;
  for (const Layers::Layer& layer : layers.layers()) to_go_.emplace_back(layer.cells, kForever);
}

double RelaxedWalk::end_price(std::span<const std::size_t> places) const noexcept {
  double price = 0;
  const auto& joins = layers_.walk().joins;
  for (std::size_t j = 0; j < joins.size(); ++j) {
    if (joins[j].kind == Join::Kind::stitch) price += price_[j][places[joins[j].from]];
    if (joins[j].kind == Join::Kind::same_end && places[joins[j].from] != places[joins[j].to])
      return kForever;
  }
  return price;
}

double RelaxedWalk::start_price(std::span<const std::size_t> places) const noexcept {
  double price = 0;
  const auto& joins = layers_.walk().joins;
  for (std::size_t j = 0; j < joins.size(); ++j)
    if (joins[j].kind == Join::Kind::stitch) price += price_[j][places[joins[j].to]];
  return price;
}

bool RelaxedWalk::may_start(std::span<const std::size_t> places) const noexcept {
  return std::ranges::all_of(layers_.walk().joins, [&](const Join& join) {
    return join.kind != Join::Kind::same_start || places[join.from] == places[join.to];
  });
}

void RelaxedWalk::sweep() {
  const auto layers = layers_.layers();
  std::vector<std::size_t> places;
  std::vector<const double*> rows;  // per pair met
  const Layers::Layer& end = layers.back();
  places.resize(end.variables.size());
  for (std::size_t cell = 0; cell < end.cells; ++cell) {
    Layers::decode(end, cell, places);
    to_go_.back()[cell] = end_price(places);
  }
  for (std::size_t at = layers.size() - 1; at-- > 0;) {
    const Layers::Layer& layer = layers[at];
    const std::vector<double>& after = to_go_[at + 1];
    places.assign(layer.variables.size(), 0);
    rows.resize(layer.met.size());
    for (std::size_t cell = 0; cell < layer.cells; ++cell) {
      const std::size_t entry = places[layer.step->track];
      const std::size_t base = layers_.next_cell(layer, places, 0);
      double best = kForever;
      // The pairs' rows for this cell, found once for all exits.
      bool possible = true;
      for (std::size_t m = 0; m < layer.met.size() && possible; ++m) {
        const Layers::Met& other = layer.met[m];
        const std::int32_t value =
            other.value[places[other.entry] * layer.variables[other.exit].size + places[other.exit]];
        possible = value >= 0;
        rows[m] = other.work.data() + std::max(value, 0);
      }
      for (std::size_t exit = 0; possible && exit < layer.exits; ++exit) {
        const std::int32_t value = layer.value[entry * layer.exits + exit];
        if (value < 0) continue;
        double work = layer.work[static_cast<std::size_t>(value)] + after[base + exit * layer.exit_stride];
        for (std::size_t m = 0; m < layer.met.size(); ++m)
          work += rows[m][static_cast<std::size_t>(value) * layer.met[m].columns];
        best = std::min(best, work);
      }
      to_go_[at][cell] = best;
      for (std::size_t v = 0; v < places.size(); ++v) {
        if (++places[v] < layer.variables[v].size) break;
        places[v] = 0;
      }
    }
    states_ += static_cast<std::int64_t>(layer.cells * layer.exits);
  }
  bound_ = kForever;
  const Layers::Layer& first = layers.front();
  places.assign(first.variables.size(), 0);
  for (std::size_t cell = 0; cell < first.cells; ++cell) {
    Layers::decode(first, cell, places);
    if (!may_start(places)) continue;
    const double value = to_go_.front()[cell] - start_price(places);
    if (value < bound_) bound_ = value, best_start_ = cell;
  }
}

bool RelaxedWalk::adjust(double upper, double step) {
  if (!(bound_ < kForever)) return false;
  const auto layers = layers_.layers();
  // Follow the best relaxed walk to its end.
  std::size_t cell = best_start_;
  std::vector<std::size_t> places(layers.front().variables.size());
  Layers::decode(layers.front(), cell, places);
  const std::vector<std::size_t> start = places;
  for (std::size_t at = 0; at + 1 < layers.size(); ++at) {
    const Layers::Layer& layer = layers[at];
    places.resize(layer.variables.size());
    Layers::decode(layer, cell, places);
    std::size_t next = 0;
    double best = kForever;
    for (std::size_t exit = 0; exit < layer.exits; ++exit) {
      std::int32_t value = 0;
      const double work = layers_.step_work(layer, places, exit, value);
      if (value < 0) continue;
      const std::size_t to = layers_.next_cell(layer, places, exit);
      if (work + to_go_[at + 1][to] < best) best = work + to_go_[at + 1][to], next = to;
    }
    cell = next;
  }
  places.resize(layers.back().variables.size());
  Layers::decode(layers.back(), cell, places);
  const auto& joins = layers_.walk().joins;
  std::size_t mismatches = 0;
  for (const Join& join : joins)
    if (join.kind == Join::Kind::stitch && places[join.from] != start[join.to]) ++mismatches;
  if (mismatches == 0) return false;
  const double length = step * std::max(upper - bound_, 0.0) / (2.0 * static_cast<double>(mismatches));
  for (std::size_t j = 0; j < joins.size(); ++j) {
    if (joins[j].kind != Join::Kind::stitch || places[joins[j].from] == start[joins[j].to]) continue;
    price_[j][places[joins[j].from]] += length;
    price_[j][start[joins[j].to]] -= length;
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
