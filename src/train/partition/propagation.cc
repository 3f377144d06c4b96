#include "propagation.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tessera::train {
namespace {

constexpr double kRounding = 1e-12;

}  // namespace

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

std::size_t boundary_to_branch(const std::vector<std::uint64_t>& open) noexcept {
  std::size_t boundary = 0;
  int fewest = 65;
  for (std::size_t b = 1; b + 1 < open.size(); ++b) {
    const int choices = std::popcount(open[b]);
    if (choices > 1 && choices < fewest) fewest = choices, boundary = b;
  }
  return boundary;
}

Alive with_place(const Labelling& labelling, Alive alive, std::size_t boundary, std::size_t place) {
  for (std::size_t v = 0; v < alive[boundary].size(); ++v)
    if (labelling.values(boundary)[v].begin != place) alive[boundary][v] = 0;
  for (std::size_t v = 0; v < alive[boundary - 1].size(); ++v)
    if (labelling.values(boundary - 1)[v].end != place) alive[boundary - 1][v] = 0;
  return alive;
}

std::vector<std::int32_t> only_values(const Alive& alive) {
  std::vector<std::int32_t> out;
  for (const auto& stage : alive)
    out.push_back(static_cast<std::int32_t>(std::ranges::find(stage, 1) - stage.begin()));
  return out;
}

Propagation::Propagation(const Labelling& labelling) : labelling_(labelling), word_{0} {
  for (std::size_t s = 0; s < labelling.stages(); ++s)
    word_.push_back(word_.back() + (labelling.values(s).size() + 63) / 64);
}

Alive Propagation::everything() const {
  Alive alive(labelling_.stages());
  for (std::size_t s = 0; s < alive.size(); ++s) alive[s].assign(labelling_.values(s).size(), 1);
  return alive;
}

void Propagation::prepare(double limit) const {
  if (timed_ == labelling_.timed() && limit_ == limit) return;
  timed_ = labelling_.timed();
  limit_ = limit;
  const auto pairs = labelling_.pairs();
  partners_.resize(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const StagePair& pair = pairs[i];
    const std::size_t rows = labelling_.values(pair.first).size();
    const std::size_t columns = labelling_.values(pair.second).size();
    const std::size_t row_words = word_[pair.first + 1] - word_[pair.first];
    const std::size_t column_words = word_[pair.second + 1] - word_[pair.second];
    Partners& partners = partners_[i];
    partners.of_first.assign(rows * column_words, 0);
    partners.of_second.assign(columns * row_words, 0);
    for (std::size_t p = 0; p < rows; ++p)
      for (std::size_t q = 0; q < columns; ++q) {
        const std::uint64_t within = pair.time[p * columns + q] <= limit ? 1 : 0;
        partners.of_first[p * column_words + q / 64] |= within << (q % 64);
        partners.of_second[q * row_words + p / 64] |= within << (p % 64);
      }
  }
}

bool Propagation::supported(const std::vector<std::uint64_t>& bits, std::size_t stage,
                            std::size_t value) const noexcept {
  for (const std::size_t index : labelling_.pairs_of(stage)) {
    const StagePair& pair = labelling_.pairs()[index];
    const std::size_t other = pair.first == stage ? pair.second : pair.first;
    const Partners& partners = partners_[index];
    const std::size_t words = word_[other + 1] - word_[other];
    const std::uint64_t* mine =
        (pair.first == stage ? partners.of_first : partners.of_second).data() + value * words;
    std::uint64_t common = 0;
    for (std::size_t w = 0; w < words; ++w) common |= mine[w] & bits[word_[other] + w];
    if (common == 0) return false;
  }
  return true;
}

namespace {

// What the values alive say of their boundaries and of memory, kept up to date as values go.
class Frontier {
 public:
  Frontier(const Labelling& labelling, const Alive& alive)
      : labelling_(labelling),
        begins_(labelling.stages() + 1, ~std::uint64_t{0}),
        ends_(labelling.stages() + 1, ~std::uint64_t{0}),
        total_(labelling.memory().size(), 0.0) {
    for (std::size_t s = 0; s < labelling.stages(); ++s) {
      first_least_.push_back(least_.size());
      least_.resize(least_.size() + labelling.memory_of(s).size(), 0.0);
    }
    for (std::size_t s = 0; s < labelling.stages(); ++s) refresh(s, alive[s]);
  }

  void refresh(std::size_t stage, const std::vector<std::uint8_t>& alive) {
    const auto values = labelling_.values(stage);
    std::uint64_t begins = 0, ends = 0;
    for (std::size_t v = 0; v < values.size(); ++v) {
      if (alive[v] == 0) continue;
      begins |= std::uint64_t{1} << values[v].begin;
      ends |= std::uint64_t{1} << values[v].end;
    }
    begins_[stage] = begins;
    ends_[stage + 1] = ends;
    double* mine = least_.data() + first_least_[stage];
    for (const MemoryOfStage& of : labelling_.memory_of(stage)) {
      const std::vector<double>& need = labelling_.memory()[of.row].need[of.place];
      double least = kForever;
      for (std::size_t v = 0; v < alive.size(); ++v)
        if (alive[v] != 0) least = std::min(least, need[v]);
      total_[of.row] += least - *mine;
      *mine++ = least;
    }
  }

