// Seeded random partition problems, small enough to try every partition.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tessera/train/partition/solve_partition.h"
#include "tessera/train/schedule/schedule_template.h"
#include "train/random.h"

namespace tessera::train::testing {

/// Costs drawn from a hash of the query: any range of any stage has its own, the same in every call.
class RandomCosts : public StageCosts {
 public:
  struct Traits {
    std::uint64_t seed = 0;
    int blocks = 0;
    bool ties = false;       ///< small whole numbers
    double noise = 1;        ///< 0: times add up over the blocks; 1: each pair is drawn alone
    double bound_least = 0;  ///< bound() is between this share of the time and all of it
    bool monotone_memory = true;
  };
  explicit RandomCosts(Traits traits) : traits_(traits) {
    for (int b = 0; b < traits.blocks; ++b) weight_.push_back(0.2 + unit({11, b}));
  }

  [[nodiscard]] Seconds bound(const PairQuery& query) const override {
    const double share = traits_.bound_least + (1 - traits_.bound_least) * unit(key(2, query));
    return time(query) * std::min(1.0, share);
  }
  [[nodiscard]] std::vector<Seconds> times(std::span<const PairQuery> queries) override {
    std::vector<Seconds> out;
    for (const PairQuery& query : queries) out.push_back(time(query));
    asked += static_cast<std::int64_t>(queries.size());
    return out;
  }
  [[nodiscard]] Seconds alone(StageId stage, BlockRange blocks) const override {
    return rounded(2 * sum(blocks) * (1 - traits_.noise / 2) +
                   traits_.noise * unit({3, stage.value(), blocks.begin, blocks.end}));
  }
  [[nodiscard]] Bytes held(StageId stage, BlockRange blocks) const override {
    if (!traits_.monotone_memory)
      return Bytes(std::floor(40 * unit({4, stage.value(), blocks.begin, blocks.end})));
    return Bytes(std::floor(10 * sum(blocks)));
  }
  [[nodiscard]] Bytes activation(StageId stage, BlockRange blocks) const override {
    if (!traits_.monotone_memory)
      return Bytes(std::floor(9 * unit({5, stage.value(), blocks.begin, blocks.end})));
    return Bytes(blocks.end - blocks.begin);
  }

  std::int64_t asked = 0;  ///< queries that times() answered

 private:
  using Key = std::vector<std::int32_t>;
  static Key key(std::int32_t kind, const PairQuery& q) {
    return {kind,
            q.forward.value(),
            q.forward_blocks.begin,
            q.forward_blocks.end,
            q.backward.value(),
            q.backward_blocks.begin,
            q.backward_blocks.end};
  }
  [[nodiscard]] double unit(const Key& key) const {
    std::uint64_t h = traits_.seed * 0x9E3779B97F4A7C15u + 1;
    for (const std::int32_t k : key) {
      h ^= static_cast<std::uint64_t>(k) + 0x9E3779B97F4A7C15u + (h << 6) + (h >> 2);
      h *= 0xBF58476D1CE4E5B9u;
      h ^= h >> 31;
    }
    return static_cast<double>(h >> 11) * 0x1p-53;
  }
  [[nodiscard]] double sum(BlockRange blocks) const {
    double out = 0;
    for (std::int32_t b = blocks.begin; b < blocks.end; ++b) out += weight_[static_cast<std::size_t>(b)];
    return out;
  }
  [[nodiscard]] Seconds time(const PairQuery& q) const {
    const double serial = sum(q.forward_blocks) + 2 * sum(q.backward_blocks);
    return rounded((1 - traits_.noise) * serial + traits_.noise * 10 * unit(key(1, q)));
  }
  [[nodiscard]] Seconds rounded(double time) const { return Seconds(traits_.ties ? std::round(time) : time); }

