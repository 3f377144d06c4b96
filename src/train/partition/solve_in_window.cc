#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "least_excess.h"
#include "ranges.h"
#include "solvers.h"

namespace tessera::train {

namespace {

using Places = std::vector<std::vector<std::int32_t>>;

// The legal partition nearest to the center, by the sum of the boundaries' moves. None when the places hold
// no partition.
std::optional<Partition> nearest_legal(std::span<const std::vector<std::int32_t>> legal, std::int32_t blocks,
                                       std::int32_t step, const Partition& center) {
  constexpr std::int32_t never = std::numeric_limits<std::int32_t>::max() / 2;
  std::vector<std::vector<std::int32_t>> moves;  // per boundary and place: least sum up to here
  std::vector<std::vector<std::size_t>> before;  // the place of the boundary before
  std::vector<std::int32_t> last_places{0}, last_moves{0};
  const auto extend = [&](std::span<const std::int32_t> places, std::int32_t middle) {
    std::vector<std::int32_t> now;
    std::vector<std::size_t>& from = before.emplace_back();
    std::size_t next = 0, best = 0;
    std::int32_t least = never;
    for (const std::int32_t place : places) {
      for (; next < last_places.size() && last_places[next] + step <= place; ++next)
        if (last_moves[next] < least) {
          least = last_moves[next];
          best = next;
        }
      now.push_back(least == never ? never : least + std::abs(place - middle));
      from.push_back(best);
    }
    last_places.assign(places.begin(), places.end());
    last_moves = std::move(now);
  };
  std::int32_t middle = 0;
  for (std::size_t b = 0; b < legal.size(); ++b) {
    if (const BlockRange stage = center.stages[b]; stage.begin < stage.end)
      middle = std::max(middle, stage.end);
    extend(legal[b], middle);
  }
  extend(std::vector{blocks}, blocks);
  if (last_moves.front() >= never) return std::nullopt;
  std::vector<std::int32_t> at(legal.size());
  std::size_t place = before.back().front();
  for (std::size_t b = legal.size(); b-- > 0;) {
    at[b] = legal[b][place];
    place = before[b][place];
  }
  return partition_of(at, blocks);
}

// Is a boundary at an end of its window where the legal places go on?
bool touches_rim(const Places& places, std::span<const std::vector<std::int32_t>> legal,
                 const Partition& partition) {
  for (std::size_t b = 0; b < places.size(); ++b) {
    const std::int32_t at = partition.stages[b + 1].begin;
    if (at == places[b].front() && legal[b].front() < at) return true;
    if (at == places[b].back() && legal[b].back() > at) return true;
  }
  return false;
}

class Window {
 public:
  Window(const PartitionProblem& problem, std::span<const std::vector<std::int32_t>> legal, StageCosts& costs,
         const WindowOptions& options)
      : problem_(problem), legal_(legal), costs_(costs), options_(options) {}

  WindowResult run(const Partition& center) {
    const std::optional<Partition> start =
        nearest_legal(legal_, problem_.blocks, problem_.empty_stages ? 0 : 1, center);
    if (!start) {
      out_.center = center;
      problem_.places.assign(legal_.begin(), legal_.end());
      out_.result.reason = PartitionReason::infeasible;
      out_.result.obstacle = single_obstacle(problem_, costs_).value_or("the places hold no partition");
      out_.result.variables = count_variables(problem_);
      return std::move(out_);
    }
    out_.center = *start;
    // Recentring asks for the optimum alone; more are wanted only of the window it settles in.
    PartitionOptions wanted = options_.solve;
    wanted.keep = 1;
    solve_here(wanted);
    while (out_.moves < options_.most_moves && recentre()) {
      ++out_.moves;
      wanted.incumbent = out_.center;
      solve_here(wanted);
    }
    if (options_.solve.keep > 1 && !out_.result.best.empty()) {
      wanted.keep = options_.solve.keep;
      wanted.incumbent = out_.result.best.front().partition;
      wanted.floor = out_.result.bound;
      solve_here(wanted);
    }
    if (out_.result.reason == PartitionReason::infeasible) explain();
    return std::move(out_);
  }

 private:
  void solve_here(PartitionOptions options) {
    problem_.places = places_around(legal_, out_.center, options_.window, options_.widened);
    if (options.incumbent && !evaluate(problem_, costs_, *options.incumbent)) options.incumbent.reset();
    PartitionResult result = solve_partition(problem_, costs_, options);
    out_.solve_time += result.solve_time;
    out_.pairs_timed += result.pairs_timed;
    // Brute force may find the next window too big.
    if (!result.best.empty() || out_.result.best.empty()) {
      out_.result = std::move(result);
      solved_ = out_.center;
    } else {
      out_.center = solved_;
      stuck_ = true;
    }
  }

  // False: the result does not touch the rim, or the last move gained nothing.
  bool recentre() {
    if (stuck_) return false;
    std::optional<Partition> next;
    if (!out_.result.best.empty()) {
      const PartitionValue& value = out_.result.best.front().value;
      const std::pair now(value.slowest, value.work);
      if (best_ && now >= *best_) return false;
      best_ = now;
      next = out_.result.best.front().partition;
    } else if (out_.result.reason != PartitionReason::too_big && !problem_.budget.empty()) {
      // Nothing fits here, or is found that does: go where the least is missing.
      const std::optional<Excess> excess = least_excess(problem_, costs_);
      if (!excess || (least_ && excess->excess >= *least_)) return false;
      least_ = excess->excess;
      next = excess->partition;
      if (*least_ <= Bytes(0)) {  // an incumbent for the same window, or for the next
        out_.center = *std::move(next);
        return true;
      }
    }
    if (!next || !touches_rim(problem_.places, legal_, *next)) return false;
    out_.center = *std::move(next);
    return true;
  }

  // What stands against the whole of the legal places says more than what does against a window.
  void explain() {
    PartitionProblem whole = problem_;
    whole.places.assign(legal_.begin(), legal_.end());
    if (std::optional<std::string> words = single_obstacle(whole, costs_))
      out_.result.obstacle = *std::move(words);
    else
      out_.result.obstacle += fmt::format(" (within {} blocks of the last center)", options_.window);
  }

  PartitionProblem problem_;
  std::span<const std::vector<std::int32_t>> legal_;
  StageCosts& costs_;
  const WindowOptions& options_;
  WindowResult out_;
  Partition solved_;    // the center of out_.result
  bool stuck_ = false;  // a window gave nothing after one that did
  std::optional<std::pair<Seconds, Seconds>> best_;
  std::optional<Bytes> least_;
};

}  // namespace

WindowResult solve_in_window(const PartitionProblem& problem,
                             std::span<const std::vector<std::int32_t>> legal, StageCosts& costs,
                             const Partition& center, const WindowOptions& options) {
  return Window(problem, legal, costs, options).run(center);
}

}  // namespace tessera::train
