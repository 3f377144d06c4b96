#include "list_scheduler.h"

#include <algorithm>
#include <limits>

namespace tessera::train {
namespace {
constexpr double kNever = std::numeric_limits<double>::infinity();
}  // namespace

ListScheduler::ListScheduler(const ListProblem& problem) : problem_(problem) {
  const auto ranks = static_cast<std::size_t>(problem.ranks),
             chunks = static_cast<std::size_t>(problem.chunks),
             microbatches = static_cast<std::size_t>(problem.microbatches);
  per_rank_ = microbatches * chunks * (problem.split ? 3 : 2);
  chunks_.resize(ranks * chunks);
  ranks_.resize(ranks);
  forward_ready_.resize(ranks * chunks * microbatches);
  gradient_ready_.resize(ranks * chunks * microbatches);
  codes_.resize(ranks * per_rank_);
  best_codes_.resize(ranks * per_rank_);
  gradient_chunk_.resize(ranks * chunks * microbatches);
  while (leaves_ < ranks) leaves_ *= 2;
  wake_.resize(2 * leaves_);
  const std::int32_t stages = problem.ranks * problem.chunks;
  const auto index_of = [&](std::int32_t stage) {
    return stage < problem.ranks ? stage * problem.chunks
                                 : (2 * problem.ranks - 1 - stage) * problem.chunks + 1;
  };
  for (std::int32_t r = 0; r < problem.ranks; ++r)
    for (std::int32_t c = 0; c < problem.chunks; ++c) {
      Chunk& chunk = chunks_[static_cast<std::size_t>(r * problem.chunks + c)];
      chunk.stage = problem.stage(r, c);
      const StageCost& cost = problem.costs[static_cast<std::size_t>(chunk.stage)];
      chunk.forward = cost.forward.value();
      chunk.weight = cost.weight_gradient.value();
      chunk.gradient = cost.input_gradient.value() + (problem.split ? 0 : chunk.weight);
      if (chunk.stage + 1 < stages) chunk.next = index_of(chunk.stage + 1);
      if (chunk.stage > 0) chunk.previous = index_of(chunk.stage - 1);
      const auto hop = [&](std::int32_t to) {
        return to < 0 || to / problem.chunks == r ? 0.0 : problem.transfer;
      };
      chunk.hop_forward = hop(chunk.next);
      chunk.hop_backward = hop(chunk.previous);
    }
}

void ListScheduler::reset(const ListPolicy& policy) {
  for (Chunk& chunk : chunks_) {
    chunk.forwards = chunk.gradients = chunk.known_forwards = chunk.known_gradients = 0;
    if (chunk.previous < 0) {
      chunk.known_forwards = problem_.microbatches;
      const std::size_t first =
          static_cast<std::size_t>(&chunk - chunks_.data()) * static_cast<std::size_t>(problem_.microbatches);
      std::fill_n(forward_ready_.begin() + static_cast<std::ptrdiff_t>(first), problem_.microbatches, 0.0);
    }
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const double open =
        policy.open_base +
        policy.open_slope * static_cast<double>(problem_.ranks - 1 - static_cast<std::int32_t>(r));
    ranks_[r] = {.most_open = static_cast<std::int32_t>(std::clamp(open, 1.0, 1e6))};
  }
  std::ranges::fill(wake_, kNever);
  for (std::int32_t r = 0; r < problem_.ranks; ++r) set_wake(r, 0.0);
}

void ListScheduler::set_wake(std::int32_t rank, double when) noexcept {
  std::size_t node = leaves_ + static_cast<std::size_t>(rank);
  wake_[node] = when;
  for (node /= 2; node >= 1; node /= 2) {
    const double earliest = std::min(wake_[2 * node], wake_[2 * node + 1]);
    if (wake_[node] == earliest) break;
    wake_[node] = earliest;
  }
}

// What a free rank does now; else `wake` is when something known will be there.
std::uint8_t ListScheduler::decide(std::int32_t r, double now, const ListPolicy& policy, double& wake) const {
  const Rank& rank = ranks_[static_cast<std::size_t>(r)];
  const std::size_t microbatches = static_cast<std::size_t>(problem_.microbatches);
  double arrival = kNever;  // of a gradient
  std::uint8_t forward = kNothing, gradient = kNothing;
  for (std::int32_t c = 0; c < problem_.chunks; ++c) {
    const std::size_t index = static_cast<std::size_t>(r * problem_.chunks + c);
    const Chunk& chunk = chunks_[index];
    if (chunk.gradients < chunk.known_gradients) {
      const double when = gradient_ready_[index * microbatches + static_cast<std::size_t>(chunk.gradients)];
      if (when > now)
        arrival = std::min(arrival, when);
      else if (gradient == kNothing || !policy.first_gradient_first)
        gradient = static_cast<std::uint8_t>(kGradient + c);
    }
    if (chunk.forwards < chunk.known_forwards && rank.held + problem_.chunks - c <= problem_.most_live &&
        (c > 0 || chunk.forwards - chunk.gradients < rank.most_open)) {
      const double when = forward_ready_[index * microbatches + static_cast<std::size_t>(chunk.forwards)];
      if (when > now)
        wake = std::min(wake, when);
      else if (forward == kNothing || policy.last_chunk_first)
        forward = static_cast<std::uint8_t>(kForward + c);
    }
  }
  if (gradient != kNothing) return gradient;
  const double next_forward = wake;
  wake = std::min(wake, arrival);
  std::uint8_t weight = kNothing;
  if (problem_.split && rank.weights < rank.gradients) {
    const auto c = gradient_chunk_[static_cast<std::size_t>(r) * microbatches *
                                       static_cast<std::size_t>(problem_.chunks) +
                                   static_cast<std::size_t>(rank.weights)];
    const double takes = chunks_[static_cast<std::size_t>(r * problem_.chunks) + c].weight;
    const double next = forward == kNothing ? std::min(arrival, next_forward) : arrival;
    if (now + takes - next <= policy.patience_weight * takes) weight = static_cast<std::uint8_t>(kWeight + c);
  }
  if (weight != kNothing && (policy.weight_before_forward || forward == kNothing)) return weight;
  if (forward != kNothing) {
    const double takes = chunks_[static_cast<std::size_t>(r * problem_.chunks) + forward].forward;
    if (now + takes - arrival <= policy.patience_forward * takes) return forward;
  }
  return weight;
}

void ListScheduler::begin(std::int32_t r, std::uint8_t code, double now) {
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  const std::size_t microbatches = static_cast<std::size_t>(problem_.microbatches);
  const std::size_t c = code & 1U;
  const std::size_t index = static_cast<std::size_t>(r * problem_.chunks) + c;
  Chunk& chunk = chunks_[index];
  codes_[static_cast<std::size_t>(r) * per_rank_ + static_cast<std::size_t>(rank.length++)] = code;
  const auto arrives = [&](std::int32_t at, double when) {
    const std::int32_t other = at / problem_.chunks;
    if (other != r && ranks_[static_cast<std::size_t>(other)].busy_until <= when) {
      const double set = wake_[leaves_ + static_cast<std::size_t>(other)];
      if (when < set) set_wake(other, when);
    }
  };
  double end = now;
  if (code < kGradient) {
    end += chunk.forward;
    ++rank.held;
    const auto microbatch = static_cast<std::size_t>(chunk.forwards++);
    if (chunk.next < 0) {
      gradient_ready_[index * microbatches + microbatch] = end;
      ++chunk.known_gradients;
    } else {
      const auto to = static_cast<std::size_t>(chunk.next);
      forward_ready_[to * microbatches + microbatch] = end + chunk.hop_forward;
      ++chunks_[to].known_forwards;
      arrives(chunk.next, end + chunk.hop_forward);
    }
  } else if (code < kWeight) {
    end += chunk.gradient;
    const auto microbatch = static_cast<std::size_t>(chunk.gradients++);
    gradient_chunk_[static_cast<std::size_t>(r) * microbatches * static_cast<std::size_t>(problem_.chunks) +
                    static_cast<std::size_t>(rank.gradients++)] = static_cast<std::uint8_t>(c);
    if (!problem_.split) --rank.held;
    if (chunk.previous >= 0) {
      const auto to = static_cast<std::size_t>(chunk.previous);
      gradient_ready_[to * microbatches + microbatch] = end + chunk.hop_backward;
      ++chunks_[to].known_gradients;
      arrives(chunk.previous, end + chunk.hop_backward);
    }
  } else {
    end += chunk.weight;
    ++rank.weights;
    --rank.held;
  }
  rank.busy_until = end;
}

double ListScheduler::attempt(const ListPolicy& policy) {
  reset(policy);
  double makespan = 0;
  while (wake_[1] < kNever) {
    const double now = wake_[1];
    std::size_t node = 1;
    while (node < leaves_) node = 2 * node + (wake_[2 * node] == now ? 0 : 1);
    const auto r = static_cast<std::int32_t>(node - leaves_);
    double wake = kNever;
    const std::uint8_t code = decide(r, now, policy, wake);
    if (code != kNothing) {
      begin(r, code, now);
      wake = ranks_[static_cast<std::size_t>(r)].busy_until;
      makespan = std::max(makespan, wake);
      if (static_cast<std::size_t>(ranks_[static_cast<std::size_t>(r)].length) == per_rank_) wake = kNever;
    }
    set_wake(r, wake);
  }
  for (const Rank& rank : ranks_)
    if (static_cast<std::size_t>(rank.length) < per_rank_) return kNever;
  if (makespan < best_makespan_) {
    best_makespan_ = makespan;
    std::swap(codes_, best_codes_);
  }
  return makespan;
}

ActionList ListScheduler::best() const {
  ActionList list{.microbatches = problem_.microbatches};
  for (std::int32_t s = 0; s < problem_.ranks * problem_.chunks; ++s)
    list.rank_of_stage.emplace_back(s < problem_.ranks ? s : 2 * problem_.ranks - 1 - s);
  list.ranks.resize(ranks_.size());
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    std::array<std::array<std::int32_t, 2>, 3> next{};
    std::vector<Action>& actions = list.ranks[r];
    actions.resize(per_rank_);
    for (std::size_t i = 0; i < per_rank_; ++i) {
      const std::uint8_t code = best_codes_[r * per_rank_ + i];
      const std::size_t kind = code / 2U, c = code & 1U;
      actions[i] = {
          .kind = kind == 0        ? ActionKind::forward
                  : kind == 2      ? ActionKind::weight_gradient
                  : problem_.split ? ActionKind::input_gradient
                                   : ActionKind::full_backward,
          .stage = StageId(problem_.stage(static_cast<std::int32_t>(r), static_cast<std::int32_t>(c))),
          .microbatch = MicrobatchId(next[kind][c]++)};
    }
  }
  return list;
}

}  // namespace tessera::train
