// What each row of a lowered list can be held to by itself: since a stage lives on one rank, all but the
// meeting of messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stage_links.h"
#include "tessera/core/base/result.h"
#include "tessera/train/schedule/check_schedule.h"
#include "tessera/train/schedule/lowered_list.h"

namespace tessera::train {

class RowRules {
 public:
  /// The list must have a sound frame and no more (stage, microbatch) than cells. Keeps references.
  RowRules(const LoweredList& list, const std::vector<StageLinks>& links);

  /// Walks one row; adds its peaks and actions to the facts.
  [[nodiscard]] Status check_row(std::size_t rank, ScheduleFacts& facts);
  /// After all rows: did every (stage, microbatch) run each pass?
  [[nodiscard]] bool actions_complete() const noexcept { return chunks_ == 3 * seen_.size(); }
  [[nodiscard]] Status check_messages_complete() const;
  [[nodiscard]] Status check_sharding_complete() const;

 private:
  struct Chunk {
    ActionKind kind;
    StageId stage;
    MicrobatchId microbatch;
  };
  struct Place {
    std::size_t rank, index;
  };
  struct Sharding {
    bool computed = false;  ///< has run something
    bool gathers = false;   ///< UNSHARD stands somewhere before
    bool gathered = false;  ///< now
    bool reduced = false;
  };
  /// What is wrong with a cell. The walk only finds out which; the sentence is made when it is needed.
  enum class Fault : std::uint8_t {
    none,
    other_stage,
    other_microbatch,
    other_rank,
    bad_pair,
    before_receive,
    before_neighbour,
    before_own,
    doubled,
    without_weights,
    after_reduction,
    no_other_end,
    stays_on_rank,
    doubled_message,
    before_data,
    late_gathering,
    doubled_gathering,
    nothing_to_drop,
    doubled_reduction,
  };
  [[nodiscard]] Fault try_cell(const Cell& cell, std::size_t rank) noexcept;
  [[nodiscard]] Fault try_chunk(const Chunk& chunk, std::size_t rank) noexcept;
  [[nodiscard]] Fault try_message(const Cell& cell, std::size_t rank) noexcept;
  [[nodiscard]] Fault try_collective(const Cell& cell, std::size_t rank) noexcept;
  [[nodiscard]] Fault try_place(StageId stage, MicrobatchId microbatch, std::size_t rank) const noexcept;
  [[nodiscard]] std::unexpected<Error> explain(Fault fault, Place place) const;
  [[nodiscard]] std::string sentence(Fault fault, const Cell& cell, std::size_t rank) const;
  [[nodiscard]] std::string sentence(Fault fault, const Chunk& chunk) const;
  [[nodiscard]] std::size_t slot(StageId stage, MicrobatchId microbatch) const noexcept {
    return stage.index() * microbatches_ + microbatch.index();
  }

  const LoweredList& list_;
  const std::vector<StageLinks>& links_;
  std::size_t microbatches_;
  std::vector<std::uint8_t> seen_;  ///< per (stage, microbatch), the bits of lowered_rules.cc
  std::vector<Sharding> sharding_;  ///< per stage
  std::size_t chunks_ = 0;
  std::size_t messages_ = 0;  ///< sends and receives
  Chunk failed_{};            ///< the half of a pair that a fault is about
};

}  // namespace tessera::train
