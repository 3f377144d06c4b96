// DualPipe and its folded form. A rank holds two chunks: `near`, which its end of the pipeline fills first,
// and `far`, whose microbatches come from the other end (DualPipe) or back up the V (DualPipeV). Seen from a
// rank both are the same; `turn` ranks away from it the two directions meet.
#include <algorithm>

#include "families.h"

namespace tessera::train {
namespace {

class DualRank {
 public:
  DualRank(std::vector<Action>& actions, StageId near, StageId far) noexcept
      : actions_(actions), near_{.stage = near}, far_{.stage = far} {}

  // `depth` is the rank's distance from its end, `turn` from where the directions meet.
  void run(std::int32_t depth, std::int32_t turn, std::int32_t microbatches) {
    for (std::int32_t k = 0; k < 2 * turn; ++k) one(next_forward(near_));
    for (std::int32_t k = 0; k <= depth; ++k) {
      one(next_forward(near_));
      one(next_forward(far_));
    }
    for (std::int32_t k = 0; k < turn; ++k) {
      split(far_);
      next_weight();
      one(next_forward(far_));
    }
    const std::int32_t steady = microbatches - 2 * turn - depth - 1;
    for (std::int32_t k = 0; k < steady; ++k) {
      // Where the directions meet, the first pair would wait for its own forward.
      if (k == 0 && turn == 0) {
        one(next_forward(near_));
        one(next_backward(far_));
      } else {
        pair(near_, far_);
      }
      pair(far_, near_);
    }
    for (std::int32_t k = 0; k < turn; ++k) {
      one(next_backward(far_));
      pair(far_, near_);
    }
    // From the middle of the drain on, W waits until nothing else is left to do.
    for (std::int32_t k = 0; k <= depth; ++k) {
      const std::int32_t middle = (depth + 1) / 2;
      const bool far_split = k > middle || (k == middle && depth % 2 == 1);
      far_split ? split(far_) : one(next_backward(far_));
      k >= middle ? split(near_) : one(next_backward(near_));
    }
    for (std::int32_t k = 0; k < turn; ++k) {
      next_weight();
      split(near_);
    }
    while (weights_done_ < weights_.size()) next_weight();
  }

 private:
  struct Side {
    StageId stage;
    std::int32_t forwards = 0, backwards = 0;
  };
  void one(const Action& action) { actions_.push_back(action); }
  static Action next_forward(Side& side) noexcept {
    return forward(side.stage, MicrobatchId(side.forwards++));
  }
  static Action next_backward(Side& side) noexcept {
    return backward(side.stage, MicrobatchId(side.backwards++));
  }
  void pair(Side& f, Side& b) {
    const Action first = next_forward(f);
    one(overlap(first, next_backward(b)));
  }
  void split(Side& side) {
    const MicrobatchId microbatch(side.backwards++);
    one(input_gradient(side.stage, microbatch));
    weights_.push_back(weight_gradient(side.stage, microbatch));
  }
  void next_weight() { one(weights_[weights_done_++]); }

  std::vector<Action>& actions_;
  Side near_, far_;
  std::vector<Action> weights_;  // in the order of their I
  std::size_t weights_done_ = 0;
};

}  // namespace

ActionList dual_pipe(Template schedule, const TemplateSizes& sizes) {
  const bool folded = schedule == Template::dual_pipe_v;
  ActionList list = empty_list(schedule, sizes);
  const std::int32_t pp = sizes.pp;
  for (std::int32_t r = 0; r < pp; ++r) {
    std::vector<Action>& actions = list.ranks[static_cast<std::size_t>(r)];
    actions.reserve(4 * static_cast<std::size_t>(list.microbatches));
    const StageId down(r), up(2 * pp - 1 - r);
    const std::int32_t half = folded ? pp : pp / 2;
    const std::int32_t depth = std::min(r, folded ? r : pp - 1 - r);
    DualRank rank(actions, r == depth ? down : up, r == depth ? up : down);
    rank.run(depth, half - 1 - depth, list.microbatches);
  }
  return list;
}

}  // namespace tessera::train
