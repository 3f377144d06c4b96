#include "propagation.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tessera::train {

std::vector<std::uint64_t> open_places(const Labelling& labelling, const Alive& alive) {
  const std::size_t stages = labelling.stages();
  std::vector<std::uint64_t> begins(stages + 1, 0), ends(stages + 1, 0);
  begins[stages] = ends[0] = ~std::uint64_t{0};
  for (std::size_t s = 0; s < stages; ++s) {
    const auto values = labelling.values(s);
    for (std::size_t v = 0; v < values.size(); ++v) {
      if (alive[s][v] == 0) continue;
      begins[s] |= std::uint64_t{1} << values[v].begin;
      ends[s + 1] |= std::uint64_t{1} << values[v].end;
    }
  }
  for (std::size_t b = 0; b <= stages; ++b) begins[b] &= ends[b];
  return begins;
}

Propagation::Propagation(const Labelling& labelling) : labelling_(labelling) {}

Alive Propagation::everything() const {
  Alive alive(labelling_.stages());
  for (std::size_t s = 0; s < alive.size(); ++s) alive[s].assign(labelling_.values(s).size(), 1);
  return alive;
}

bool Propagation::supported(const Alive& alive, std::size_t stage, std::size_t value, double limit) const {
  if (labelling_.time(stage, value) > limit) return false;
  for (const std::size_t index : labelling_.pairs_of(stage)) {
    const StagePair& pair = labelling_.pairs()[index];
    const std::size_t columns = alive[pair.second].size();
    bool found = false;
    if (pair.first == stage) {
      const double* row = pair.time.data() + value * columns;
      const auto& other = alive[pair.second];
      for (std::size_t q = 0; q < columns && !found; ++q) found = other[q] != 0 && row[q] <= limit;
    } else {
      const auto& other = alive[pair.first];
      for (std::size_t p = 0; p < other.size() && !found; ++p)
        found = other[p] != 0 && pair.time[p * columns + value] <= limit;
    }
    if (!found) return false;
  }
  return true;
}

bool Propagation::narrow(Alive& alive, double limit) const {
  const std::size_t stages = labelling_.stages();
  const auto memory = labelling_.memory();
  std::vector<std::vector<double>> least(memory.size());
  std::vector<double> total(memory.size());
  for (bool changed = true; changed;) {
    changed = false;
    const std::vector<std::uint64_t> open = open_places(labelling_, alive);
    for (std::size_t m = 0; m < memory.size(); ++m) {
      least[m].assign(memory[m].stages.size(), kForever);
      total[m] = 0;
      for (std::size_t k = 0; k < least[m].size(); ++k) {
        const auto& need = memory[m].need[k];
        for (std::size_t v = 0; v < need.size(); ++v)
          if (alive[memory[m].stages[k]][v] != 0) least[m][k] = std::min(least[m][k], need[v]);
        total[m] += least[m][k];
      }
    }
    for (std::size_t s = 0; s < stages; ++s) {
      const auto values = labelling_.values(s);
      bool any = false;
      for (std::size_t v = 0; v < values.size(); ++v) {
        if (alive[s][v] == 0) continue;
        bool keep = (open[s] >> values[v].begin & 1) != 0 && (open[s + 1] >> values[v].end & 1) != 0 &&
                    supported(alive, s, v, limit);
        for (const std::size_t m : labelling_.memory_of(s)) {
          if (!keep) break;
          const auto k =
              static_cast<std::size_t>(std::ranges::find(memory[m].stages, s) - memory[m].stages.begin());
          keep = total[m] - least[m][k] + memory[m].need[k][v] <= memory[m].budget;
        }
        if (keep) {
          any = true;
        } else {
          alive[s][v] = 0;
          changed = true;
        }
      }
      if (!any) return false;
    }
  }
  return true;
}

bool Propagation::descend(const Alive& alive, Search& search) const {
  if (search.nodes-- <= 0) return true;
  const std::vector<std::uint64_t> open = open_places(labelling_, alive);
  std::size_t boundary = 0;
  int fewest = 65;
  for (std::size_t b = 1; b + 1 < open.size(); ++b) {
    const int choices = std::popcount(open[b]);
    if (choices > 1 && choices < fewest) fewest = choices, boundary = b;
  }
  if (boundary == 0) {
    search.found.clear();
    for (const auto& stage : alive)
      search.found.push_back(static_cast<std::int32_t>(std::ranges::find(stage, 1) - stage.begin()));
    return --search.wanted <= 0;
  }
  for (std::uint64_t set = open[boundary]; set != 0; set &= set - 1) {
    const auto place = static_cast<std::size_t>(std::countr_zero(set));
    Alive next = alive;
    for (std::size_t v = 0; v < next[boundary].size(); ++v)
      if (labelling_.values(boundary)[v].begin != place) next[boundary][v] = 0;
    for (std::size_t v = 0; v < next[boundary - 1].size(); ++v)
      if (labelling_.values(boundary - 1)[v].end != place) next[boundary - 1][v] = 0;
    if (narrow(next, search.limit) && descend(next, search)) return true;
  }
  return false;
}

Propagation::Answer Propagation::search(const Alive& alive, double limit, std::int64_t nodes,
                                        std::vector<std::int32_t>& found) const {
  Search search{.limit = limit, .nodes = nodes};
  if (!descend(alive, search)) return Answer::no;
  if (search.wanted > 0) return Answer::undecided;
  found = std::move(search.found);
  return Answer::yes;
}

Propagation::Answer Propagation::at_least(const Alive& alive, double limit, std::int64_t nodes,
                                          std::int32_t count) const {
  Search search{.limit = limit, .nodes = nodes, .wanted = count};
  if (!descend(alive, search)) return Answer::no;
  return search.wanted > 0 ? Answer::undecided : Answer::yes;
}

}  // namespace tessera::train
