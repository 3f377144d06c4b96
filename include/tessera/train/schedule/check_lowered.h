// The strict checker of lists with communication.
//
// Rendezvous execution: a maximal run of neighbouring SEND and RECV cells of a rank is one group, posted
// together and done when every one of its messages has met its other end; nothing else of the rank runs
// meanwhile. A list that ends under this model ends on any transport, however small its buffers.
#pragma once

#include <cstdint>
#include <optional>

#include "tessera/core/base/result.h"
#include "tessera/train/schedule/check_schedule.h"
#include "tessera/train/schedule/lowered_list.h"

namespace tessera::train {

/// Two messages from one rank to another that are sent in one order and received in the other, inside groups
/// that do not care. A transport that matches by order alone (NCCL, Gloo with one tag) hands over the wrong
/// tensor.
struct Overtaking {
  Cell send;  ///< the first such message
  RankId from;
  RankId to;
};

struct LoweredFacts {
  ScheduleFacts compute;
  std::int64_t messages = 0;  ///< a send and its receive count one
  std::int64_t groups = 0;
  std::int64_t largest_group = 0;  ///< cells
  std::optional<Overtaking> overtaking;
};

/// Proves what check_schedule proves of the compute actions, and: every message that crosses ranks is sent
/// and received exactly once, after the action that makes its data and before the one that needs it; none is
/// sent within a rank; computing falls between a stage's UNSHARD and RESHARD and REDUCE_GRAD comes after the
/// stage's last gradient, where the list has these; and rendezvous execution ends. It ends exactly when the
/// graph over all communicators (nodes: messages and collectives; edges: each rank's launch order, groups as
/// one) has no cycle. A failure is infeasible and names the cell, or the cycle of waiting cells. Linear in
/// the cells; memory is bounded by their number.
[[nodiscard]] Result<LoweredFacts> check_lowered(const LoweredList& list);

}  // namespace tessera::train
