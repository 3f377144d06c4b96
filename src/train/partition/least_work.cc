#include "least_work.h"

#include <algorithm>
#include <array>
#include <queue>

#include "relaxed_walk.h"

namespace tessera::train {
namespace {

using Need = std::array<double, kMostMemoryRows>;

// What the first prices aim at, above the relaxed bound.
constexpr double kAim = 1.02;
// Below this share of its value a bound counts as met.
constexpr double kRounding = 1e-12;

class Enumerator {
 public:
  Enumerator(const Layers& layers, const RelaxedWalk& relaxed, std::size_t stages, std::size_t keep,
             std::int64_t state_limit)
      : layers_(layers), relaxed_(relaxed), stages_(stages), keep_(keep), limit_(state_limit) {
    for (const Layers::Layer& layer : layers.layers()) head_.emplace_back(layer.cells, -1);
    touched_.resize(head_.size());
  }

  LeastWork run() {
    const Layers::Layer& first = layers_.layers().front();
    struct Start {
      double bound;
      std::size_t cell;
    };
    std::vector<Start> starts;
    std::vector<std::size_t> places(first.variables.size());
    for (std::size_t cell = 0; cell < first.cells; ++cell) {
      Layers::decode(first, cell, places);
      if (!relaxed_.may_start(places)) continue;
      const double bound = relaxed_.to_go(0, cell) - relaxed_.start_price(places);
      if (bound < kForever) starts.push_back({bound, cell});
    }
    std::ranges::stable_sort(starts, {}, &Start::bound);
    out_.bound = starts.empty() ? kForever : starts.front().bound;
    for (const Start& start : starts) {
      if (!below(start.bound)) break;
      if (out_.states > limit_) {
        out_.complete = false;
        break;
      }
      from(start.cell);
    }
    if (out_.complete && !out_.found.empty()) out_.bound = out_.found.front().work;
    return std::move(out_);
  }

 private:
  struct Label {
    std::size_t cell = 0;
    double work = 0;
    Need need{};
    std::int32_t next = -1;  // another label of the same cell
  };
  struct Node {
    double total = 0;  // no completion has less
    double after = 0;  // work from here to the end
    std::size_t layer = 0, cell = 0;
    Need used{};  // by the steps of this rank that come after
    std::int32_t parent = -1;
    std::int32_t value = -1;  // of the step after this layer
    std::int64_t serial = 0;
  };
  struct Later {
    const std::vector<Node>* nodes;
    bool operator()(std::int32_t a, std::int32_t b) const {
      const Node &x = (*nodes)[static_cast<std::size_t>(a)], &y = (*nodes)[static_cast<std::size_t>(b)];
      if (x.total != y.total) return x.total > y.total;
      if (x.layer != y.layer) return x.layer > y.layer;  // nearer to a whole partition first
      return x.serial > y.serial;
    }
  };

  [[nodiscard]] bool below(double work) const noexcept {
    return work < upper_ - kRounding * std::abs(upper_) || (upper_ == kForever && work < kForever);
  }

  void from(std::size_t start) {
    forward(start);
    backward(start);
    for (std::size_t at = 0; at < head_.size(); ++at) {
      for (const std::size_t cell : touched_[at]) head_[at][cell] = -1;
      touched_[at].clear();
    }
    labels_.clear();
  }

