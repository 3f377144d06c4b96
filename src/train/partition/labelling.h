// A PartitionProblem as tables: the ranges each stage may hold, and what pairs of ranges cost, timed on
// demand.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tessera/train/partition/partition_problem.h"

namespace tessera::train {

inline constexpr double kForever = std::numeric_limits<double>::infinity();

/// Most places of one boundary: sets of places are bits of one word.
inline constexpr std::size_t kMostPlaces = 64;
/// Most pairs of ranges in all tables, at 17 bytes each.
inline constexpr std::size_t kMostPairCells = 50'000'000;

/// A range a stage may hold, by place numbers of its two boundaries.
struct StageValue {
  std::uint8_t begin = 0, end = 0;
};

/// Two stages of one rank that overlap with each other in one or both directions.
struct StagePair {
  std::size_t first = 0, second = 0;
  std::int64_t forward_first = 0;   ///< times the first's forward meets the second's backward
  std::int64_t forward_second = 0;  ///< and the other way round
  std::vector<double> time;  ///< [first value][second value]: the larger direction; a bound until known
  std::vector<double> work;  ///< Σ multiplicity · T of both directions; likewise
  std::vector<std::uint8_t> known;
};

/// What must fit on a rank at once: held() of its stages and so many activations of each.
struct MemoryRow {
  std::size_t rank = 0;
  double budget = 0;
  std::vector<std::size_t> stages;
  std::vector<std::vector<double>> need;  ///< per stage, per value, bytes
};
/// Where a stage stands in a memory row.
struct MemoryOfStage {
  std::size_t row = 0, place = 0;
};

class Labelling {
 public:
  Labelling(const PartitionProblem& problem, StageCosts& costs);

  [[nodiscard]] std::size_t stages() const noexcept { return values_.size(); }
  /// Places of a boundary, 0 … stages(); the first and the last have one.
  [[nodiscard]] std::span<const std::int32_t> places(std::size_t boundary) const noexcept {
    return places_[boundary];
  }
  [[nodiscard]] std::span<const StageValue> values(std::size_t stage) const noexcept {
    return values_[stage];
  }
  /// −1 when the stage may not hold that range.
  [[nodiscard]] std::int32_t value_at(std::size_t stage, std::size_t begin, std::size_t end) const noexcept {
    return value_at_[stage][begin * places_[stage + 1].size() + end];
  }
  /// Of a stage by itself: alone, or its forward beside its own backward.
  [[nodiscard]] double time(std::size_t stage, std::size_t value) const noexcept {
    return time_[stage][value];
  }
  [[nodiscard]] double work(std::size_t stage, std::size_t value) const noexcept {
    return work_[stage][value];
  }
  [[nodiscard]] std::span<const StagePair> pairs() const noexcept { return pairs_; }
  [[nodiscard]] std::span<const std::size_t> pairs_of(std::size_t stage) const noexcept {
    return pairs_of_[stage];
  }
  [[nodiscard]] std::span<const MemoryRow> memory() const noexcept { return memory_; }
  [[nodiscard]] std::span<const MemoryOfStage> memory_of(std::size_t stage) const noexcept {
    return memory_of_[stage];
  }
  [[nodiscard]] const PartitionProblem& problem() const noexcept { return problem_; }
  [[nodiscard]] std::int64_t timed() const noexcept { return timed_; }

  /// Asks for every unknown time that may be at most `limit` between values that are alive.
  void time_alive(std::span<const std::vector<std::uint8_t>> alive, double limit);

  /// Does every rank stay within its budget? As the checker adds it up, to the last bit.
  [[nodiscard]] bool fits(std::span<const std::int32_t> chosen) const noexcept;
  /// From one value per stage, which must tile.
  [[nodiscard]] Partition partition(std::span<const std::int32_t> chosen) const;
  /// The values of a partition; empty when it is not within the places.
  [[nodiscard]] std::vector<std::int32_t> chosen(const Partition& partition) const;

 private:
  [[nodiscard]] BlockRange range(std::size_t stage, std::size_t value) const noexcept;
  void make_values();
  void make_pairs();
  void make_memory();

  const PartitionProblem& problem_;
  StageCosts& costs_;
  std::vector<std::vector<std::int32_t>> places_;
  std::vector<std::vector<StageValue>> values_;
  std::vector<std::vector<std::int32_t>> value_at_;
  std::vector<std::vector<double>> time_, work_;
  std::vector<std::vector<std::uint8_t>> self_known_;  // empty where a stage never meets itself
  std::vector<std::int64_t> self_, alone_;             // multiplicities
  std::vector<StagePair> pairs_;
  std::vector<std::vector<std::size_t>> pairs_of_;
  std::vector<std::vector<MemoryOfStage>> memory_of_;
  std::vector<MemoryRow> memory_;
  std::int64_t timed_ = 0;
};

}  // namespace tessera::train
