#include "layers.h"

#include <algorithm>
#include <bit>

namespace tessera::train {
namespace {

// Dense tables over all cells: this many doubles.
constexpr std::size_t kMostCells = 20'000'000;
// Sums of bytes in another order differ in the last bits.
constexpr double kRounding = 1e-12;

// A row that even the heaviest of what is alive satisfies says nothing.
std::vector<MemoryOfStage> tight_rows(const Labelling& labelling, const Alive& alive, std::size_t stage) {
  std::vector<MemoryOfStage> out;
  for (const MemoryOfStage& of : labelling.memory_of(stage)) {
    const MemoryRow& row = labelling.memory()[of.row];
    double most = 0;
    for (std::size_t k = 0; k < row.stages.size(); ++k) {
      double heaviest = 0;
      for (std::size_t v = 0; v < row.need[k].size(); ++v)
        if (alive[row.stages[k]][v] != 0) heaviest = std::max(heaviest, row.need[k][v]);
      most += heaviest;
    }
    if (most > row.budget * (1 - kRounding)) out.push_back(of);
  }
  return out;
}

}  // namespace

bool Layers::within(const Labelling& labelling, const Walk& walk, const Alive& alive,
                    std::size_t most_cells) {
  std::vector<std::size_t> open;  // places per boundary
  for (const std::uint64_t places : open_places(labelling, alive))
    open.push_back(static_cast<std::size_t>(std::popcount(places)));
  open.front() = open.back() = 1;
  std::vector<std::size_t> standing(walk.tracks), entered(walk.tracks), open_tracks;
  for (auto step = walk.steps.rbegin(); step != walk.steps.rend(); ++step)
    standing[step->track] = step->entry;
  std::size_t total = 0;
  const auto add_layer = [&] {
    std::size_t cells = 1;
    for (std::size_t t = 0; t < walk.tracks && cells <= most_cells; ++t) cells *= open[standing[t]];
    for (std::size_t k = 0; k < open_tracks.size() && cells <= most_cells; ++k)
      cells *= open[entered[open_tracks[k]]];
    total += cells;
    return total <= most_cells;
  };
  for (const WalkStep& step : walk.steps) {
    if (!add_layer() || step.met.size() > kMostMet) return false;
    entered[step.track] = step.entry;
    standing[step.track] = step.exit;
    open_tracks = step.open;
  }
  open_tracks.clear();
  return add_layer() && total <= kMostCells && std::ranges::all_of(walk.steps, [&](const WalkStep& step) {
           return tight_rows(labelling, alive, step.stage).size() <= kMostMemoryRows;
         });
}

Layers::Layers(const Labelling& labelling, const Walk& walk, const Alive& alive, double limit)
    : labelling_(labelling), walk_(walk) {
  for (const std::uint64_t places : open_places(labelling, alive)) {
    auto& open = open_.emplace_back();
    for (std::uint64_t set = places; set != 0 && open.size() < kMostPlaces; set &= set - 1)
      open.push_back(static_cast<std::size_t>(std::countr_zero(set)));
  }
  // open_places() has every bit set for the two outer boundaries.
  open_.front() = open_.back() = {0};

  std::vector<std::size_t> standing(walk.tracks), entered(walk.tracks), open_tracks;
  for (auto step = walk.steps.rbegin(); step != walk.steps.rend(); ++step)
    standing[step->track] = step->entry;
  for (const WalkStep& step : walk.steps) {
    add_layer(&step, standing, entered, open_tracks);
    if (!fits_) return;
    entered[step.track] = step.entry;
    standing[step.track] = step.exit;
    open_tracks = step.open;
  }
  add_layer(nullptr, standing, entered, {});
  if (!fits_) return;
  for (std::size_t at = 0; at + 1 < layers_.size(); ++at) link(alive, limit, at);
}

void Layers::add_layer(const WalkStep* step, const std::vector<std::size_t>& standing,
                       const std::vector<std::size_t>& entered, const std::vector<std::size_t>& open_tracks) {
  Layer layer{.step = step};
  const auto add = [&](std::size_t boundary) {
    layer.variables.push_back({.boundary = boundary, .size = open_[boundary].size(), .stride = layer.cells});
    layer.cells *= open_[boundary].size();
    if (layer.cells > kMostCells) fits_ = false;
  };
  for (std::size_t t = 0; t < walk_.tracks && fits_; ++t) add(standing[t]);
  for (std::size_t k = 0; k < open_tracks.size() && fits_; ++k) add(entered[open_tracks[k]]);
  total_ += layer.cells;
  fits_ = fits_ && total_ <= kMostCells;
  layers_.push_back(std::move(layer));
  open_tracks_.push_back(open_tracks);
}

void Layers::link(const Alive& alive, double limit, std::size_t at) {
  Layer& layer = layers_[at];
  const Layer& next = layers_[at + 1];
  const WalkStep& step = *layer.step;
  const std::size_t tracks = walk_.tracks;
  layer.exits = open_[step.exit].size();

  // [entry][exit] of any stage, by open places.
  const auto table = [&](std::size_t stage, std::size_t entry, std::size_t exit) {
    std::vector<std::int32_t> values;
    for (const std::size_t in : open_[entry])
      for (const std::size_t out : open_[exit]) {
        const std::int32_t value =
            entry == stage ? labelling_.value_at(stage, in, out) : labelling_.value_at(stage, out, in);
        values.push_back(value >= 0 && alive[stage][static_cast<std::size_t>(value)] != 0 ? value : -1);
      }
    return values;
  };
  layer.value = table(step.stage, step.entry, step.exit);
  for (std::size_t v = 0; v < labelling_.values(step.stage).size(); ++v)
    layer.work.push_back(labelling_.time(step.stage, v) <= limit ? labelling_.work(step.stage, v) : kForever);

  if (step.met.size() > kMostMet) {
    fits_ = false;
    return;
  }
  for (const WalkStep::Met& met : step.met) {
    const StagePair& pair = labelling_.pairs()[met.pair];
    const std::size_t other = pair.first == step.stage ? pair.second : pair.first;
    const auto place =
        static_cast<std::size_t>(std::ranges::find(open_tracks_[at], met.track) - open_tracks_[at].begin());
    Met& out = layer.met.emplace_back();
    out.entry = tracks + place;
    out.exit = met.track;
    out.value = table(other, layer.variables[out.entry].boundary, layer.variables[out.exit].boundary);
    out.columns = labelling_.values(other).size();
    const std::size_t rows = labelling_.values(step.stage).size();
    out.work.assign(rows * out.columns, kForever);
    const std::size_t pair_columns = labelling_.values(pair.second).size();
    for (std::size_t mine = 0; mine < rows; ++mine)
      for (std::size_t its = 0; its < out.columns; ++its) {
        const std::size_t cell =
            pair.first == step.stage ? mine * pair_columns + its : its * pair_columns + mine;
        if (pair.time[cell] <= limit) out.work[mine * out.columns + its] = pair.work[cell];
      }
  }

  layer.next_stride.assign(layer.variables.size(), 0);
  for (std::size_t t = 0; t < tracks; ++t)
    if (t != step.track) layer.next_stride[t] = next.variables[t].stride;
  layer.exit_stride = next.variables[step.track].stride;
  const auto& open_next = open_tracks_[at + 1];
  for (std::size_t k = 0; k < open_next.size(); ++k) {
    const std::size_t stride = next.variables[tracks + k].stride;
    if (open_next[k] == step.track) {
      layer.entry_stride = stride;
      continue;
    }
    const auto before = static_cast<std::size_t>(std::ranges::find(open_tracks_[at], open_next[k]) -
                                                 open_tracks_[at].begin());
    layer.next_stride[tracks + before] = stride;
  }

  const std::vector<MemoryOfStage> rows = tight_rows(labelling_, alive, step.stage);
  layer.rows = std::min(rows.size(), kMostMemoryRows);
  fits_ = fits_ && rows.size() <= kMostMemoryRows;
  layer.need.resize(labelling_.values(step.stage).size());
  for (std::size_t m = 0; m < layer.rows; ++m) {
    const MemoryRow& row = labelling_.memory()[rows[m].row];
    layer.budget[m] = row.budget;
    const std::vector<double>& need = row.need[rows[m].place];
    for (std::size_t v = 0; v < need.size(); ++v) layer.need[v][m] = need[v];
  }
}

Layers::Steps::Steps(const Layer& layer, std::span<const std::size_t> places) noexcept
    : layer_(layer),
      value_(layer.value.data() + places[layer.step->track] * layer.exits),
      cell_(places[layer.step->track] * layer.entry_stride) {
  for (std::size_t v = 0; v < layer.next_stride.size(); ++v) cell_ += places[v] * layer.next_stride[v];
  for (std::size_t m = 0; m < layer.met.size(); ++m) {
    const Met& met = layer.met[m];
    const std::int32_t other =
        met.value[places[met.entry] * layer.variables[met.exit].size + places[met.exit]];
    any_ = any_ && other >= 0;
    rows_[m] = met.work.data() + std::max(other, 0);
  }
}

void Layers::decode(const Layer& layer, std::size_t cell, std::span<std::size_t> places) noexcept {
  for (std::size_t v = 0; v < layer.variables.size(); ++v) {
    places[v] = cell % layer.variables[v].size;
    cell /= layer.variables[v].size;
  }
}

}  // namespace tessera::train
