// ZB-V as a fixed order. Every rank: forwards of its first chunk until the first microbatch is back up the V;
// forwards of both chunks until the gradient is there; F I W of the second chunk until the first chunk's
// gradient is there; then F I W of both in turn; and at the end the gradients first.
#include <algorithm>

#include "families.h"

namespace tessera::train {
namespace {

// One chunk of one rank: its next action of each kind. Microbatches that do not exist are counted, not run.
class ChunkRun {
 public:
  ChunkRun(std::vector<Action>& actions, StageId stage, std::int32_t microbatches) noexcept
      : actions_(actions), stage_(stage), microbatches_(microbatches) {}
  void f() { put(ActionKind::forward, forwards_++); }
  void i() { put(ActionKind::input_gradient, gradients_++); }
  void w() { put(ActionKind::weight_gradient, weights_++); }
  [[nodiscard]] std::int32_t forwards() const noexcept { return forwards_; }
  [[nodiscard]] bool owes_weights() const noexcept { return weights_ < gradients_; }

 private:
  void put(ActionKind kind, std::int32_t microbatch) {
    if (microbatch < microbatches_)
      actions_.push_back({.kind = kind, .stage = stage_, .microbatch = MicrobatchId(microbatch)});
  }
  std::vector<Action>& actions_;
  StageId stage_;
  std::int32_t microbatches_;
  std::int32_t forwards_ = 0, gradients_ = 0, weights_ = 0;
};

}  // namespace

ActionList zb_v_torch(const TemplateSizes& sizes) {
  ActionList list = empty_list(Template::zb_v_torch, sizes);
  // The phases need this many; with fewer microbatches the rest of the order is left out.
  const std::int32_t all = std::max(sizes.microbatches, 2 * sizes.pp - 1);
  for (std::int32_t r = 0; r < sizes.pp; ++r) {
    std::vector<Action>& actions = list.ranks[static_cast<std::size_t>(r)];
    actions.reserve(6 * static_cast<std::size_t>(sizes.microbatches));
    ChunkRun down(actions, StageId(r), sizes.microbatches);
    ChunkRun back(actions, StageId(2 * sizes.pp - 1 - r), sizes.microbatches);
    const std::int32_t below = sizes.pp - r;  // ranks from here to the turn of the V, this one included
    for (std::int32_t k = 0; k < 2 * below - 1; ++k) down.f();
    for (std::int32_t k = 0; k < r; ++k) {
      back.f();
      down.f();
    }
    for (std::int32_t k = 0; k < below; ++k) {
      back.f();
      back.i();
      back.w();
    }
    while (back.forwards() < all) {
      if (down.forwards() < all) down.f();
      down.i();
      down.w();
      back.f();
      back.i();
      back.w();
    }
    for (std::int32_t k = 0; k < r; ++k) {
      down.i();
      back.i();
    }
    for (std::int32_t k = 0; k < below; ++k) {
      down.i();
      down.w();
    }
    while (back.owes_weights()) back.w();
    while (down.owes_weights()) down.w();
  }
  return list;
}

}  // namespace tessera::train
