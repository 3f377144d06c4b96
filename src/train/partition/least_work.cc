#include "least_work.h"

#include <algorithm>
#include <array>
#include <queue>

#include "relaxed_walk.h"

namespace tessera::train {
namespace {

using Need = WalkGraph::Need;

// What the first prices aim at, above the relaxed bound.
constexpr double kAim = 1.02;
// Below this share of its value a bound counts as met, and a budget as kept until all is added up.
constexpr double kRounding = 1e-12;

class Enumerator {
 public:
  Enumerator(const WalkGraph& graph, const RelaxedWalk& relaxed, std::size_t stages, std::size_t keep,
             std::int64_t state_limit, bool any = false)
      : graph_(graph),
        layers_(graph.layers().layers()),
        relaxed_(relaxed),
        stages_(stages),
        keep_(keep),
        limit_(state_limit),
        any_(any),
        touched_(graph.depth()) {
    for (std::size_t at = 0; at < graph.depth(); ++at) head_.emplace_back(graph.nodes(at), -1);
  }

  LeastWork run() {
    struct Start {
      double bound;
      std::size_t node;
    };
    std::vector<Start> starts;
    for (std::size_t node = 0; node < graph_.nodes(0); ++node) {
      const double bound = any_ ? 0 : relaxed_.to_go(0, node) - relaxed_.start_price(node);
      if (bound < kForever) starts.push_back({bound, node});
    }
    std::ranges::stable_sort(starts, {}, &Start::bound);
    out_.bound = starts.empty() ? kForever : starts.front().bound;
    for (const Start& start : starts) {
      if (!below(start.bound)) break;
      if (!within_limit()) break;
      from(start.node);
    }
    if (out_.complete && !out_.found.empty()) out_.bound = out_.found.front().work;
    return std::move(out_);
  }

 private:
  struct Label {
    double work = 0;
    Need need{};
    std::int32_t next = -1;  // another label of the same node
  };
  struct Node {
    double total = 0;  // no completion has less
    double after = 0;  // work from here to the end
    std::size_t layer = 0, node = 0;
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
    if (any_) return out_.found.empty();
    return work < upper_ - kRounding * std::abs(upper_) || (upper_ == kForever && work < kForever);
  }

  void from(std::size_t start) {
    if (forward(start)) backward(start);
    for (std::size_t at = 0; at < head_.size(); ++at) {
      for (const std::size_t node : touched_[at]) head_[at][node] = -1;
      touched_[at].clear();
    }
    labels_.clear();
  }

  // False at the limit, when nothing more may be looked at.
  bool within_limit() noexcept {
    out_.complete = out_.complete && out_.states <= limit_;
    return out_.complete;
  }

  // Least work from the start to every node that a wanted partition can pass. False when it was stopped.
  bool forward(std::size_t start) {
    const double price = relaxed_.start_price(start);
    put(0, start, 0, {});
    for (std::size_t at = 0; at + 1 < graph_.depth(); ++at) {
      const Layers::Layer& layer = layers_[at];
      const bool rank_ends = layer.step->last_of_rank;
      for (const std::size_t node : touched_[at]) {
        if (!within_limit()) return false;
        const auto steps = graph_.steps(at, node);
        out_.states += std::ssize(steps);
        for (const WalkGraph::Step& step : steps) {
          const auto to = static_cast<std::size_t>(step.to);
          if (!graph_.may_close(start, at + 1, to)) continue;
          const double work = any_ ? 0 : step.work;
          const double rest = any_ ? 0 : work + relaxed_.to_go(at + 1, to) - price;
          for (std::int32_t l = head_[at][node]; l >= 0; l = labels_[static_cast<std::size_t>(l)].next) {
            const Label label = labels_[static_cast<std::size_t>(l)];
            if (!below(label.work + rest)) continue;
            if (layer.rows == 0) {
              put(at + 1, to, label.work + work, {});
              continue;
            }
            Need need = label.need;
            bool fits = true;
            for (std::size_t m = 0; m < layer.rows; ++m) {
              need[m] += layer.need[static_cast<std::size_t>(step.value)][m];
              const double later = rank_ends ? 0 : graph_.to_need(at + 1, to)[m] * (1 - kRounding);
              fits = fits && need[m] + later <= layer.budget[m] * (1 + kRounding);
            }
            if (fits) put(at + 1, to, label.work + work, rank_ends ? Need{} : need);
          }
        }
      }
    }
    return true;
  }

  void put(std::size_t at, std::size_t node, double work, const Need& need) {
    std::int32_t& head = head_[at][node];
    if (head < 0) touched_[at].push_back(node);
    const auto covers = [](const Label& a, double w, const Need& n) {
      if (a.work > w) return false;
      for (std::size_t m = 0; m < n.size(); ++m)
        if (a.need[m] > n[m]) return false;
      return true;
    };
    for (std::int32_t l = head; l >= 0; l = labels_[static_cast<std::size_t>(l)].next, ++out_.states)
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
    labels_.push_back({.work = work, .need = need, .next = old});
  }

