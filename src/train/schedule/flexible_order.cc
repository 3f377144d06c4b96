#include "flexible_order.h"

#include <algorithm>
#include <array>

namespace tessera::train {

OrderTimer::OrderTimer(const FlexibleProblem& problem) : problem_(problem) {
  const std::int32_t stages = problem.ranks * problem.chunks;
  chunks_.resize(static_cast<std::size_t>(stages));
  ranks_.resize(static_cast<std::size_t>(problem.ranks));
  const std::size_t steps = ranks_.size() * problem.per_rank();
  end_.resize(steps);
  microbatch_.resize(steps);
  chain_.reserve(steps);
  for (auto& position : position_) position.resize(steps / 2);
  for (auto& arrival : arrival_)
    arrival.resize(static_cast<std::size_t>(stages) * static_cast<std::size_t>(problem.microbatches));
  const auto rank_of = [&](std::int32_t stage) {
    return stage < problem.ranks ? stage : 2 * problem.ranks - 1 - stage;
  };
  for (std::int32_t s = 0; s < stages; ++s) {
    const std::int32_t rank = rank_of(s);
    const auto index_of = [&](std::int32_t stage) {
      return rank_of(stage) * problem.chunks + (stage < problem.ranks ? 0 : 1);
    };
    Chunk& chunk = chunks_[static_cast<std::size_t>(index_of(s))];
    const StageCost& cost = problem.costs[static_cast<std::size_t>(s)];
    chunk.weight = cost.weight_gradient.value();
    chunk.duration[0] = cost.forward.value();
    chunk.duration[1] = cost.input_gradient.value() + (problem.split ? 0.0 : chunk.weight);
    for (const int backward : {0, 1}) {
      const std::int32_t to = backward != 0 ? s - 1 : s + 1;
      if (to < 0 || to >= stages) continue;
      chunk.to[backward] = index_of(to);
      chunk.hop[backward] = rank_of(to) == rank ? 0.0 : problem.transfer;
    }
    for (const int backward : {0, 1}) {
      const std::int32_t from = backward != 0 ? s + 1 : s - 1;
      if (from >= 0 && from < stages) chunk.from[backward] = index_of(from);
    }
    ranks_[static_cast<std::size_t>(rank)].work +=
        problem.microbatches * (chunk.duration[0] + chunk.duration[1] + (problem.split ? chunk.weight : 0.0));
  }
}

template <class Emit>
void OrderTimer::run_weight(std::size_t r, std::span<const Step> steps, Emit& emit) {
  Rank& rank = ranks_[r];
  while (is_forward(steps[rank.next_weight])) ++rank.next_weight;
  const std::size_t chunk = steps[rank.next_weight++] - std::size_t{2};
  rank.free += chunks_[r * static_cast<std::size_t>(problem_.chunks) + chunk].weight;
  --rank.held;
  --rank.owed;
  emit(r, ActionKind::weight_gradient, chunk);
}

// One rank as far as its inputs are known. False when the order is no good.
template <class Emit>
bool OrderTimer::advance(std::size_t r, std::span<const Step> steps, double patience, double limit,
                         Emit& emit) {
  Rank& rank = ranks_[r];
  const auto microbatches = static_cast<std::size_t>(problem_.microbatches);
  Chunk* const chunks = &chunks_[r * static_cast<std::size_t>(problem_.chunks)];
  while (rank.next < steps.size()) {
    const Step step = steps[rank.next];
    const std::size_t c = step & 1U, backward = step >> 1U;
    Chunk& chunk = chunks[c];
    const std::int32_t microbatch = chunk.done[backward];
    if (microbatch >= chunk.known[backward]) return true;
    const std::size_t index = r * static_cast<std::size_t>(problem_.chunks) + c;
    const double arrival = arrival_[backward][index * microbatches + static_cast<std::size_t>(microbatch)];
    if (backward == 0 && rank.held >= problem_.most_live) {
      if (rank.owed == 0) return false;
      run_weight(r, steps, emit);
      continue;
    }
    if (arrival > rank.free) {
      if (rank.owed > 0) {
        std::size_t first = rank.next_weight;
        while (is_forward(steps[first])) ++first;
        rank.next_weight = first;
        const double takes = chunks[steps[first] - std::size_t{2}].weight;
        // Sums of durations may differ in their last digits.
        if (rank.free + takes <= arrival + patience * takes + 1e-9 * takes) {
          run_weight(r, steps, emit);
          continue;
        }
      }
      rank.idle += arrival - rank.free;
      if (rank.work + rank.idle > limit) return false;
      rank.free = arrival;
    }
    rank.free += chunk.duration[backward];
    ++chunk.done[backward];
    ++rank.next;
    if (backward == 0) {
      ++rank.held;
    } else if (problem_.split) {
      ++rank.owed;
    } else {
      --rank.held;
    }
    emit(r,
         backward == 0    ? ActionKind::forward
         : problem_.split ? ActionKind::input_gradient
                          : ActionKind::full_backward,
         c);
    const std::int32_t to = chunk.to[backward];
    if (to >= 0) {
      const auto place = static_cast<std::size_t>(to) * microbatches + static_cast<std::size_t>(microbatch);
      arrival_[backward][place] = rank.free + chunk.hop[backward];
      ++chunks_[static_cast<std::size_t>(to)].known[backward];
    } else if (backward == 0) {  // the last stage turns round
      arrival_[1][index * microbatches + static_cast<std::size_t>(microbatch)] = rank.free;
      ++chunk.known[1];
    }
  }
  return true;
}

template <class Emit>
OrderTimer::Outcome OrderTimer::run(const Order& order, double patience, double limit, Emit&& emit) {
  for (Chunk& chunk : chunks_)
    for (const int k : {0, 1}) chunk.done[k] = chunk.known[k] = 0;
  for (Rank& rank : ranks_) rank = {.work = rank.work};
  chunks_.front().known[0] = problem_.microbatches;
  std::fill_n(arrival_[0].begin(), problem_.microbatches, 0.0);

  const std::size_t each = problem_.per_rank();
  std::size_t left = ranks_.size() * each;
  // Sweeps down and up again: forwards flow down the ranks, gradients up, and in a V both do both.
  for (std::size_t before = left + 1; left > 0 && left < before;) {
    before = left;
    for (std::size_t k = 0; k < 2 * ranks_.size(); ++k) {
      const std::size_t r = k < ranks_.size() ? k : 2 * ranks_.size() - 1 - k;
      const std::size_t from = ranks_[r].next;
      if (!advance(r, std::span(order).subspan(r * each, each), patience, limit, emit)) return {};
      left -= ranks_[r].next - from;
    }
  }
  if (left > 0) return {};
  Outcome outcome{.makespan = 0};
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    while (ranks_[r].owed > 0) run_weight(r, std::span(order).subspan(r * each, each), emit);
    outcome.makespan = std::max(outcome.makespan, ranks_[r].free);
    outcome.finish += ranks_[r].free;
  }
  return outcome;
}

