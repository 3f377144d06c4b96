// The default partition solver: the slowest pair by propagation and search, then Σ multiplicity · T and the
// k best by the walk over the ranks. Pairs are timed only where they can still matter.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "branch_work.h"
#include "layers.h"
#include "least_work.h"
#include "propagation.h"
#include "solvers.h"
#include "too_big.h"
#include "walk.h"

namespace tessera::train {
namespace {

// Nodes of branch and bound cost about as much as so many states of the walk.
constexpr std::int64_t kStatesPerNode = 2'000;

// Cells of a walk that takes about as long as a search of a hundred nodes.
constexpr std::size_t kSmallWalk = 100'000;

// Of a search for any partition at all, where the limits left none: a few dives.
constexpr std::int64_t kNodesPerStage = 8;

class Sweep {
 public:
  Sweep(const PartitionProblem& problem, StageCosts& costs, const PartitionOptions& options)
      : problem_(problem),
        costs_(costs),
        options_(options),
        labelling_(problem, costs),
        propagation_(labelling_),
        walk_(walk_of(labelling_)) {}

  PartitionResult run() {
    PartitionResult result = best_found();
    result.pairs_timed = labelling_.timed();
    result.work = work_;
    return result;
  }

 private:
  enum class Answer : std::uint8_t { yes, no, undecided };

  PartitionResult best_found() {
    PartitionResult result;
    const Alive all = propagation_.everything();
    if (options_.incumbent) start_from_incumbent();
    const bool told = options_.floor && slowest_ <= options_.floor->value();
    const Answer exists = told ? Answer::yes : find_slowest(all);
    if (exists == Answer::no) {
      result.reason = PartitionReason::infeasible;
      return result;
    }
    result.bound = Seconds(told ? slowest_ : proved_bound(all));
    if (exists == Answer::undecided) {
      result.reason = PartitionReason::limit;
      return result;
    }
    result.gap = gap_of(slowest_, result.bound.value());

    // The optimum: least Σ at the least slowest pair; mostly the rest of the best come with it.
    const auto wanted = static_cast<std::size_t>(std::max(options_.keep, 1));
    LeastWork optimum = least_at(slowest_, wanted);
    const bool all_known = optimum.complete;
    if (!all_known && wanted > 1) optimum = least_at(slowest_, 1);
    std::optional<PartitionChoice> first = choice(incumbent_);
    if (!optimum.found.empty())
      if (std::optional<PartitionChoice> least = choice(optimum.found.front().chosen);
          least && (!first || key(*least) <= key(*first)))
        first = std::move(least);
    if (!first) {  // costs that differ from call to call
      result.reason = PartitionReason::limit;
      return result;
    }
    result.best.push_back(*std::move(first));
    if (!optimum.complete) result.work_gap = gap_of(result.best.front().value.work.value(), optimum.bound);
    result.reason = result.gap > 0        ? PartitionReason::limit
                    : result.work_gap > 0 ? PartitionReason::work_gap
                                          : PartitionReason::optimal;
    result.reach = result.best.front().value.slowest;
    if (wanted > 1) keep_more(result, all_known ? std::move(optimum) : LeastWork{.complete = false});
    return result;
  }

  [[nodiscard]] static std::pair<Seconds, Seconds> key(const PartitionChoice& choice) noexcept {
    return {choice.value.slowest, choice.value.work};
  }
  [[nodiscard]] static double gap_of(double value, double bound) noexcept {
    if (value <= bound) return 0;
    return bound > 0 ? value / bound - 1 : kForever;
  }

  void start_from_incumbent() {
    std::vector<std::int32_t> chosen = labelling_.chosen(*options_.incumbent);
    auto value = evaluate(problem_, costs_, *options_.incumbent);
    if (chosen.empty() || !value) return;
    incumbent_ = std::move(chosen);
    slowest_ = value->slowest.value();
  }

  // Times that could be a slowest pair: everything alive, known or bounded.
  template <class Visit>
  void each_time(const Alive& alive, const Visit& visit) const {
    for (std::size_t s = 0; s < alive.size(); ++s)
      for (std::size_t v = 0; v < alive[s].size(); ++v)
        if (alive[s][v] != 0) visit(labelling_.time(s, v));
    for (const StagePair& pair : labelling_.pairs()) {
      const std::size_t columns = alive[pair.second].size();
      for (std::size_t p = 0; p < alive[pair.first].size(); ++p) {
        if (alive[pair.first][p] == 0) continue;
        for (std::size_t q = 0; q < columns; ++q)
          if (alive[pair.second][q] != 0) visit(pair.time[p * columns + q]);
      }
    }
  }

