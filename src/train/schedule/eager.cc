#include "tessera/train/schedule/eager.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::train {
namespace {

// A slot's first user, or kNone. Also the value of a slot beyond the window, which is never looked at.
constexpr std::int32_t kNone = -1;

std::string chunk_text(char pass, std::size_t slot, std::size_t microbatches) {
  return fmt::format("{}{}{}", slot / microbatches, pass, slot % microbatches);
}

// Collects the actions of one pass (F, B/I or W) and finds what is doubled or missing. `slots` may be huge in
// a damaged list; only as many as there are actions, plus one, are kept, and one of those is then unfilled.
class Slots {
 public:
  Slots(std::size_t all, std::size_t chunks) : all_(all), where_(std::min(all, chunks + 1), kNone) {}
  /// False when the slot was taken before.
  bool put(std::size_t slot, std::int32_t index) noexcept {
    if (slot >= where_.size()) return true;
    if (where_[slot] != kNone) return false;
    where_[slot] = index;
    return true;
  }
  [[nodiscard]] std::int32_t get(std::size_t slot) const noexcept {
    return slot < where_.size() ? where_[slot] : kNone;
  }
  /// The first empty slot; all_ when there is none.
  [[nodiscard]] std::size_t first_empty() const noexcept {
    const auto empty = std::ranges::find(where_, kNone);
    return empty == where_.end() ? all_ : static_cast<std::size_t>(empty - where_.begin());
  }
  [[nodiscard]] std::size_t all() const noexcept { return all_; }
  std::vector<std::int32_t> take() noexcept { return std::move(where_); }

 private:
  std::size_t all_;
  std::vector<std::int32_t> where_;
};

struct Part {
  ActionKind kind;
  StageId stage;
  MicrobatchId microbatch;
};

}  // namespace

Result<ActionIndex> ActionIndex::build(const ActionList& list) {
  if (list.microbatches < 0) return infeasible(fmt::format("{} microbatches", list.microbatches));
  const auto microbatches = static_cast<std::size_t>(list.microbatches);
  const std::size_t stages = list.stages();
  if (list.pipelines < 1 || stages % static_cast<std::size_t>(list.pipelines) != 0)
    return infeasible(fmt::format("{} stages are not {} pipelines of equal length", stages, list.pipelines));
  for (std::size_t s = 0; s < stages; ++s)
    if (list.rank_of_stage[s].value() < 0 || list.rank_of_stage[s].index() >= list.ranks.size())
      return infeasible(fmt::format("stage {} is on rank {}, but there are {} ranks", s,
                                    list.rank_of_stage[s].value(), list.ranks.size()));

  if (!list.shadow.empty() && list.shadow.size() != microbatches * static_cast<std::size_t>(list.pipelines))
    return infeasible(fmt::format("{} microbatches in {} pipelines, but {} are told to be shadows or not",
                                  microbatches, list.pipelines, list.shadow.size()));

  std::size_t chunks = 0;
  for (const auto& actions : list.ranks) chunks += 2 * actions.size();
  const std::size_t all = stages * microbatches;
  Slots forward(all, chunks), backward(all, chunks), weight(all, chunks);

  for (std::size_t r = 0; r < list.ranks.size(); ++r) {
    for (std::size_t i = 0; i < list.ranks[r].size(); ++i) {
      const Action& action = list.ranks[r][i];
      const auto where = [&] { return fmt::format("{}, action {} of rank {},", text(action), i, r); };
      const bool pair = action.kind == ActionKind::overlap;
      if (pair && action.backward_kind != ActionKind::full_backward &&
          action.backward_kind != ActionKind::input_gradient)
        return infeasible(fmt::format("{} overlaps a forward with something other than B or I", where()));
      const Part parts[2] = {{pair ? ActionKind::forward : action.kind, action.stage, action.microbatch},
                             {action.backward_kind, action.backward_stage, action.backward_microbatch}};
      for (int p = 0; p < (pair ? 2 : 1); ++p) {
        const Part& part = parts[p];
        if (part.stage.value() < 0 || part.stage.index() >= stages)
          return infeasible(
              fmt::format("{} names stage {}, but there are {} stages", where(), part.stage.value(), stages));
        if (part.microbatch.value() < 0 || part.microbatch.index() >= microbatches)
          return infeasible(fmt::format("{} names microbatch {}, but there are {} microbatches", where(),
                                        part.microbatch.value(), microbatches));
        if (list.rank_of_stage[part.stage.index()].index() != r)
          return infeasible(fmt::format("{} runs on rank {}, but stage {} is on rank {}", where(), r,
                                        part.stage.value(), list.rank_of_stage[part.stage.index()].value()));
        const std::size_t slot = part.stage.index() * microbatches + part.microbatch.index();
        const auto index = static_cast<std::int32_t>(i);
        bool fresh = true;
        switch (part.kind) {
          case ActionKind::forward:
            fresh = forward.put(slot, index);
            break;
          case ActionKind::full_backward:
            fresh = backward.put(slot, index) && weight.put(slot, index);
            break;
          case ActionKind::input_gradient:
            fresh = backward.put(slot, index);
            break;
          case ActionKind::weight_gradient:
            fresh = weight.put(slot, index);
            break;
          case ActionKind::overlap:
            break;
        }
        if (!fresh)
          return infeasible(fmt::format("{} is the second {} of stage {} for microbatch {}", where(),
                                        part.kind == ActionKind::forward           ? "forward"
                                        : part.kind == ActionKind::weight_gradient ? "weight gradient"
                                                                                   : "backward",
                                        part.stage.value(), part.microbatch.value()));
      }
    }
  }

  const auto missing = [&](std::size_t slot, char pass, std::string_view what) {
    return infeasible(fmt::format("{} is missing: stage {} never runs its {} for microbatch {}",
                                  chunk_text(pass, slot, microbatches), slot / microbatches, what,
                                  slot % microbatches));
  };
  if (const std::size_t slot = forward.first_empty(); slot < all) return missing(slot, 'F', "forward");
  if (const std::size_t slot = backward.first_empty(); slot < all) return missing(slot, 'B', "backward");
  if (const std::size_t slot = weight.first_empty(); slot < all) return missing(slot, 'W', "weight gradient");
  for (std::size_t slot = 0; slot < all; ++slot) {
    const std::int32_t f = forward.get(slot), b = backward.get(slot), w = weight.get(slot);
    const bool backward_late = b > f;
    if (backward_late && w >= b) continue;
    const auto rank = list.rank_of_stage[slot / microbatches].value();
    if (!backward_late)
      return infeasible(fmt::format("{} is action {} of rank {}, not after {}, action {}",
                                    chunk_text('B', slot, microbatches), b, rank,
                                    chunk_text('F', slot, microbatches), f));
    return infeasible(fmt::format("{} is action {} of rank {}, not after {}, action {}",
                                  chunk_text('W', slot, microbatches), w, rank,
                                  chunk_text('I', slot, microbatches), b));
  }

  ActionIndex index;
  index.microbatches_ = microbatches;
  index.rank_of_stage_ = list.rank_of_stage;
  index.forward_ = forward.take();
  index.backward_ = backward.take();
  index.weight_ = weight.take();
  return index;
}

}  // namespace tessera::train
