#include <algorithm>

#include "families.h"

namespace tessera::train {
namespace {

struct Step {
  std::int32_t chunk;
  std::int32_t microbatch;
};

// Groups of N microbatches; all chunks of a group before the next group.
std::vector<Step> interleaved_steps(const TemplateSizes& sizes) {
  std::vector<Step> steps;
  steps.reserve(static_cast<std::size_t>(sizes.vp) * static_cast<std::size_t>(sizes.microbatches));
  for (std::int32_t first = 0; first < sizes.microbatches;) {
    const std::int32_t end = first + std::min(sizes.group, sizes.microbatches - first);
    for (std::int32_t chunk = 0; chunk < sizes.vp; ++chunk)
      for (std::int32_t m = first; m < end; ++m) steps.push_back({chunk, m});
    first = end;
  }
  return steps;
}

// The i-th actions of each kind on one rank.
class RankSteps {
 public:
  RankSteps(const std::vector<Step>& steps, const TemplateSizes& sizes, std::int32_t rank) noexcept
      : steps_(steps), pp_(sizes.pp), vp_(sizes.vp), rank_(rank) {}
  [[nodiscard]] Action forward(std::int64_t i) const noexcept {
    const Step step = steps_[static_cast<std::size_t>(i)];
    return train::forward(stage(step.chunk), MicrobatchId(step.microbatch));
  }
  // Backward visits the chunks the other way round.
  [[nodiscard]] Action backward(std::int64_t i, ActionKind kind = ActionKind::full_backward) const noexcept {
    const Step step = steps_[static_cast<std::size_t>(i)];
    return {.kind = kind, .stage = stage(vp_ - 1 - step.chunk), .microbatch = MicrobatchId(step.microbatch)};
  }

 private:
  [[nodiscard]] StageId stage(std::int32_t chunk) const noexcept {
    return StageId(std::int64_t{chunk} * pp_ + rank_);
  }
  const std::vector<Step>& steps_;
  std::int32_t pp_, vp_, rank_;
};

}  // namespace

ActionList one_f_one_b(const TemplateSizes& sizes) {
  ActionList list = empty_list(Template::one_f_one_b, sizes);
  for (std::int32_t r = 0; r < sizes.pp; ++r) {
    const StageId stage(r);
    std::vector<Action>& actions = list.ranks[static_cast<std::size_t>(r)];
    actions.reserve(2 * static_cast<std::size_t>(sizes.microbatches));
    const std::int32_t warmup = std::min(sizes.microbatches, sizes.pp - 1 - r);
    for (std::int32_t i = 0; i < warmup; ++i) actions.push_back(forward(stage, MicrobatchId(i)));
    for (std::int32_t i = warmup; i < sizes.microbatches; ++i) {
      actions.push_back(forward(stage, MicrobatchId(i)));
      actions.push_back(backward(stage, MicrobatchId(i - warmup)));
    }
    for (std::int32_t i = sizes.microbatches - warmup; i < sizes.microbatches; ++i)
      actions.push_back(backward(stage, MicrobatchId(i)));
  }
  return list;
}

ActionList interleaved(Template schedule, const TemplateSizes& sizes) {
  const bool in_pairs = traits(schedule).pairs;
  const std::vector<Step> steps = interleaved_steps(sizes);
  const auto total = static_cast<std::int64_t>(steps.size());
  ActionList list = empty_list(schedule, sizes);
  for (std::int32_t r = 0; r < sizes.pp; ++r) {
    const RankSteps rank(steps, sizes, r);
    // With pairs one forward more, so that the two halves of a steady step do not depend on each other.
    const std::int64_t warmup =
        std::min(total, 2 * std::int64_t{sizes.pp - 1 - r} + std::int64_t{sizes.vp - 1} * sizes.group +
                            (in_pairs ? 1 : 0));
    std::vector<Action>& actions = list.ranks[static_cast<std::size_t>(r)];
    actions.reserve(static_cast<std::size_t>(in_pairs ? total + warmup : 2 * total));
    for (std::int64_t i = 0; i < warmup; ++i) actions.push_back(rank.forward(i));
    for (std::int64_t i = warmup; i < total; ++i) {
      if (in_pairs) {
        actions.push_back(overlap(rank.forward(i), rank.backward(i - warmup)));
      } else {
        actions.push_back(rank.forward(i));
        actions.push_back(rank.backward(i - warmup));
      }
    }
    for (std::int64_t i = total - warmup; i < total; ++i) actions.push_back(rank.backward(i));
  }
  return list;
}

ActionList interleaved_zb(const TemplateSizes& sizes) {
  const std::vector<Step> steps = interleaved_steps(sizes);
  const auto total = static_cast<std::int64_t>(steps.size());
  ActionList list = empty_list(Template::interleaved_zb, sizes);
  for (std::int32_t r = 0; r < sizes.pp; ++r) {
    const RankSteps rank(steps, sizes, r);
    const std::int64_t warmup =
        std::min(total, std::int64_t{sizes.pp - 1 - r} + std::int64_t{sizes.vp - 1} * sizes.group);
    std::vector<Action>& actions = list.ranks[static_cast<std::size_t>(r)];
    actions.reserve(static_cast<std::size_t>(3 * total));
    for (std::int64_t i = 0; i < warmup; ++i) actions.push_back(rank.forward(i));
    // W comes r steps after its I: so much later a rank's W fills the gap that the ranks behind it leave.
    for (std::int64_t i = 0; i < total + r; ++i) {
      if (i + warmup < total) actions.push_back(rank.forward(i + warmup));
      if (i < total) actions.push_back(rank.backward(i, ActionKind::input_gradient));
      if (i >= r) actions.push_back(rank.backward(i - r, ActionKind::weight_gradient));
    }
  }
  return list;
}

}  // namespace tessera::train
