// The task vocabulary: what each layer of a chunk becomes. Cost, scheduler, simulator, plan file and engine
// all speak it.
//
//   forward   F_ATTN(comp) → F_DISP(comm) → F_MLP(comp) → F_COMB(comm) → next layer's F_ATTN
//   backward  B_COMB(comm) → B_MLP(comp) → B_DISP(comm) → B_ATTN(comp) → previous layer
//   movable   W_MLP after B_MLP, W_ATTN after B_ATTN
//   again     R_MLP(comp) before B_MLP, R_ATTN(comp) before B_ATTN, R_SHARED(comp) before B_SHARED
//
// A layer has only the tasks it needs: a dense one has no DISP/COMB, a Mamba block no MLP, an MoE block no
// ATTN. F_SHARED/B_SHARED/W_SHARED exist only where the software runs the shared expert beside the dispatch,
// and R_… only where something is computed again (see Recompute) that needs no communication between expert
// ranks: it makes, from what F kept, what its B reads. A backward of weight gradients alone has no R_….
// A task's name is "F_ATTN:L3" (L = ModelSpec layer index, MTP counting on), "F_EMBED", "W_HEAD"; an MTP
// block's own head is "F_HEAD:L48". A name is unique within one action's forward or backward chunk.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

/// F, B (input gradient), W (weight gradient), R (computed again for B).
enum class Pass : std::uint8_t { forward, backward, weight, recompute };
enum class TaskKind : std::uint8_t { embedding, attention, dispatch, shared, mlp, combine, head };
enum class Resource : std::uint8_t { comp, comm, p2p, copy };

inline constexpr std::size_t kPasses = 4;
inline constexpr std::size_t kTaskKinds = 7;

[[nodiscard]] constexpr Resource resource_of(TaskKind kind) noexcept {
  return kind == TaskKind::dispatch || kind == TaskKind::combine ? Resource::comm : Resource::comp;
}

/// "F_ATTN:L3"; without ":L…" when layer < 0.
[[nodiscard]] std::string task_name(Pass pass, TaskKind kind, std::int32_t layer);

struct TaskName {
  Pass pass;
  TaskKind kind;
  std::int32_t layer;  ///< −1 = none
  bool operator==(const TaskName&) const = default;
};
/// The inverse of task_name; nullopt for anything else.
[[nodiscard]] std::optional<TaskName> parse_task_name(std::string_view text) noexcept;

}  // namespace tessera