  Traits traits_;
  std::vector<double> weight_;
};

struct RandomProblem {
  PartitionProblem problem;
  std::unique_ptr<RandomCosts> costs;
  std::string words;  ///< for failure messages
};

inline Bytes rank_need(const PartitionProblem& problem, const StageCosts& costs, const Partition& partition,
                       std::size_t rank) {
  Bytes most;
  for (const auto& live : problem.graph.live[rank]) {
    Bytes need;
    std::size_t entry = 0;
    for (std::size_t s = 0; s < partition.stages.size(); ++s)
      if (problem.graph.rank_of_stage[s].index() == rank) {
        const StageId stage(static_cast<std::int64_t>(s));
        need += costs.held(stage, partition.stages[s]) +
                costs.activation(stage, partition.stages[s]) * static_cast<double>(live[entry++]);
      }
    most = std::max(most, need);
  }
  return most;
}

/// Some partition of the places, or none when a few tries find none.
inline std::optional<Partition> some_partition(Random& random, const PartitionProblem& problem) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    Partition out;
    std::int32_t begin = 0;
    const std::int32_t step = problem.empty_stages ? 0 : 1;
    bool good = true;
    for (const auto& places : problem.places) {
      std::vector<std::int32_t> open;
      std::ranges::copy_if(places, std::back_inserter(open),
                           [&](std::int32_t p) { return p >= begin + step; });
      if (open.empty()) {
        good = false;
        break;
      }
      const std::int32_t end = open[static_cast<std::size_t>(random.below(static_cast<int>(open.size())))];
      out.stages.push_back({begin, end});
      begin = end;
    }
    if (!good || problem.blocks < begin + step) continue;
    out.stages.push_back({begin, problem.blocks});
    return out;
  }
  return std::nullopt;
}

enum class Placement { interleaved, v_shape, arbitrary };

/// Any pairs within a rank, self-loops and both directions included; live vectors of any kind.
inline OverlapGraph arbitrary_graph(Random& random, std::vector<RankId> rank_of_stage, int ranks) {
  OverlapGraph graph;
  const auto stages = static_cast<int>(rank_of_stage.size());
  std::vector<char> paired(rank_of_stage.size(), 0);
  const double density = 0.1 + 0.8 * random.unit();
  for (int f = 0; f < stages; ++f)
    for (int b = 0; b < stages; ++b)
      if (rank_of_stage[static_cast<std::size_t>(f)] == rank_of_stage[static_cast<std::size_t>(b)] &&
          random.chance(density)) {
        graph.edges.push_back({StageId(f), StageId(b), random.between(1, 5)});
        paired[static_cast<std::size_t>(f)] = paired[static_cast<std::size_t>(b)] = 1;
      }
  for (int s = 0; s < stages; ++s)
    if (paired[static_cast<std::size_t>(s)] == 0) graph.alone.push_back({StageId(s), random.between(1, 5)});
  for (int r = 0; r < ranks; ++r) {
    const auto chunks = static_cast<std::size_t>(std::ranges::count(rank_of_stage, RankId(r)));
    std::set<std::vector<std::int32_t>> vectors;
    const std::int32_t total = random.between(1, 6);  // of equal sum: none covers another
    for (int v = random.between(1, 3); v > 0; --v) {
      std::vector<std::int32_t> live(chunks, 0);
      for (std::int32_t i = 0; i < total && chunks > 0; ++i)
        ++live[static_cast<std::size_t>(random.below(static_cast<int>(chunks)))];
      vectors.insert(live);
    }
    graph.live.emplace_back(vectors.begin(), vectors.end());
  }
  graph.rank_of_stage = std::move(rank_of_stage);
  return graph;
}

