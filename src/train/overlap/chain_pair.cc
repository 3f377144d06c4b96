#include "chain_pair.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

namespace tessera::train {
namespace {

// The sum of all durations is about this many ticks: rounding is then far below what a double sum loses.
constexpr int kTicksLog2 = 42;

double tick_of(const TaskGraph& graph) noexcept {
  double total = 0;
  for (const Task& task : graph.tasks) total += task.duration.value();
  return total > 0 ? std::ldexp(1.0, std::ilogb(total) - kTicksLog2) : 1.0;
}

class Builder {
 public:
  Builder(const TaskGraph& graph, Seconds pool_credit, Ties ties)
      : graph_(graph), ties_(ties), place_(graph.tasks.size()) {
    pair_.tick = tick_of(graph);
    for (const Task& task : graph.tasks)
      pair_.duration.push_back(static_cast<Ticks>(std::llround(task.duration.value() / pair_.tick)));
    pair_.instant.resize(graph.tasks.size());
    // No more can be left out than there is; a credit beyond that may not even be a number of ticks.
    double movable = 0;
    for (const Task& task : graph.tasks) movable += task.movable ? task.duration.value() : 0;
    pair_.credit =
        static_cast<Ticks>(std::floor(std::clamp(pool_credit.value(), 0.0, 2 * movable) / pair_.tick));
  }

  std::optional<ChainPair> build() {
    if (!read_chains() || !read_leaves()) return std::nullopt;
    std::ranges::stable_sort(found_, [](const Found& a, const Found& b) {
      return a.leaf.duration != b.leaf.duration ? a.leaf.duration > b.leaf.duration : a.release < b.release;
    });
    if (found_.size() > kMostLeaves) return std::nullopt;
    for (std::size_t k = 0; k < found_.size(); ++k)
      bit_of_[static_cast<std::size_t>(found_[k].leaf.task)] = LeafSet{1} << k;
    for (const Found& found : instant_)
      for (const std::int32_t before : found.needs)
        bit_of_[static_cast<std::size_t>(found.leaf.task)] |= bit(before);
    LeafSet needed = 0;
    for (Found& found : found_) {
      for (const std::int32_t before : found.needs) found.leaf.needs |= bit(before);
      needed |= found.leaf.needs;
    }
    close_needs();
    if (ties_ == Ties::tighten && !set_deadlines()) return std::nullopt;
    for (std::size_t k = 0; k < found_.size(); ++k) {
      Found& found = found_[k];
      const LeafSet own = LeafSet{1} << k;
      if (found.release < 0)
        pair_.at_start |= own;
      else
        pair_.chain[found.side][static_cast<std::size_t>(found.release)].released |= own;
      // With a credit, a leaf that may be left out is worth more than an equal one that may not.
      found.leaf.free = !found.leaf.has_deadline && found.leaf.needs == 0 && (needed & own) == 0 &&
                        (pair_.credit == 0 || found.leaf.movable);
      pair_.leaves.push_back(found.leaf);
    }
    return std::move(pair_);
  }

 private:
  struct Found {
    Leaf leaf;
    std::size_t side = 0;
    std::ptrdiff_t release = -1;  // position in the chain
    std::vector<std::int32_t> needs;
  };
  struct Place {
    bool leaf = false;
    std::ptrdiff_t at = -1;  // position in its chain
  };

  [[nodiscard]] std::size_t side_of(std::size_t task) const noexcept {
    return std::cmp_less(task, graph_.forward_tasks) ? 0 : 1;
  }
  [[nodiscard]] LeafSet bit(std::int32_t task) const noexcept {
    return bit_of_[static_cast<std::size_t>(task)];
  }

  // A leaf needs what its needs need: W_SHARED, B_SHARED and R_SHARED are three in a row.
  void close_needs() noexcept {
    for (bool grown = true; grown;) {
      grown = false;
      for (Found& found : found_) {
        const LeafSet direct = found.leaf.needs;
        for (LeafSet set = direct; set != 0; set &= set - 1)
          found.leaf.needs |= found_[static_cast<std::size_t>(std::countr_zero(set))].leaf.needs;
        grown = grown || found.leaf.needs != direct;
      }
    }
  }

  // Each half without its leaves must be a chain.
  bool read_chains() {
    for (std::size_t t = 0; t < graph_.tasks.size(); ++t) {
      const Task& task = graph_.tasks[t];
      const bool comm = task.resource == Resource::comm;
      if (!comm && task.resource != Resource::comp) return false;
      place_[t].leaf = task.leaf;
      if (task.leaf) {
        if (comm) return false;
        continue;
      }
      auto& chain = pair_.chain[side_of(t)];
      bool follows = chain.empty();
      for (const TaskId before : task.after) {
        if (side_of(before.index()) != side_of(t)) return false;
        if (graph_.tasks[before.index()].leaf) {
          if (graph_.tasks[before.index()].movable) return false;
          continue;
        }
        if (chain.empty() || before.value() != chain.back().task) return false;
        follows = true;
      }
      if (!follows) return false;
      place_[t].at = std::ssize(chain);
      chain.push_back({.task = static_cast<std::int32_t>(t), .duration = pair_.duration[t], .comm = comm});
    }
    return true;
  }