  // From the end back to the start, in order of total work: the forward labels are the exact rest.
  void backward(std::size_t start) {
    std::vector<Node> nodes;
    std::priority_queue<std::int32_t, std::vector<std::int32_t>, Later> open(Later{&nodes});
    const auto push = [&](Node node) {
      ++out_.states;
      double least = kForever;
      const Layers::Layer& layer = layers_[node.layer];
      for (std::int32_t l = head_[node.layer][node.node]; l >= 0;
           l = labels_[static_cast<std::size_t>(l)].next) {
        const Label& label = labels_[static_cast<std::size_t>(l)];
        bool fits = true;
        for (std::size_t m = 0; layer.step != nullptr && m < layer.rows; ++m)
          fits = fits && label.need[m] + node.used[m] <= layer.budget[m] * (1 + kRounding);
        if (fits) least = std::min(least, label.work);
      }
      node.total = least + node.after;
      if (!below(node.total)) return;
      node.serial = std::ssize(nodes);
      nodes.push_back(node);
      open.push(static_cast<std::int32_t>(nodes.size()) - 1);
    };
    for (const std::size_t node : touched_.back())
      if (graph_.closes(start, node)) push({.layer = graph_.depth() - 1, .node = node});
    while (!open.empty()) {
      const std::int32_t index = open.top();
      open.pop();
      const Node node = nodes[static_cast<std::size_t>(index)];
      if (!below(node.total)) return;
      if (node.layer == 0) {
        if (node.node == start) found(nodes, index);
        continue;
      }
      if (!within_limit()) return;
      step_back(node, index, push);
    }
  }

  // Every node of the layer before from which one step leads to this one.
  template <class Push>
  void step_back(const Node& node, std::int32_t index, const Push& push) {
    const Layers::Layer& layer = layers_[node.layer - 1];
    for (const WalkGraph::Back& back : graph_.back(node.layer, node.node)) {
      const auto from = static_cast<std::size_t>(back.from);
      if (head_[node.layer - 1][from] < 0) continue;
      Node before{.after = any_ ? 0 : node.after + back.work,
                  .layer = node.layer - 1,
                  .node = from,
                  .parent = index,
                  .value = back.value};
      if (!layer.step->last_of_rank) before.used = node.used;
      for (std::size_t m = 0; m < layer.rows; ++m)
        before.used[m] += layer.need[static_cast<std::size_t>(back.value)][m];
      push(before);
    }
  }

  void found(const std::vector<Node>& nodes, std::int32_t index) {
    LeastWork::Found found{.work = nodes[static_cast<std::size_t>(index)].total,
                           .chosen = std::vector<std::int32_t>(stages_, -1)};
    for (std::int32_t at = index; nodes[static_cast<std::size_t>(at)].parent >= 0;
         at = nodes[static_cast<std::size_t>(at)].parent) {
      const Node& node = nodes[static_cast<std::size_t>(at)];
      found.chosen[layers_[node.layer].step->stage] = node.value;
    }
    // The steps of a rank were added up in another order than the checker's.
    if (!graph_.layers().labelling().fits(found.chosen)) return;
    const auto place = std::ranges::upper_bound(out_.found, found.work, {}, &LeastWork::Found::work);
    out_.found.insert(place, std::move(found));
    if (out_.found.size() > keep_) out_.found.pop_back();
    if (out_.found.size() == keep_) upper_ = std::min(upper_, out_.found.back().work);
  }

  const WalkGraph& graph_;
  std::span<const Layers::Layer> layers_;
  const RelaxedWalk& relaxed_;
  std::size_t stages_, keep_;
  double upper_ = kForever;
  std::int64_t limit_;
  bool any_;                                     // one partition, whatever its work
  std::vector<std::vector<std::int32_t>> head_;  // per layer and node: its first label
  std::vector<std::vector<std::size_t>> touched_;
  std::vector<Label> labels_;
  LeastWork out_;
};

}  // namespace

LeastWork least_work(const WalkGraph& graph, std::size_t stages, std::size_t keep, std::int32_t price_steps,
                     std::int64_t state_limit) {
  RelaxedWalk relaxed(graph);
  relaxed.sweep();
  relaxed.keep_best();
  // No partition is known yet: aim a little above the bound.
  const double target = relaxed.bound() * kAim;
  for (std::int32_t k = 0; k < price_steps && relaxed.bound() < kForever; ++k) {
    if (graph.states() + relaxed.states() > state_limit) break;
    if (!relaxed.adjust(target, 2 * k < price_steps ? 1.0 : 0.5)) break;
    relaxed.sweep();
    relaxed.keep_best();
  }
  relaxed.restore_best();
  const std::int64_t before = graph.states() + relaxed.states();
  LeastWork out = Enumerator(graph, relaxed, stages, keep, state_limit - before).run();
  out.states += before;
  return out;
}

LeastWork any_walk(const WalkGraph& graph, std::size_t stages, std::int64_t state_limit) {
  const RelaxedWalk unpriced(graph);
  LeastWork out = Enumerator(graph, unpriced, stages, 1, state_limit - graph.states(), true).run();
  out.states += graph.states();
  return out;
}

}  // namespace tessera::train
