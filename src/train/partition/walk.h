// The walk over the ranks: overlapped pairs sit on one rank, so between two ranks only the boundaries that
// both touch have to be remembered.
//
// A track is one chunk of every rank: upward tracks go to later stages from rank to rank, downward ones (the
// second half of a V) to earlier ones. Within a rank the stages are taken one by one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "labelling.h"

namespace tessera::train {

/// How the ends of two tracks belong together.
struct Join {
  enum class Kind : std::uint8_t {
    stitch,      ///< where `from` ends on the last rank, `to` begins on the first
    same_start,  ///< both begin at the same place on the first rank
    same_end,    ///< both end at the same place on the last rank
  };
  Kind kind = Kind::stitch;
  std::size_t from = 0, to = 0;  ///< tracks
  std::size_t boundary = 0;
};

/// One stage of the walk.
struct WalkStep {
  std::size_t stage = 0;
  std::size_t track = 0;
  std::size_t rank = 0;
  std::size_t entry = 0, exit = 0;  ///< boundaries towards the previous and the next rank
  bool last_of_rank = false;
  /// Tracks of this rank already taken that this stage overlaps with, and the pair's index.
  struct Met {
    std::size_t track = 0, pair = 0;
  };
  std::vector<Met> met;
  /// Tracks of this rank, taken up to and with this step, that a later stage of the rank still meets.
  std::vector<std::size_t> open;
};

struct Walk {
  std::size_t tracks = 0;
  std::vector<WalkStep> steps;  ///< rank by rank
  std::vector<Join> joins;
};

/// Nothing when the placement is not made of tracks.
[[nodiscard]] std::optional<Walk> walk_of(const Labelling& labelling);

}  // namespace tessera::train