  [[nodiscard]] std::vector<double> thresholds(const Alive& alive, double least, double most) const {
    std::vector<double> out;
    each_time(alive, [&](double time) {
      if (time >= least && time <= most) out.push_back(time);
    });
    if (most < kForever) out.push_back(most);
    std::ranges::sort(out);
    const auto [first, last] = std::ranges::unique(out);
    out.erase(first, last);
    return out;
  }

  // One strictly between, with about as many below as above it.
  [[nodiscard]] std::optional<double> middle_threshold(const Alive& all, double above, double below) const {
    Alive alive = all;
    if (!propagation_.narrow(alive, below)) return std::nullopt;
    std::vector<double> times;
    each_time(alive, [&](double time) {
      if (time > above && time < below) times.push_back(time);
    });
    if (times.empty()) return std::nullopt;
    const auto middle = times.begin() + std::ssize(times) / 2;
    std::ranges::nth_element(times, middle);
    return *middle;
  }

  // Narrows at a limit with every pair that is alive there timed. False: nothing is left.
  bool narrow_timed(Alive& alive, double limit) {
    for (;;) {
      if (!propagation_.narrow(alive, limit)) return false;
      const std::int64_t before = labelling_.timed();
      labelling_.time_alive(alive, limit);
      if (labelling_.timed() == before) return true;
    }
  }

  // The least threshold at which propagation alone finds nothing wrong; below it all is refuted.
  std::optional<double> propagated_least(const Alive& all, double most) {
    for (;;) {
      const std::vector<double> times = thresholds(all, -kForever, most);
      std::size_t low = 0, high = times.size();  // the answer is in [low, high]
      while (low < high) {
        const std::size_t middle = (low + high) / 2;
        Alive alive = all;
        if (propagation_.narrow(alive, times[middle]))
          high = middle;
        else
          low = middle + 1;
      }
      if (low > 0) refute(times[low - 1]);
      if (low == times.size()) return std::nullopt;
      Alive alive = all;
      static_cast<void>(propagation_.narrow(alive, times[low]));
      const std::int64_t before = labelling_.timed();
      labelling_.time_alive(alive, times[low]);
      // Timed pairs may have become slower: look again until nothing at the threshold is a guess.
      if (labelling_.timed() == before) return times[low];
    }
  }

  // Is there a partition within the limit? A new incumbent when there is.
  Answer possible(const Alive& all, double limit) {
    Alive alive = all;
    if (!narrow_timed(alive, limit)) return refute(limit);
    std::vector<std::int32_t> found;
    // A small walk decides sooner than a long search.
    const auto dive = static_cast<std::int64_t>(2 * labelling_.stages());
    const std::int64_t nodes =
        small_walk(alive) ? std::min(options_.search_nodes, dive) : options_.search_nodes;
    switch (propagation_.search(alive, limit, nodes, found)) {
      case Propagation::Answer::yes:
        return accept(std::move(found));
      case Propagation::Answer::no:
        return refute(limit);
      case Propagation::Answer::undecided:
        break;
    }
    if (work_ < options_.work_limit) {
      LeastWork least = least_at(limit, 1, true);
      if (!least.found.empty()) return accept(std::move(least.found.front().chosen));
      if (least.complete) return refute(limit);
    }
    undecided_ = std::min(undecided_, limit);
    return Answer::undecided;
  }
  Answer refute(double limit) noexcept {
    refuted_ = std::max(refuted_, limit);
    return Answer::no;
  }
  Answer accept(std::vector<std::int32_t> found) {
    incumbent_ = std::move(found);
    slowest_ = slowest_of(incumbent_);
    return Answer::yes;
  }

