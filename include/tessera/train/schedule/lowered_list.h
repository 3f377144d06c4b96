// An action list with its communication: what each rank computes, sends, receives and gathers, in order.
//
// Letters are those of torch.distributed.pipelining. "2SEND_F5" is rank_of_stage[2] sending the output of
// stage 2 for microbatch 5; "3RECV_F5" on the rank of stage 3 is its other end. "3SEND_B5" sends a gradient
// to stage 2, where "2RECV_B5" takes it. Neighbouring stages on one rank hand over without a message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/train/schedule/action.h"

namespace tessera::train {

enum class CellKind : std::uint8_t {
  compute,
  send_forward,      ///< SEND_F
  receive_forward,   ///< RECV_F
  send_backward,     ///< SEND_B
  receive_backward,  ///< RECV_B
  unshard,           ///< UNSHARD: gather a stage's weights from its data-parallel group
  reshard,           ///< RESHARD: drop them again; no communication
  reduce_gradient,   ///< REDUCE_GRAD: reduce a stage's gradients over its data-parallel group
};
[[nodiscard]] constexpr bool is_message(CellKind kind) noexcept {
  return kind >= CellKind::send_forward && kind <= CellKind::receive_backward;
}
[[nodiscard]] constexpr bool is_send(CellKind kind) noexcept {
  return kind == CellKind::send_forward || kind == CellKind::send_backward;
}
/// Of a message: does it carry an activation, not a gradient?
[[nodiscard]] constexpr bool is_forward(CellKind kind) noexcept {
  return kind == CellKind::send_forward || kind == CellKind::receive_forward;
}

/// One step of a rank.
struct Cell {
  CellKind kind = CellKind::compute;
  Action action;  ///< of a message its stage and microbatch, of the last three kinds the stage only
  bool operator==(const Cell&) const = default;
};
[[nodiscard]] constexpr Cell message(CellKind kind, StageId stage, MicrobatchId microbatch) noexcept {
  return {.kind = kind, .action = {.stage = stage, .microbatch = microbatch}};
}

/// Like an ActionList, with communication.
struct LoweredList {
  std::int32_t microbatches = 0;
  std::int32_t pipelines = 1;
  std::vector<RankId> rank_of_stage;
  std::vector<std::vector<Cell>> ranks;
  bool operator==(const LoweredList&) const = default;
  [[nodiscard]] std::size_t stages() const noexcept { return rank_of_stage.size(); }
};

struct LowerOptions {
  /// Add UNSHARD, RESHARD and REDUCE_GRAD, as fully sharded data parallelism needs them.
  bool shard = false;
  /// Of `shard`: weights of how many of the next different stages are gathered ahead.
  std::int32_t unsharded_stages = 3;
};

/// Adds sends and receives: a send stands right behind the action that made the data, and the receive is put
/// into the other rank's row at the same moment of a run in lockstep. The result passes check_lowered. The
/// order is that of torch.distributed.pipelining's own lowering. An incomplete or deadlocked list gives the
/// error of check_schedule. Linear in the actions. Thread-safe.
[[nodiscard]] Result<LoweredList> lower(const ActionList& list, const LowerOptions& options = {});

/// The compute actions alone.
[[nodiscard]] ActionList without_communication(const LoweredList& list);

/// "3F7", "(3F7;5B2)OVERLAP_F_B", "3SEND_F7", "3UNSHARD".
[[nodiscard]] std::string text(const Cell& cell);
/// The inverse of text(); nullopt for anything else.
[[nodiscard]] std::optional<Cell> parse_cell(std::string_view text) noexcept;

}  // namespace tessera::train
