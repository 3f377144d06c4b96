#include "labelling.h"

#include <algorithm>

#include "ranges.h"

namespace tessera::train {

Labelling::Labelling(const PartitionProblem& problem, StageCosts& costs)
    : problem_(problem), costs_(costs), places_(all_places(problem)) {
  make_values();
  make_pairs();
  make_memory();
}

BlockRange Labelling::range(std::size_t stage, std::size_t value) const noexcept {
  const StageValue& v = values_[stage][value];
  return {places_[stage][v.begin], places_[stage + 1][v.end]};
}

void Labelling::make_values() {
  const std::size_t stages = places_.size() - 1;
  values_.resize(stages);
  value_at_.resize(stages);
  for (std::size_t s = 0; s < stages; ++s) {
    const auto& begins = places_[s];
    const auto& ends = places_[s + 1];
    value_at_[s].assign(begins.size() * ends.size(), -1);
    for (std::size_t b = 0; b < begins.size(); ++b)
      for (std::size_t e = 0; e < ends.size(); ++e) {
        if (begins[b] > ends[e] || (begins[b] == ends[e] && !problem_.empty_stages)) continue;
        value_at_[s][b * ends.size() + e] = static_cast<std::int32_t>(values_[s].size());
        values_[s].push_back({static_cast<std::uint8_t>(b), static_cast<std::uint8_t>(e)});
      }
  }
}

void Labelling::make_pairs() {
  const std::size_t stages = values_.size();
  self_.assign(stages, 0);
  alone_.assign(stages, 0);
  pairs_of_.resize(stages);
  for (const AloneStage& alone : problem_.graph.alone) alone_[alone.stage.index()] += alone.multiplicity;
  for (const MergedPair& merged : merged_pairs(problem_.graph)) {
    const std::size_t first = merged.first.index(), second = merged.second.index();
    if (merged.self()) {
      self_[first] = merged.first_forward;
      continue;
    }
    pairs_of_[first].push_back(pairs_.size());
    pairs_of_[second].push_back(pairs_.size());
    pairs_.push_back({.first = first,
                      .second = second,
                      .forward_first = merged.first_forward,
                      .forward_second = merged.second_forward});
  }
  for (StagePair& pair : pairs_) {
    const StageId first(static_cast<std::int64_t>(pair.first)),
        second(static_cast<std::int64_t>(pair.second));
    const std::size_t rows = values_[pair.first].size(), columns = values_[pair.second].size();
    pair.time.resize(rows * columns);
    pair.work.resize(rows * columns);
    pair.known.assign(rows * columns, 0);
    for (std::size_t p = 0; p < rows; ++p)
      for (std::size_t q = 0; q < columns; ++q) {
        const BlockRange a = range(pair.first, p), b = range(pair.second, q);
        const double one = pair.forward_first > 0 ? costs_.bound({first, a, second, b}).value() : 0;
        const double two = pair.forward_second > 0 ? costs_.bound({second, b, first, a}).value() : 0;
        pair.time[p * columns + q] = std::max(one, two);
        pair.work[p * columns + q] =
            static_cast<double>(pair.forward_first) * one + static_cast<double>(pair.forward_second) * two;
      }
  }
  time_.resize(stages);
  work_.resize(stages);
  self_known_.resize(stages);
  for (std::size_t s = 0; s < stages; ++s) {
    const StageId stage(static_cast<std::int64_t>(s));
    for (std::size_t v = 0; v < values_[s].size(); ++v) {
      const BlockRange blocks = range(s, v);
      const double alone = alone_[s] > 0 ? costs_.alone(stage, blocks).value() : 0;
      const double self = self_[s] > 0 ? costs_.bound({stage, blocks, stage, blocks}).value() : 0;
      time_[s].push_back(std::max(alone, self));
      work_[s].push_back(static_cast<double>(alone_[s]) * alone + static_cast<double>(self_[s]) * self);
    }
    if (self_[s] > 0) self_known_[s].assign(values_[s].size(), 0);
  }
}

void Labelling::make_memory() {
  memory_of_.resize(values_.size());
  if (problem_.budget.empty()) return;
  const std::vector<std::vector<StageId>> on_rank = stages_of_ranks(problem_.graph);
  for (std::size_t r = 0; r < on_rank.size(); ++r) {
    for (const std::vector<std::int32_t>& live : problem_.graph.live[r]) {
      MemoryRow row{.rank = r, .budget = problem_.budget[r].value()};
      for (std::size_t k = 0; k < on_rank[r].size(); ++k) {
        const StageId stage = on_rank[r][k];
        const std::size_t s = stage.index();
        row.stages.push_back(s);
        std::vector<double>& need = row.need.emplace_back();
        for (std::size_t v = 0; v < values_[s].size(); ++v)
          need.push_back(costs_.held(stage, range(s, v)).value() +
                         live[k] * costs_.activation(stage, range(s, v)).value());
      }
      // A row that even the heaviest ranges satisfy says nothing.
      double most = 0;
      for (const auto& need : row.need) most += need.empty() ? 0 : *std::ranges::max_element(need);
      if (most <= row.budget) continue;
      for (std::size_t k = 0; k < row.stages.size(); ++k)
        memory_of_[row.stages[k]].push_back({.row = memory_.size(), .place = k});
      memory_.push_back(std::move(row));
    }
  }
}

void Labelling::time_alive(std::span<const std::vector<std::uint8_t>> alive, double limit) {
  std::vector<PairQuery> queries;
  std::vector<double*> self;
  const auto id = [](std::size_t s) { return StageId(static_cast<std::int64_t>(s)); };
  for (std::size_t s = 0; s < self_known_.size(); ++s)
    for (std::size_t v = 0; v < self_known_[s].size(); ++v) {
      if (self_known_[s][v] != 0 || alive[s][v] == 0 || time_[s][v] > limit) continue;
      queries.push_back({id(s), range(s, v), id(s), range(s, v)});
    }
  const std::size_t selves = queries.size();
  for (const StagePair& pair : pairs_) {
    const std::size_t columns = values_[pair.second].size();
    for (std::size_t p = 0; p < values_[pair.first].size(); ++p) {
      if (alive[pair.first][p] == 0) continue;
      for (std::size_t q = 0; q < columns; ++q) {
        if (alive[pair.second][q] == 0 || pair.known[p * columns + q] != 0) continue;
        if (pair.time[p * columns + q] > limit) continue;
        const BlockRange a = range(pair.first, p), b = range(pair.second, q);
        if (pair.forward_first > 0) queries.push_back({id(pair.first), a, id(pair.second), b});
        if (pair.forward_second > 0) queries.push_back({id(pair.second), b, id(pair.first), a});
      }
    }
  }
  if (queries.empty()) return;
  timed_ += std::ssize(queries);
  const std::vector<Seconds> times = costs_.times(queries);
  std::size_t next = 0;
  for (std::size_t s = 0; s < self_known_.size() && next < selves; ++s)
    for (std::size_t v = 0; v < self_known_[s].size(); ++v) {
      if (self_known_[s][v] != 0 || alive[s][v] == 0 || time_[s][v] > limit) continue;
      const double alone = alone_[s] > 0 ? costs_.alone(id(s), range(s, v)).value() : 0;
      const double own = times[next++].value();
      time_[s][v] = std::max(alone, own);
      work_[s][v] = static_cast<double>(alone_[s]) * alone + static_cast<double>(self_[s]) * own;
      self_known_[s][v] = 1;
    }
  for (StagePair& pair : pairs_) {
    const std::size_t columns = values_[pair.second].size();
    for (std::size_t p = 0; p < values_[pair.first].size(); ++p) {
      if (alive[pair.first][p] == 0) continue;
      for (std::size_t q = 0; q < columns; ++q) {
        const std::size_t cell = p * columns + q;
        if (alive[pair.second][q] == 0 || pair.known[cell] != 0 || pair.time[cell] > limit) continue;
        const double one = pair.forward_first > 0 ? times[next++].value() : 0;
        const double two = pair.forward_second > 0 ? times[next++].value() : 0;
        pair.time[cell] = std::max(one, two);
        pair.work[cell] =
            static_cast<double>(pair.forward_first) * one + static_cast<double>(pair.forward_second) * two;
        pair.known[cell] = 1;
      }
    }
  }
}

bool Labelling::fits(std::span<const std::int32_t> chosen) const noexcept {
  return std::ranges::all_of(memory_, [&](const MemoryRow& row) {
    double need = 0;
    for (std::size_t k = 0; k < row.stages.size(); ++k)
      need += row.need[k][static_cast<std::size_t>(chosen[row.stages[k]])];
    return need <= row.budget;
  });
}

Partition Labelling::partition(std::span<const std::int32_t> chosen) const {
  Partition out;
  for (std::size_t s = 0; s < chosen.size(); ++s)
    out.stages.push_back(range(s, static_cast<std::size_t>(chosen[s])));
  return out;
}

std::vector<std::int32_t> Labelling::chosen(const Partition& partition) const {
  std::vector<std::int32_t> out;
  if (partition.stages.size() != stages()) return {};
  for (std::size_t s = 0; s < stages(); ++s) {
    const auto begin = std::ranges::find(places_[s], partition.stages[s].begin);
    const auto end = std::ranges::find(places_[s + 1], partition.stages[s].end);
    if (begin == places_[s].end() || end == places_[s + 1].end()) return {};
    const std::int32_t value = value_at(s, static_cast<std::size_t>(begin - places_[s].begin()),
                                        static_cast<std::size_t>(end - places_[s + 1].begin()));
    if (value < 0) return {};
    out.push_back(value);
  }
  return out;
}

}  // namespace tessera::train