  // Least work from the start to every cell that a wanted partition can pass.
  void forward(std::size_t start) {
    const auto layers = layers_.layers();
    std::vector<std::size_t> places(layers.front().variables.size());
    Layers::decode(layers.front(), start, places);
    start_places_ = places;
    price_ = relaxed_.start_price(places);
    put(0, start, 0, {});
    for (std::size_t at = 0; at + 1 < layers.size(); ++at) {
      const Layers::Layer& layer = layers[at];
      places.resize(layer.variables.size());
      for (const std::size_t cell : touched_[at]) {
        Layers::decode(layer, cell, places);
        for (std::size_t exit = 0; exit < layer.exits; ++exit) {
          ++out_.states;
          std::int32_t value = 0;
          const double work = layers_.step_work(layer, places, exit, value);
          if (!(work < kForever)) continue;
          const std::size_t to = layers_.next_cell(layer, places, exit);
          const double rest = relaxed_.to_go(at + 1, to) - price_;
          for (std::int32_t l = head_[at][cell]; l >= 0; l = labels_[static_cast<std::size_t>(l)].next) {
            const Label label = labels_[static_cast<std::size_t>(l)];
            if (!below(label.work + work + rest)) continue;
            Need need = label.need;
            bool fits = true;
            for (std::size_t m = 0; m < layer.rows; ++m) {
              need[m] += layer.need[static_cast<std::size_t>(value)][m];
              fits = fits && need[m] + layer.later[m] <= layer.budget[m];
            }
            if (!fits) continue;
            put(at + 1, to, label.work + work, layer.step->last_of_rank ? Need{} : need);
          }
        }
      }
    }
  }

  void put(std::size_t at, std::size_t cell, double work, const Need& need) {
    std::int32_t& head = head_[at][cell];
    if (head < 0) touched_[at].push_back(cell);
    const auto covers = [](const Label& a, double w, const Need& n) {
      if (a.work > w) return false;
      for (std::size_t m = 0; m < n.size(); ++m)
        if (a.need[m] > n[m]) return false;
      return true;
    };
    for (std::int32_t l = head; l >= 0; l = labels_[static_cast<std::size_t>(l)].next)
      if (covers(labels_[static_cast<std::size_t>(l)], work, need)) return;
    std::int32_t* link = &head;
    while (*link >= 0) {
      Label& label = labels_[static_cast<std::size_t>(*link)];
      bool worse = label.work >= work;
      for (std::size_t m = 0; m < need.size(); ++m) worse = worse && label.need[m] >= need[m];
      if (worse)
        *link = label.next;
      else
        link = &label.next;
    }
    const std::int32_t old = head;
    head = static_cast<std::int32_t>(labels_.size());
    labels_.push_back({.cell = cell, .work = work, .need = need, .next = old});
  }

  [[nodiscard]] bool ends_here(std::span<const std::size_t> places) const noexcept {
    return std::ranges::all_of(layers_.walk().joins, [&](const Join& join) {
      if (join.kind == Join::Kind::stitch) return places[join.from] == start_places_[join.to];
      return join.kind != Join::Kind::same_end || places[join.from] == places[join.to];
    });
  }

  // From the end back to the start, in order of total work: the forward labels are the exact rest.
  void backward(std::size_t start) {
    const auto layers = layers_.layers();
    std::vector<Node> nodes;
    std::priority_queue<std::int32_t, std::vector<std::int32_t>, Later> open(Later{&nodes});
    const auto push = [&](Node node) {
      double least = kForever;
      const Layers::Layer& layer = layers[node.layer];
      for (std::int32_t l = head_[node.layer][node.cell]; l >= 0;
           l = labels_[static_cast<std::size_t>(l)].next) {
        const Label& label = labels_[static_cast<std::size_t>(l)];
        bool fits = true;
        for (std::size_t m = 0; layer.step != nullptr && m < layer.rows; ++m)
          fits = fits && label.need[m] + node.used[m] <= layer.budget[m];
        if (fits) least = std::min(least, label.work);
      }
      node.total = least + node.after;
      if (!below(node.total)) return;
      node.serial = std::ssize(nodes);
      nodes.push_back(node);
      open.push(static_cast<std::int32_t>(nodes.size()) - 1);
    };
    std::vector<std::size_t> places(layers.back().variables.size());
    for (const std::size_t cell : touched_.back()) {
      Layers::decode(layers.back(), cell, places);
      if (ends_here(places)) push({.layer = layers.size() - 1, .cell = cell});
    }
    while (!open.empty()) {
      const std::int32_t index = open.top();
      open.pop();
      const Node node = nodes[static_cast<std::size_t>(index)];
      if (!below(node.total)) return;
      if (node.layer == 0) {
        if (node.cell == start) found(nodes, index);
        continue;
      }
      if (++out_.states > limit_) {
        out_.complete = false;
        return;
      }
      step_back(node, index, push);
    }
  }