OrderTimer::Outcome OrderTimer::time(const Order& order, double patience, double limit) noexcept {
  return run(order, patience, limit, [](std::size_t, ActionKind, std::size_t) {});
}

std::span<const std::size_t> OrderTimer::critical_steps(const Order& order, double patience,
                                                        bool by_rank) noexcept {
  const std::size_t each = problem_.per_rank(), chunks = static_cast<std::size_t>(problem_.chunks),
                    microbatches = static_cast<std::size_t>(problem_.microbatches);
  run(order, patience, kNever, [&](std::size_t r, ActionKind kind, std::size_t c) {
    if (kind == ActionKind::weight_gradient) return;
    const std::size_t at = r * each + ranks_[r].next - 1, backward = kind == ActionKind::forward ? 0 : 1;
    const std::int32_t microbatch = chunks_[r * chunks + c].done[backward] - 1;
    end_[at] = ranks_[r].free;
    microbatch_[at] = microbatch;
    position_[backward][(r * chunks + c) * microbatches + static_cast<std::size_t>(microbatch)] = at;
  });
  const auto last = std::ranges::max_element(ranks_, {}, &Rank::free);
  std::size_t at = (static_cast<std::size_t>(last - ranks_.begin()) + 1) * each - 1;
  chain_.clear();
  while (true) {
    chain_.push_back(at);
    const std::size_t r = at / each, backward = order[at] >> 1U, c = order[at] & 1U;
    const Chunk& chunk = chunks_[r * chunks + c];
    const auto microbatch = static_cast<std::size_t>(microbatch_[at]);
    const double slack = 1e-9 * chunk.duration[backward], start = end_[at] - chunk.duration[backward];
    const bool has_input = backward == 1 || chunk.from[0] >= 0;
    const bool waited =
        has_input && arrival_[backward][(r * chunks + c) * microbatches + microbatch] >= start - slack;
    const bool first = at % each == 0;
    if (waited && (first || !by_rank || end_[at - 1] < start - slack)) {
      const bool turns = backward == 1 && chunk.from[1] < 0;
      const std::size_t from = turns ? r * chunks + c : static_cast<std::size_t>(chunk.from[backward]);
      at = position_[turns ? 0 : backward][from * microbatches + microbatch];
    } else if (!first) {
      --at;
    } else {
      return chain_;
    }
  }
}

double OrderTimer::bound() const noexcept {
  double bound = 0, reach = 0;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const Chunk& first = chunks_[r * static_cast<std::size_t>(problem_.chunks)];
    bound = std::max(bound, reach + ranks_[r].work);
    reach += first.duration[0] + first.hop[0];
  }
  return bound;
}

ActionList OrderTimer::actions(const Order& order, double patience, ActionList list) {
  // Microbatches of a chunk come in order, kind by kind.
  std::vector<std::array<std::int32_t, 4>> next(chunks_.size());
  for (auto& actions : list.ranks) actions.reserve(problem_.per_rank() / 2 * (problem_.split ? 3 : 2));
  run(order, patience, kNever, [&](std::size_t r, ActionKind kind, std::size_t chunk) {
    std::int32_t& microbatch =
        next[r * static_cast<std::size_t>(problem_.chunks) + chunk][static_cast<std::size_t>(kind)];
    list.ranks[r].push_back(
        {.kind = kind,
         .stage = StageId(problem_.stage(static_cast<std::int32_t>(r), static_cast<std::int32_t>(chunk))),
         .microbatch = MicrobatchId(microbatch++)});
  });
  return list;
}

}  // namespace tessera::train