  // Lowers slowest_ as far as the searches decide, and raises refuted_ towards it.
  Answer find_slowest(const Alive& all) {
    const double known = slowest_;  // by an incumbent that was given
    const std::optional<double> least = propagated_least(all, known);
    if (!least) return incumbent_.empty() ? Answer::no : Answer::yes;
    const auto at = [&](double limit) { return limit < known ? possible(all, limit) : Answer::yes; };
    Answer answer = at(*least);
    if (answer == Answer::yes) return answer;
    // Gallop over the thresholds, then bisect: each test times only what it needs. Timing moves values up,
    // so at the end of the thresholds there may be new ones.
    double tried = *least;  // up to here all is refuted or undecided
    for (std::size_t stride = 1;; stride *= 2) {
      std::vector<double> times = thresholds(all, tried, known);
      std::erase_if(times, [&](double t) { return t <= tried; });
      if (times.empty()) return answer == Answer::no ? Answer::no : find_any(all);
      const double next = times[std::min(stride, times.size()) - 1];
      answer = at(next);
      if (answer == Answer::yes) break;
      tried = next;
    }
    while (const auto middle = middle_threshold(all, tried, slowest_))
      if (possible(all, *middle) != Answer::yes) tried = *middle;
    if (undecided_ < slowest_) raise_refuted(all);
    return answer;
  }

  // However slow, one is better than none: only places and memory count, so it asks for no times.
  Answer find_any(const Alive& all) {
    Alive alive = all;
    std::vector<std::int32_t> found;
    const auto nodes = kNodesPerStage * static_cast<std::int64_t>(labelling_.stages());
    if (!propagation_.narrow(alive, kForever) ||
        propagation_.search(alive, kForever, nodes, found) != Propagation::Answer::yes)
      return Answer::undecided;
    const std::optional<PartitionChoice> any = choice(found);
    if (!any) return Answer::undecided;
    incumbent_ = std::move(found);
    slowest_ = any->value.slowest.value();
    return Answer::yes;
  }

  // Below what is undecided something may yet be refuted, or found.
  void raise_refuted(const Alive& all) {
    double open = undecided_;
    while (const auto middle = middle_threshold(all, refuted_, open)) {
      const Answer answer = possible(all, *middle);
      if (answer == Answer::yes) open = slowest_;
      if (answer == Answer::undecided) open = *middle;
    }
  }

  // What is within a limit was alive when that limit was refuted, so all of it was timed, and some time of
  // every partition left is above it: the least there is.
  [[nodiscard]] double proved_bound(const Alive& all) const {
    Alive alive = all;
    double bound = slowest_;
    if (propagation_.narrow(alive, slowest_))
      each_time(alive, [&](double time) {
        if (time > refuted_) bound = std::min(bound, time);
      });
    if (options_.floor) bound = std::max(bound, std::min(options_.floor->value(), slowest_));
    return bound < kForever ? bound : 0;
  }

  [[nodiscard]] double slowest_of(const std::vector<std::int32_t>& chosen) const {
    double slowest = 0;
    for (std::size_t s = 0; s < chosen.size(); ++s)
      slowest = std::max(slowest, labelling_.time(s, static_cast<std::size_t>(chosen[s])));
    for (const StagePair& pair : labelling_.pairs())
      slowest = std::max(
          slowest,
          pair.time[static_cast<std::size_t>(chosen[pair.first]) * labelling_.values(pair.second).size() +
                    static_cast<std::size_t>(chosen[pair.second])]);
    return slowest;
  }

  // Of all that is alive at the limit, every pair there timed; null when there is no walk small enough. The
  // last one is kept: what has been found to exist is looked at again for its work.
  const WalkGraph* graph_at(const Alive& alive, double limit) {
    if (!walk_ || !options_.walk) return nullptr;
    if (graph_limit_ != limit || graph_timed_ != labelling_.timed()) {
      graph_.reset();
      layers_ = std::make_unique<Layers>(labelling_, *walk_, alive, limit);
      graph_limit_ = limit;
      graph_timed_ = labelling_.timed();
      if (layers_->fits()) graph_ = std::make_unique<WalkGraph>(*layers_);
    }
    return graph_ && graph_->fits() ? graph_.get() : nullptr;
  }

  [[nodiscard]] bool small_walk(const Alive& alive) const {
    return walk_ && options_.walk && Layers::within(labelling_, *walk_, alive, kSmallWalk);
  }

  // The `keep` of least Σ within the limit, or any one.
  LeastWork least_at(double limit, std::size_t keep, bool any = false) {
    Alive alive = propagation_.everything();
    if (!narrow_timed(alive, limit)) return {};
    const std::int64_t left = std::max<std::int64_t>(options_.work_limit - work_, 1);
    LeastWork out;
    bool walked = false;
    if (const WalkGraph* graph = graph_at(alive, limit)) {
      out = any ? any_walk(*graph, labelling_.stages(), left)
                : least_work(*graph, labelling_.stages(), keep, options_.price_steps, left);
      walked = true;
    }
    if (!walked) {
      out = branch_work(labelling_, alive, limit, keep, left / kStatesPerNode + 100);
      out.states *= kStatesPerNode;
    }
    work_ += out.states;
    return out;
  }

