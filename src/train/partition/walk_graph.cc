#include "walk_graph.h"

#include <algorithm>
#include <utility>

namespace tessera::train {
namespace {

// 16 bytes each, there and back.
constexpr std::size_t kMostSteps = 12'000'000;
// The first round drops nearly all that many would.
constexpr int kMemoryRounds = 2;
// Sets of starts are bits beside every node.
constexpr std::size_t kMostStarts = 512;
// Sums of bytes in another order differ in the last bits.
constexpr double kRounding = 1e-12;

bool allowed(const Walk& walk, Join::Kind kind, std::span<const std::size_t> places) {
  return std::ranges::all_of(walk.joins, [&](const Join& join) {
    return join.kind != kind || places[join.from] == places[join.to];
  });
}

// Calls `visit(cell, places)` for every cell of a layer.
template <class Visit>
void for_each_cell(const Layers::Layer& layer, const Visit& visit) {
  std::vector<std::size_t> places(layer.variables.size(), 0);
  for (std::size_t cell = 0; cell < layer.cells; ++cell) {
    visit(cell, places);
    for (std::size_t v = 0; v < places.size(); ++v) {
      if (++places[v] < layer.variables[v].size) break;
      places[v] = 0;
    }
  }
}

}  // namespace

WalkGraph::WalkGraph(const Layers& layers) : layers_(layers) {
  grow(reaches_end());
  if (!fits_) return;
  drop_by_memory();
  find_stitches();
  if (!stitches_.empty() && nodes(0) <= kMostStarts) {
    words_ = (nodes(0) + 63) / 64;
    mark_closing();
    drop_unclosed();
    drop_by_memory();
    find_stitches();
  }
  turn_back();
}

// Per layer and cell: is there a way to an end?
std::vector<std::vector<std::uint8_t>> WalkGraph::reaches_end() {
  const auto layers = layers_.layers();
  std::vector<std::vector<std::uint8_t>> out;
  for (const Layers::Layer& layer : layers) out.emplace_back(layer.cells, 0);
  for_each_cell(layers.back(), [&](std::size_t cell, std::span<const std::size_t> places) {
    out.back()[cell] = allowed(layers_.walk(), Join::Kind::same_end, places) ? 1 : 0;
  });
  for (std::size_t at = layers.size() - 1; at-- > 0;) {
    const Layers::Layer& layer = layers[at];
    const std::vector<std::uint8_t>& after = out[at + 1];
    states_ += static_cast<std::int64_t>(layer.cells);
    for_each_cell(layer, [&](std::size_t cell, std::span<const std::size_t> places) {
      const Layers::Steps steps(layer, places);
      for (std::size_t exit = 0; steps.any() && exit < layer.exits; ++exit)
        if (after[steps.cell(exit)] != 0 && steps.work(exit) < kForever) {
          out[at][cell] = 1;
          return;
        }
    });
  }
  return out;
}

// Forward from the starts, over cells from which there is a way to an end.
void WalkGraph::grow(const std::vector<std::vector<std::uint8_t>>& ends) {
  const auto layers = layers_.layers();
  nodes_.resize(layers.size());
  for_each_cell(layers.front(), [&](std::size_t cell, std::span<const std::size_t> places) {
    if (ends.front()[cell] != 0 && allowed(layers_.walk(), Join::Kind::same_start, places))
      nodes_.front().cell.push_back(static_cast<std::uint32_t>(cell));
  });
  std::vector<std::size_t> places;
  std::vector<std::int32_t> number;
  std::size_t total = 0;
  for (std::size_t at = 0; at + 1 < layers.size(); ++at) {
    const Layers::Layer& layer = layers[at];
    Nodes &here = nodes_[at], &next = nodes_[at + 1];
    number.assign(layers[at + 1].cells, -1);
    places.resize(layer.variables.size());
    for (const std::uint32_t cell : here.cell) {
      Layers::decode(layer, cell, places);
      here.first.push_back(here.steps.size());
      const Layers::Steps steps(layer, places);
      for (std::size_t exit = 0; steps.any() && exit < layer.exits; ++exit) {
        const std::size_t to = steps.cell(exit);
        if (ends[at + 1][to] == 0) continue;
        const double work = steps.work(exit);
        if (!(work < kForever)) continue;
        number[to] = 0;
        here.steps.push_back({static_cast<std::int32_t>(to), steps.value(exit), work});
      }
      if (total + here.steps.size() > kMostSteps) {
        fits_ = false;
        return;
      }
    }
    here.first.push_back(here.steps.size());
    total += here.steps.size();
    for (std::size_t cell = 0; cell < number.size(); ++cell) {
      if (number[cell] < 0) continue;
      number[cell] = static_cast<std::int32_t>(next.cell.size());
      next.cell.push_back(static_cast<std::uint32_t>(cell));
    }
    for (Step& step : here.steps) step.to = number[static_cast<std::size_t>(step.to)];
  }
  nodes_.back().first.assign(nodes_.back().cell.size() + 1, 0);
  states_ += static_cast<std::int64_t>(total);
}

void WalkGraph::need_ahead() {
  const auto layers = layers_.layers();
  for (std::size_t at = layers.size() - 1; at-- > 0;) {
    const Layers::Layer& layer = layers[at];
    Nodes& here = nodes_[at];
    here.to_need.clear();
    if (layer.rows == 0) continue;
    const std::vector<Need>& after = nodes_[at + 1].to_need;
    for (std::size_t node = 0; node < here.cell.size(); ++node) {
      Need& least = here.to_need.emplace_back();
      least.fill(kForever);
      for (const Step& step : steps(at, node))
        for (std::size_t m = 0; m < layer.rows; ++m) {
          double need = layer.need[static_cast<std::size_t>(step.value)][m];
          if (!layer.step->last_of_rank) need += after[static_cast<std::size_t>(step.to)][m];
          least[m] = std::min(least[m], need);
        }
    }
  }
}

void WalkGraph::drop_by_memory() {
  need_ahead();
  for (int round = 0; round < kMemoryRounds && drop_beyond_memory(); ++round) need_ahead();
}

// Without the steps that no walk within each memory row can take. False when there are none such.
bool WalkGraph::drop_beyond_memory() {
  const auto layers = layers_.layers();
  if (std::ranges::all_of(layers, [](const Layers::Layer& layer) { return layer.rows == 0; })) return false;
  bool dropped = false;
  std::vector<std::vector<std::uint8_t>> kept(nodes_.size());
  kept.front().assign(nodes_.front().cell.size(), 1);
  std::vector<Need> so_far(nodes_.front().cell.size(), Need{}), next;
  for (std::size_t at = 0; at + 1 < layers.size(); ++at) {
    const Layers::Layer& layer = layers[at];
    Nodes& here = nodes_[at];
    kept[at + 1].assign(nodes_[at + 1].cell.size(), 0);
    Need forever;
    forever.fill(kForever);
    next.assign(nodes_[at + 1].cell.size(), layer.step->last_of_rank ? Need{} : forever);
    std::size_t end = 0;
    for (std::size_t node = 0; node < here.cell.size(); ++node) {
      const std::size_t begin = here.first[node], until = here.first[node + 1];
      here.first[node] = end;
      for (std::size_t s = begin; s < until && kept[at][node] != 0; ++s) {
        const Step step = here.steps[s];
        const auto to = static_cast<std::size_t>(step.to);
        bool fits = true;
        Need need{};
        for (std::size_t m = 0; m < layer.rows; ++m) {
          need[m] = so_far[node][m] + layer.need[static_cast<std::size_t>(step.value)][m];
          const double later = layer.step->last_of_rank ? 0 : nodes_[at + 1].to_need[to][m];
          fits = fits && need[m] + later <= layer.budget[m] * (1 + kRounding);
        }
        if (!fits) continue;
        kept[at + 1][to] = 1;
        if (!layer.step->last_of_rank)
          for (std::size_t m = 0; m < layer.rows; ++m) next[to][m] = std::min(next[to][m], need[m]);
        here.steps[end++] = step;
      }
    }
    here.first.back() = end;
    dropped = dropped || end < here.steps.size();
    here.steps.resize(end);
    std::swap(so_far, next);
  }
  if (!dropped) return false;
  // And without the nodes that lead nowhere any more.
  for (std::size_t at = layers.size() - 1; at-- > 0;)
    for (std::size_t node = 0; node < nodes_[at].cell.size(); ++node)
      if (kept[at][node] != 0 && std::ranges::none_of(steps(at, node), [&](const Step& step) {
            return kept[at + 1][static_cast<std::size_t>(step.to)] != 0;
          }))
        kept[at][node] = 0;
  keep(kept);
  return true;
}

void WalkGraph::find_stitches() {
  const auto layers = layers_.layers();
  stitches_.clear();
  const auto places_of = [&](std::size_t at, std::size_t track) {
    std::vector<std::size_t> out, places(layers[at].variables.size());
    for (std::size_t node = 0; node < nodes(at); ++node) {
      Layers::decode(layers[at], cell(at, node), places);
      out.push_back(places[track]);
    }
    return out;
  };
  for (const Join& join : layers_.walk().joins)
    if (join.kind == Join::Kind::stitch)
      stitches_.push_back({.boundary = join.boundary,
                           .start = places_of(0, join.to),
                           .end = places_of(layers.size() - 1, join.from)});
}

bool WalkGraph::closes(std::size_t start, std::size_t end) const noexcept {
  return std::ranges::all_of(stitches_,
                             [&](const Stitch& stitch) { return stitch.start[start] == stitch.end[end]; });
}

void WalkGraph::mark_closing() {
  for (Nodes& of : nodes_) of.closing.assign(of.cell.size() * words_, 0);
  for (std::size_t start = 0; start < nodes(0); ++start) {
    bit_of_start_.push_back(start);
    for (std::size_t end = 0; end < nodes_.back().cell.size(); ++end)
      if (closes(start, end))
        nodes_.back().closing[end * words_ + start / 64] |= std::uint64_t{1} << (start % 64);
  }
  for (std::size_t at = nodes_.size() - 1; at-- > 0;)
    for (std::size_t node = 0; node < nodes(at); ++node)
      for (const Step& step : steps(at, node))
        for (std::size_t w = 0; w < words_; ++w)
          nodes_[at].closing[node * words_ + w] |=
              nodes_[at + 1].closing[static_cast<std::size_t>(step.to) * words_ + w];
}

// Without the steps that no walk takes which closes where it began.
void WalkGraph::drop_unclosed() {
  std::vector<std::vector<std::uint8_t>> kept(nodes_.size());
  std::vector<std::uint64_t> from(nodes(0) * words_, 0), next;
  for (std::size_t start = 0; start < nodes(0); ++start) {
    const std::uint64_t bit = std::uint64_t{1} << (start % 64);
    from[start * words_ + start / 64] = nodes_[0].closing[start * words_ + start / 64] & bit;
    kept[0].push_back(from[start * words_ + start / 64] != 0 ? 1 : 0);
  }
  for (std::size_t at = 0; at + 1 < nodes_.size(); ++at) {
    Nodes& here = nodes_[at];
    const std::vector<std::uint64_t>& closing = nodes_[at + 1].closing;
    kept[at + 1].assign(nodes(at + 1), 0);
    next.assign(nodes(at + 1) * words_, 0);
    std::size_t end = 0;
    for (std::size_t node = 0; node < here.cell.size(); ++node) {
      const std::size_t begin = here.first[node], until = here.first[node + 1];
      here.first[node] = end;
      for (std::size_t s = begin; s < until && kept[at][node] != 0; ++s) {
        const Step step = here.steps[s];
        const std::size_t to = static_cast<std::size_t>(step.to) * words_;
        std::uint64_t any = 0;
        for (std::size_t w = 0; w < words_; ++w) {
          const std::uint64_t both = from[node * words_ + w] & closing[to + w];
          next[to + w] |= both;
          any |= both;
        }
        if (any == 0) continue;
        kept[at + 1][static_cast<std::size_t>(step.to)] = 1;
        here.steps[end++] = step;
      }
    }
    here.first.back() = end;
    here.steps.resize(end);
    std::swap(from, next);
  }
  keep(kept);
}

void WalkGraph::keep(const std::vector<std::vector<std::uint8_t>>& kept) {
  std::vector<std::vector<std::int32_t>> number(kept.size());
  for (std::size_t at = 0; at < kept.size(); ++at) {
    std::int32_t next = 0;
    for (const std::uint8_t stays : kept[at]) number[at].push_back(stays != 0 ? next++ : -1);
  }
  for (std::size_t at = 0; at < nodes_.size(); ++at) {
    Nodes& here = nodes_[at];
    std::size_t nodes = 0, end = 0;
    for (std::size_t node = 0; node < here.cell.size(); ++node) {
      const std::size_t begin = here.first[node], until = here.first[node + 1];
      if (kept[at][node] == 0) continue;
      here.first[nodes] = end;
      if (words_ > 0 && at == 0) bit_of_start_[nodes] = bit_of_start_[node];
      for (std::size_t w = 0; w < words_; ++w)
        here.closing[nodes * words_ + w] = here.closing[node * words_ + w];
      here.cell[nodes++] = here.cell[node];
      for (std::size_t s = begin; s < until; ++s) {
        Step step = here.steps[s];
        step.to = number[at + 1][static_cast<std::size_t>(step.to)];
        if (step.to >= 0) here.steps[end++] = step;
      }
    }
    here.first[nodes] = end;
    here.first.resize(nodes + 1);
    here.cell.resize(nodes);
    here.steps.resize(end);
    here.closing.resize(nodes * words_);
  }
  if (words_ > 0) bit_of_start_.resize(nodes(0));
}

void WalkGraph::turn_back() {
  for (std::size_t at = 0; at + 1 < nodes_.size(); ++at) {
    const Nodes& here = nodes_[at];
    Nodes& next = nodes_[at + 1];
    next.first_back.assign(next.cell.size() + 1, 0);
    for (const Step& step : here.steps) ++next.first_back[static_cast<std::size_t>(step.to) + 1];
    for (std::size_t node = 0; node < next.cell.size(); ++node)
      next.first_back[node + 1] += next.first_back[node];
    next.back.resize(here.steps.size());
    std::vector<std::size_t> end(next.first_back.begin(), next.first_back.end() - 1);
    for (std::size_t node = 0; node < here.cell.size(); ++node)
      for (const Step& step : steps(at, node))
        next.back[end[static_cast<std::size_t>(step.to)]++] = {static_cast<std::int32_t>(node), step.value,
                                                               step.work};
  }
}

}  // namespace tessera::train