inline OverlapGraph random_graph(Random& random, Placement placement, int pp, int vp, std::string& words) {
  if (placement == Placement::interleaved && random.chance(0.6)) {
    const Template schedule = random.chance(0.8)   ? Template::interleaved_overlap
                              : random.chance(0.5) ? Template::interleaved
                                                   : Template::one_f_one_b;
    const bool flat = schedule == Template::one_f_one_b;
    const TemplateSizes sizes{
        .pp = flat ? pp * vp : pp, .vp = flat ? 1 : vp, .microbatches = pp * vp * random.between(1, 3)};
    if (const Result<ActionList> actions = make_schedule(schedule, sizes)) {
      words += std::string(name(schedule)) + " ";
      return overlap_graph(*actions);
    }
  }
  std::vector<RankId> rank_of_stage;
  for (int s = 0; s < pp * vp; ++s) switch (placement) {
      case Placement::interleaved:
        rank_of_stage.emplace_back(s % pp);
        break;
      case Placement::v_shape:  // also W-shapes, where vp > 2
        rank_of_stage.emplace_back(s / pp % 2 == 0 ? s % pp : pp - 1 - s % pp);
        break;
      case Placement::arbitrary:
        rank_of_stage.emplace_back(random.below(pp));
        break;
    }
  words += "arbitrary pairs ";
  return arbitrary_graph(random, std::move(rank_of_stage), pp);
}

struct RandomProblemLimits {
  int most_ranks = 4;
  int most_chunks = 3;
  int most_stages = 8;
  double most_partitions = 3000;  ///< roughly
};

inline RandomProblem random_problem(std::uint64_t seed, const RandomProblemLimits& limits = {}) {
  Random random(seed);
  RandomProblem out;
  out.words = "seed " + std::to_string(seed) + ": ";
  const int pp = random.between(1, limits.most_ranks);
  const int vp = random.between(1, std::max(1, std::min(limits.most_chunks, limits.most_stages / pp)));
  const auto placement = static_cast<Placement>(random.below(3));
  PartitionProblem& problem = out.problem;
  problem.graph = random_graph(random, placement, pp, vp, out.words);
  const auto stages = static_cast<int>(problem.stages());
  problem.empty_stages = random.chance(0.25);

  // Windows of up to ±3 blocks around an uneven center.
  problem.blocks = stages + random.between(0, 3 * stages);
  double partitions = 1;
  for (int s = 1; s < stages; ++s) {
    const int left = std::max(1, stages - s);
    const double most = std::max(1.0, std::pow(limits.most_partitions / partitions, 1.0 / left));
    const int window = random.chance(0.1) ? 0 : random.between(0, std::min(3, static_cast<int>(most)));
    const int center = s * problem.blocks / stages + random.between(-1, 1);
    std::vector<std::int32_t> places;
    for (int b = std::max(problem.empty_stages ? 0 : 1, center - window);
         b <= std::min(problem.blocks - (problem.empty_stages ? 0 : 1), center + window); ++b)
      if (!random.chance(0.08)) places.push_back(b);  // a layer that cannot be cut
    if (places.empty()) places.push_back(std::clamp(center, 0, problem.blocks));
    while (partitions * static_cast<double>(places.size()) > limits.most_partitions && places.size() > 1)
      places.pop_back();
    partitions *= static_cast<double>(places.size());
    problem.places.push_back(std::move(places));
  }

  out.costs =
      std::make_unique<RandomCosts>(RandomCosts::Traits{.seed = seed,
                                                        .blocks = problem.blocks,
                                                        .ties = random.chance(0.4),
                                                        .noise = random.chance(0.5) ? 1 : random.unit(),
                                                        .bound_least = random.chance(0.3) ? 1 : random.unit(),
                                                        .monotone_memory = random.chance(0.7)});
  if (random.chance(0.6)) {
    const std::optional<Partition> fits = some_partition(random, problem);
    const double pressure = random.unit();
    for (std::size_t r = 0; r < problem.graph.live.size(); ++r) {
      const double need = fits ? rank_need(problem, *out.costs, *fits, r).value() : 20;
      const double factor = pressure < 0.3   ? 1.5
                            : pressure < 0.9 ? 1 + 0.2 * random.unit()
                                             : 0.6 + 0.4 * random.unit();
      problem.budget.emplace_back(std::floor(need * factor));
    }
    out.words += pressure < 0.3 ? "slack memory" : pressure < 0.9 ? "tight memory" : "too little memory";
  }
  return out;
}

}  // namespace tessera::train::testing