  // More of them: the least limit that enough partitions stay within, and of those the least Σ. `more` are
  // those at the optimum itself, or nothing complete.
  void keep_more(PartitionResult& result, LeastWork more) {
    const auto wanted = static_cast<std::size_t>(options_.keep);
    const double widest = slowest_ * std::max(options_.widest, 1.0);
    const Alive all = propagation_.everything();
    double known = slowest_;  // the limit that `more` is of
    bool decided = true;
    // Tries a limit; lowers it to what the partitions found stay within.
    const auto enough = [&](double& limit) {
      Alive alive = all;
      if (!narrow_timed(alive, limit)) return false;
      const auto answer = small_walk(alive)
                              ? Propagation::Answer::undecided
                              : propagation_.at_least(alive, limit, options_.search_nodes, options_.keep);
      if (answer != Propagation::Answer::undecided) return answer == Propagation::Answer::yes;
      LeastWork least;
      least.complete = work_ < options_.work_limit;
      if (least.complete) least = least_at(limit, wanted);
      decided = decided && (least.complete || least.found.size() >= wanted);
      if (least.found.size() < wanted) return false;
      limit = 0;
      for (const LeastWork::Found& found : least.found) limit = std::max(limit, slowest_of(found.chosen));
      known = limit;
      more = std::move(least);
      return true;
    };
    double reach = slowest_;
    if (more.complete ? more.found.size() < wanted : !enough(reach)) {
      double bad = slowest_, good = widest;
      double stride = 0.01;
      for (double limit = slowest_ * (1 + stride); limit < widest; limit = slowest_ * (1 + (stride *= 2))) {
        double within = limit;
        if (enough(within)) {
          good = within;
          break;
        }
        bad = limit;
      }
      while (const auto middle = middle_threshold(all, bad, good)) {
        double within = *middle;
        if (enough(within))
          good = within;
        else
          bad = *middle;
      }
      reach = good;
    }
    if (known != reach || !more.complete) more = least_at(reach, wanted);
    if (!(more.complete && decided) && result.reason == PartitionReason::optimal)
      result.reason = PartitionReason::work_gap;
    double slowest = result.best.front().value.slowest.value();
    for (const LeastWork::Found& found : more.found) {
      std::optional<PartitionChoice> next = choice(found.chosen);
      if (!next) continue;
      slowest = std::max(slowest, next->value.slowest.value());
      if (next->partition != result.best.front().partition) result.best.push_back(*std::move(next));
    }
    result.reach = Seconds(slowest);
  }

  // Nothing where the checker refuses it.
  std::optional<PartitionChoice> choice(const std::vector<std::int32_t>& chosen) {
    if (chosen.empty()) return std::nullopt;
    Partition partition = labelling_.partition(chosen);
    const Result<PartitionValue> value = evaluate(problem_, costs_, partition);
    if (!value) return std::nullopt;
    return PartitionChoice{std::move(partition), *value};
  }

  const PartitionProblem& problem_;
  StageCosts& costs_;
  const PartitionOptions& options_;
  Labelling labelling_;
  Propagation propagation_;
  std::optional<Walk> walk_;
  std::unique_ptr<Layers> layers_;
  std::unique_ptr<WalkGraph> graph_;  // over layers_
  double graph_limit_ = -1;
  std::int64_t graph_timed_ = -1;
  std::vector<std::int32_t> incumbent_;  // the best found; every one has a faster slowest pair than the last
  double slowest_ = kForever;            // its slowest pair
  double refuted_ = -kForever;           // the greatest limit that no partition stays within
  double undecided_ = kForever;          // the least limit at which no search came to an end
  std::int64_t work_ = 0;
};

}  // namespace

PartitionResult solve_sweep(const PartitionProblem& problem, StageCosts& costs,
                            const PartitionOptions& options) {
  if (std::optional<std::string> words = too_big(problem))
    return {.reason = PartitionReason::too_big, .obstacle = *std::move(words)};
  return Sweep(problem, costs, options).run();
}

}  // namespace tessera::train
