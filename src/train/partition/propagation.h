// What can still be chosen when no pair may be slower than a limit: arc consistency, and search on top of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "labelling.h"

namespace tessera::train {

/// Per stage and value: may it still be chosen.
using Alive = std::vector<std::vector<std::uint8_t>>;

class Propagation {
 public:
  explicit Propagation(const Labelling& labelling);

  [[nodiscard]] Alive everything() const;
  /// Takes away every value without support: a neighbour that tiles, a partner in each pair within `limit`,
  /// memory with the rank's other stages at their least. False when a stage has nothing left.
  /// `moved`: only the two stages at this boundary have lost values since the last time; 0 = any may have.
  [[nodiscard]] bool narrow(Alive& alive, double limit, std::size_t moved = 0) const;

  enum class Answer : std::uint8_t { yes, no, undecided };
  /// Is there a choice of one value per stage within the limit? Depth first, smallest boundary first.
  [[nodiscard]] Answer search(const Alive& alive, double limit, std::int64_t nodes,
                              std::vector<std::int32_t>& found) const;
  /// Are there at least `count`?
  [[nodiscard]] Answer at_least(const Alive& alive, double limit, std::int64_t nodes,
                                std::int32_t count) const;

 private:
  struct Search {
    double limit = 0;
    std::int64_t nodes = 0;
    std::int32_t wanted = 1;
    std::vector<std::int32_t> found;
  };
  // True when enough was found; `nodes` runs out at 0.
  bool descend(const Alive& alive, Search& search) const;
  [[nodiscard]] bool supported(const std::vector<std::uint64_t>& bits, std::size_t stage,
                               std::size_t value) const noexcept;
  void prepare(double limit) const;

  // Which values may stand beside which at one limit, as bits; made again when the limit or a time changes.
  struct Partners {
    std::vector<std::uint64_t> of_first, of_second;  // per value of the one, the other's values
  };
  const Labelling& labelling_;
  std::vector<std::size_t> word_;  // per stage: its first word of bits
  mutable std::vector<Partners> partners_;
  mutable double limit_ = 0;
  mutable std::int64_t timed_ = -1;
};

/// Places of each boundary that some alive value uses, as bits.
[[nodiscard]] std::vector<std::uint64_t> open_places(const Labelling& labelling, const Alive& alive);

/// The boundary with fewest open places, of those with a choice; 0 when none has one.
[[nodiscard]] std::size_t boundary_to_branch(const std::vector<std::uint64_t>& open) noexcept;

/// Without every value that puts the boundary elsewhere.
[[nodiscard]] Alive with_place(const Labelling& labelling, Alive alive, std::size_t boundary,
                               std::size_t place);

/// The value of each stage when it has only one left.
[[nodiscard]] std::vector<std::int32_t> only_values(const Alive& alive);

}  // namespace tessera::train