  // Every cell of the layer before from which one step leads to the node's.
  template <class Push>
  void step_back(const Node& node, std::int32_t index, const Push& push) {
    const auto layers = layers_.layers();
    const Layers::Layer& layer = layers[node.layer - 1];
    const Layers::Layer& next = layers[node.layer];
    std::vector<std::size_t> after(next.variables.size()), places(layer.variables.size(), 0);
    Layers::decode(next, node.cell, after);
    const std::size_t exit = after[layer.step->track];
    for (std::size_t v = 0; v < layer.variables.size(); ++v)
      if (layer.kept[v] != Layers::kDropped) places[v] = after[layer.kept[v]];
    for (;;) {
      std::size_t cell = 0;
      for (std::size_t v = 0; v < places.size(); ++v) cell += places[v] * layer.variables[v].stride;
      if (head_[node.layer - 1][cell] >= 0) {
        std::int32_t value = 0;
        const double work = layers_.step_work(layer, places, exit, value);
        if (work < kForever) {
          Node before{.after = node.after + work,
                      .layer = node.layer - 1,
                      .cell = cell,
                      .parent = index,
                      .value = value};
          if (!layer.step->last_of_rank) before.used = node.used;
          for (std::size_t m = 0; m < layer.rows; ++m)
            before.used[m] += layer.need[static_cast<std::size_t>(value)][m];
          push(before);
        }
      }
      std::size_t k = 0;
      for (; k < layer.dropped.size(); ++k) {
        std::size_t& place = places[layer.dropped[k]];
        if (++place < layer.variables[layer.dropped[k]].size) break;
        place = 0;
      }
      if (k == layer.dropped.size()) return;
    }
  }

  void found(const std::vector<Node>& nodes, std::int32_t index) {
    LeastWork::Found found{.work = nodes[static_cast<std::size_t>(index)].total,
                           .chosen = std::vector<std::int32_t>(stages_, -1)};
    for (std::int32_t at = index; nodes[static_cast<std::size_t>(at)].parent >= 0;
         at = nodes[static_cast<std::size_t>(at)].parent) {
      const Node& node = nodes[static_cast<std::size_t>(at)];
      found.chosen[layers_.layers()[node.layer].step->stage] = node.value;
    }
    const auto place = std::ranges::upper_bound(out_.found, found.work, {}, &LeastWork::Found::work);
    out_.found.insert(place, std::move(found));
    if (out_.found.size() > keep_) out_.found.pop_back();
    if (out_.found.size() == keep_) upper_ = std::min(upper_, out_.found.back().work);
  }

  const Layers& layers_;
  const RelaxedWalk& relaxed_;
  std::size_t stages_, keep_;
  double upper_ = kForever;
  std::int64_t limit_;
  std::vector<std::vector<std::int32_t>> head_;  // per layer and cell: its first label
  std::vector<std::vector<std::size_t>> touched_;
  std::vector<Label> labels_;
  std::vector<std::size_t> start_places_;
  double price_ = 0;
  LeastWork out_;
};

}  // namespace

LeastWork least_work(const Layers& layers, std::size_t stages, std::size_t keep, std::int32_t price_steps,
                     std::int64_t state_limit) {
  RelaxedWalk relaxed(layers);
  relaxed.sweep();
  relaxed.keep_best();
  // No partition is known yet: aim a little above the bound.
  const double target = relaxed.bound() * kAim;
  for (std::int32_t k = 0; k < price_steps && relaxed.bound() < kForever; ++k) {
    if (!relaxed.adjust(target, 2 * k < price_steps ? 1.0 : 0.5)) break;
    relaxed.sweep();
    relaxed.keep_best();
  }
  relaxed.restore_best();
  LeastWork out = Enumerator(layers, relaxed, stages, keep, state_limit - relaxed.states()).run();
  out.states += relaxed.states();
  return out;
}

}  // namespace tessera::train
