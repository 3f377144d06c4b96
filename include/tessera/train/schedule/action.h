// What each pipeline rank does, in order: the common language of templates, checker, planner and formats.
//
// An action is one chunk of the model for one microbatch. `full_backward` is B with its W (letter B in the
// formats), `input_gradient` is I, `weight_gradient` is W. `overlap` runs a forward and a backward together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/base/ids.h"

namespace tessera::train {

enum class ActionKind : std::uint8_t { forward, full_backward, input_gradient, weight_gradient, overlap };

/// One cell of the schedule: 12 bytes of plain data.
struct Action {
  ActionKind kind = ActionKind::forward;
  ActionKind backward_kind = ActionKind::full_backward;  ///< of an overlap: full_backward or input_gradient
  StageId stage;                                         ///< of an overlap: the forward's
  MicrobatchId microbatch;
  StageId backward_stage;  ///< of an overlap only
  MicrobatchId backward_microbatch;
  bool operator==(const Action&) const = default;
};

[[nodiscard]] constexpr Action forward(StageId s, MicrobatchId m) noexcept {
  return {.kind = ActionKind::forward, .stage = s, .microbatch = m};
}
[[nodiscard]] constexpr Action backward(StageId s, MicrobatchId m) noexcept {
  return {.kind = ActionKind::full_backward, .stage = s, .microbatch = m};
}
[[nodiscard]] constexpr Action input_gradient(StageId s, MicrobatchId m) noexcept {
  return {.kind = ActionKind::input_gradient, .stage = s, .microbatch = m};
}
[[nodiscard]] constexpr Action weight_gradient(StageId s, MicrobatchId m) noexcept {
  return {.kind = ActionKind::weight_gradient, .stage = s, .microbatch = m};
}
[[nodiscard]] constexpr Action overlap(Action f, Action b) noexcept {
  return {.kind = ActionKind::overlap,
          .backward_kind = b.kind,
          .stage = f.stage,
          .microbatch = f.microbatch,
          .backward_stage = b.stage,
          .backward_microbatch = b.microbatch};
}

/// Actions of every rank and where each stage lives.
///
/// Usually the stages are one pipeline, 0 → 1 → … . With `pipelines` > 1 (DualPipe: 2) they are that many
/// equal chains side by side, each with microbatches of its own: the first stage of a chain has no stage
/// before it, the last none after it, and stage s holds the same blocks as stage s + stages / pipelines.
///
/// A shadow microbatch fills a schedule up to a number that its template can take. On every stage it keeps
/// its place in the order and the sends and receives of the pipeline, with dummy tensors of real shape, and
/// does nothing else: no compute, no EP, TP or CP collective (all peers skip it alike), no random numbers, no
/// activation, no part in loss, token counts, auxiliary loss, router bias, gradients or optimizer.
struct ActionList {
  std::int32_t microbatches = 0;  ///< of one pipeline: each of its stages runs 0 … microbatches − 1
  std::int32_t pipelines = 1;
  std::vector<RankId> rank_of_stage;       ///< size = stages of all pipelines
  std::vector<std::vector<Action>> ranks;  ///< size = pp
  /// Entry p · microbatches + m: is microbatch m of pipeline p a shadow? Empty = none is.
  std::vector<bool> shadow;
  bool operator==(const ActionList&) const = default;
  [[nodiscard]] std::size_t stages() const noexcept { return rank_of_stage.size(); }
  /// Is there a stage that feeds this one in the forward pass, one that this one feeds?
  [[nodiscard]] bool has_previous(StageId s) const noexcept {
    return pipelines <= 1 ? s.value() > 0 : s.index() % (stages() / static_cast<std::size_t>(pipelines)) != 0;
  }
  [[nodiscard]] bool has_next(StageId s) const noexcept {
    return s.index() + 1 < stages() && (pipelines <= 1 || has_previous(StageId(s.value() + 1)));
  }
  /// Stage and microbatch must be of the list.
  [[nodiscard]] bool is_shadow(StageId s, MicrobatchId m) const noexcept {
    return !shadow.empty() && shadow[shadow_index(s, m)];
  }
  [[nodiscard]] std::size_t shadow_index(StageId s, MicrobatchId m) const noexcept {
    const std::size_t pipeline =
        pipelines <= 1 ? 0 : s.index() / (stages() / static_cast<std::size_t>(pipelines));
    return pipeline * static_cast<std::size_t>(microbatches) + m.index();
  }
  /// What an action computes: itself without its shadow half, nullopt when nothing is left.
  [[nodiscard]] std::optional<Action> real_part(const Action& action) const noexcept {
    return shadow.empty() ? action : without_shadows(action);
  }
  /// Microbatches that are no shadows, of all pipelines or of the pipeline of one stage.
  [[nodiscard]] std::int32_t real_microbatches() const noexcept;
  [[nodiscard]] std::int32_t real_microbatches(StageId s) const noexcept;

 private:
  [[nodiscard]] std::optional<Action> without_shadows(const Action& action) const noexcept;
};

/// "3F7", "3B7", "3I7", "3W7", "(3F7;5B2)OVERLAP_F_B".
[[nodiscard]] std::string text(const Action& action);
/// The inverse of text(); nullopt for anything else.
[[nodiscard]] std::optional<Action> parse_action(std::string_view text) noexcept;

}  // namespace tessera::train