  bool read_leaves() {
    bit_of_.assign(graph_.tasks.size(), 0);
    std::vector<std::ptrdiff_t> release_of(graph_.tasks.size(), -1);
    std::vector<std::vector<std::int32_t>> needs_of(graph_.tasks.size());
    std::vector<bool> searched(graph_.tasks.size(), false);
    for (std::size_t t = 0; t < graph_.tasks.size(); ++t) {
      const Task& task = graph_.tasks[t];
      if (!task.leaf) continue;
      Found found{.leaf = {.task = static_cast<std::int32_t>(t),
                           .duration = pair_.duration[t],
                           .movable = task.movable},
                  .side = side_of(t)};
      const auto& chain = pair_.chain[found.side];
      for (const TaskId before : task.after) {
        if (side_of(before.index()) != found.side) return false;
        if (place_[before.index()].leaf) {
          // A weight gradient that others wait for could neither be put off nor left out freely.
          if (graph_.tasks[before.index()].movable) return false;
          found.release = std::max(found.release, release_of[before.index()]);
          if (searched[before.index()])
            found.needs.push_back(before.value());
          else
            found.needs.insert(found.needs.end(), needs_of[before.index()].begin(),
                               needs_of[before.index()].end());
        } else {
          found.release = std::max(found.release, place_[before.index()].at);
        }
      }
      while (found.release >= 0 && chain[static_cast<std::size_t>(found.release)].comm) {
        pair_.tightened = true;
        found.release += ties_ == Ties::tighten ? 1 : -1;
        if (found.release == std::ssize(chain)) return false;
      }
      release_of[t] = found.release;
      needs_of[t] = found.needs;
      // A leaf of no length runs the moment it can, and the search need not know it, unless what it needs may
      // run before the chain releases it.
      const bool at_once = found.leaf.duration == 0 &&
                           (found.needs.empty() ||
                            (found.needs.size() == 1 &&
                             found.release == release_of[static_cast<std::size_t>(found.needs.front())]));
      searched[t] = !at_once;
      if (at_once)
        run_at_once(found);
      else
        found_.push_back(std::move(found));
    }
    return true;
  }

  // Right after what it needs, or what releases it. Whatever waits for it waits for what it needs instead.
  void run_at_once(Found& found) {
    if (found.needs.empty() && found.release < 0) {
      pair_.instant_at_start.push_back(found.leaf.task);
      return;
    }
    const std::int32_t after = found.needs.empty()
                                   ? pair_.chain[found.side][static_cast<std::size_t>(found.release)].task
                                   : found.needs.front();
    pair_.instant[static_cast<std::size_t>(after)].push_back(found.leaf.task);
    instant_.push_back(std::move(found));
  }

  bool set_deadlines() {
    bool comm_deadline[2] = {false, false};
    for (std::size_t side = 0; side < 2; ++side) {
      auto& chain = pair_.chain[side];
      for (std::size_t at = 0; at < chain.size(); ++at) {
        LeafSet required = 0;
        for (const TaskId before : graph_.tasks[static_cast<std::size_t>(chain[at].task)].after)
          required |= bit(before.value());
        if (required == 0) continue;
        // A label knows when the next operation of a chain is ready, not when one further on is: between the
        // leaf and the comm operation that waits for it there may only be comp ones.
        std::size_t due = at;
        while (chain[due].comm && due > 0 && chain[due - 1].comm) --due;
        pair_.tightened = pair_.tightened || due != at;
        comm_deadline[side] = comm_deadline[side] || chain[due].comm;
        for (std::size_t k = 0; k < found_.size(); ++k) {
          if ((required >> k & 1) == 0) continue;
          if (found_[k].side != side || found_[k].release >= static_cast<std::ptrdiff_t>(due)) return false;
          found_[k].leaf.has_deadline = true;
          chain[due].required |= LeafSet{1} << k | found_[k].leaf.needs;
          for (std::size_t n = 0; n < found_.size(); ++n)
            if (found_[k].leaf.needs >> n & 1) found_[n].leaf.has_deadline = true;
        }
      }
    }
    // Two chains that wait for leaves on comm: the order of both leaves in one block is not searched.
    pair_.tightened = pair_.tightened || (comm_deadline[0] && comm_deadline[1]);
    return true;
  }

  const TaskGraph& graph_;
  Ties ties_;
  ChainPair pair_;
  std::vector<Place> place_;
  std::vector<Found> found_;
  std::vector<Found> instant_;  // those of no length
  std::vector<LeafSet> bit_of_;
};

}  // namespace

Ticks ChainPair::sum(LeafSet set) const noexcept {
  Ticks total = 0;
  for (; set != 0; set &= set - 1) total += leaves[static_cast<std::size_t>(std::countr_zero(set))].duration;
  return total;
}

std::optional<ChainPair> chain_pair(const TaskGraph& graph, Seconds pool_credit, Ties ties) {
  return Builder(graph, pool_credit, ties).build();
}

Ticks makespan_of(const ChainPair& pair, const FlatGraph& graph, std::span<const std::int32_t> order) {
  std::vector<Ticks> end(static_cast<std::size_t>(graph.size()), 0);
  Ticks free[2] = {0, 0};
  for (const std::int32_t task : order) {
    Ticks& stream = free[graph.stream[static_cast<std::size_t>(task)]];
    for (const std::int32_t before : graph.before(task))
      stream = std::max(stream, end[static_cast<std::size_t>(before)]);
    stream += pair.duration[static_cast<std::size_t>(task)];
    end[static_cast<std::size_t>(task)] = stream;
  }
  return std::max(free[0], free[1]);
}

}  // namespace tessera::train