  [[nodiscard]] bool tiles(std::size_t stage, const StageValue& value) const noexcept {
    return (begins_[stage] & ends_[stage]) >> value.begin &
           (begins_[stage + 1] & ends_[stage + 1]) >> value.end & 1;
  }
  /// Takes away the values that do not fit beside the rank's other stages at their least.
  bool drop_too_large(std::size_t stage, std::vector<std::uint8_t>& alive) const noexcept {
    bool lost = false;
    const double* mine = least_.data() + first_least_[stage];
    for (const MemoryOfStage& of : labelling_.memory_of(stage)) {
      const MemoryRow& row = labelling_.memory()[of.row];
      const std::vector<double>& need = row.need[of.place];
      // Sums that were kept up to date are off in the last bits.
      const double room = (row.budget - (total_[of.row] - *mine++)) + kRounding * row.budget;
      for (std::size_t v = 0; v < alive.size(); ++v) {
        if (alive[v] == 0 || need[v] <= room) continue;
        alive[v] = 0;
        lost = true;
      }
    }
    return lost;
  }

 private:
  const Labelling& labelling_;
  std::vector<std::uint64_t> begins_, ends_;  // per boundary, of the stage after it and before it
  std::vector<std::size_t> first_least_;      // per stage
  std::vector<double> least_;                 // per stage and memory row of it
  std::vector<double> total_;                 // per memory row
};

}  // namespace

bool Propagation::narrow(Alive& alive, double limit, std::size_t moved) const {
  prepare(limit);
  const std::size_t stages = labelling_.stages();
  Frontier frontier(labelling_, alive);
  std::vector<std::uint64_t> bits(word_.back(), 0);
  for (std::size_t s = 0; s < stages; ++s)
    for (std::size_t v = 0; v < alive[s].size(); ++v)
      bits[word_[s] + v / 64] |= std::uint64_t{alive[s][v]} << (v % 64);
  std::vector<std::uint8_t> dirty(stages, moved == 0 ? 1 : 0);
  const auto disturb = [&](std::size_t s) {
    if (s > 0) dirty[s - 1] = 1;
    if (s + 1 < stages) dirty[s + 1] = 1;
    for (const std::size_t index : labelling_.pairs_of(s)) {
      const StagePair& pair = labelling_.pairs()[index];
      dirty[pair.first == s ? pair.second : pair.first] = 1;
    }
    for (const MemoryOfStage& of : labelling_.memory_of(s))
      for (const std::size_t mate : labelling_.memory()[of.row].stages) dirty[mate] = 1;
  };
  if (moved > 0) {
    disturb(moved - 1);
    disturb(moved);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t s = 0; s < stages; ++s) {
      if (dirty[s] == 0) continue;
      dirty[s] = 0;
      const auto values = labelling_.values(s);
      bool any = false;
      bool lost = frontier.drop_too_large(s, alive[s]);
      for (std::size_t v = 0; v < values.size(); ++v) {
        if (alive[s][v] == 0) {
          bits[word_[s] + v / 64] &= ~(std::uint64_t{1} << (v % 64));
          continue;
        }
        if (labelling_.time(s, v) <= limit && frontier.tiles(s, values[v]) && supported(bits, s, v)) {
          any = true;
        } else {
          alive[s][v] = 0;
          bits[word_[s] + v / 64] &= ~(std::uint64_t{1} << (v % 64));
          lost = true;
        }
      }
      if (!any) return false;
      if (!lost) continue;
      changed = true;
      frontier.refresh(s, alive[s]);
      disturb(s);
      dirty[s] = 0;
    }
  }
  return true;
}

bool Propagation::descend(const Alive& alive, Search& search) const {
  if (search.nodes-- <= 0) return true;
  const std::vector<std::uint64_t> open = open_places(labelling_, alive);
  const std::size_t boundary = boundary_to_branch(open);
  if (boundary == 0) {
    std::vector<std::int32_t> chosen = only_values(alive);
    // What was narrowed may be over a budget by rounding.
    if (!labelling_.fits(chosen)) return false;
    search.found = std::move(chosen);
    return --search.wanted <= 0;
  }
  for (std::uint64_t set = open[boundary]; set != 0; set &= set - 1) {
    const auto place = static_cast<std::size_t>(std::countr_zero(set));
    Alive next = with_place(labelling_, alive, boundary, place);
    if (narrow(next, search.limit, boundary) && descend(next, search)) return true;
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
