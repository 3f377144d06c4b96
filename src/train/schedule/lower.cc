// Lowering: run the lists in lockstep, one action of each rank a round, and note each message in both rows at
// the moment its data exist. Both rows then follow one global order of events, so no rendezvous can deadlock.
#include <array>
#include <bit>

#include "sharding.h"
#include "stage_links.h"
#include "tessera/train/schedule/check_schedule.h"
#include "tessera/train/schedule/lowered_list.h"

namespace tessera::train {
namespace {

// Ranks that have something to try in this round and in the next, in order of rank.
class Rounds {
 public:
  explicit Rounds(std::size_t ranks)
      : now_((ranks + 63) / 64, 0), next_(now_.size(), 0), waiting_(now_.size(), 0) {
    for (std::size_t r = 0; r < ranks; ++r) set(now_, r);
  }
  // The next rank of this round, or of the next one; none = every rank waits or is done.
  [[nodiscard]] std::optional<std::size_t> take() noexcept {
    for (int round = 0; round < 2; ++round) {
      for (; word_ < now_.size(); ++word_) {
        if (now_[word_] == 0) continue;
        const auto bit = static_cast<std::size_t>(std::countr_zero(now_[word_]));
        now_[word_] &= now_[word_] - 1;
        return word_ * 64 + bit;
      }
      word_ = 0;
      now_.swap(next_);
    }
    return std::nullopt;
  }
  void again(std::size_t rank) noexcept { set(next_, rank); }
  void wait(std::size_t rank) noexcept { set(waiting_, rank); }
  // What `rank` may wait for has come, from the rank whose turn it is.
  void wake(std::size_t rank, std::size_t from) noexcept {
    std::uint64_t& word = waiting_[rank / 64];
    const std::uint64_t bit = std::uint64_t{1} << (rank % 64);
    if ((word & bit) == 0) return;
    word &= ~bit;
    set(rank > from ? now_ : next_, rank);
  }

 private:
  static void set(std::vector<std::uint64_t>& bits, std::size_t i) noexcept {
    bits[i / 64] |= std::uint64_t{1} << (i % 64);
  }
  std::vector<std::uint64_t> now_, next_, waiting_;
  std::size_t word_ = 0;
};

// What is known of a (stage, microbatch).
enum : std::uint8_t { kInput = 1, kGradient = 2, kForward = 4, kBackward = 8, kWeight = 16 };

enum class Step { done, wait, broken };

class Lowering {
 public:
  explicit Lowering(const ActionList& list)
      : microbatches_(static_cast<std::size_t>(list.microbatches)),
        links_(stage_links(list)),
        known_(list.stages() * microbatches_, 0),
        rounds_(list.ranks.size()) {
    out_.microbatches = list.microbatches;
    out_.pipelines = list.pipelines;
    out_.rank_of_stage = list.rank_of_stage;
    out_.ranks.resize(list.ranks.size());
  }

  // `rows[rank]` holds actions, or cells without messages. False: the list is not complete or deadlocks.
  template <class Rows>
  bool run(const Rows& rows) {
    reserve(rows);
    std::vector<std::size_t> at(rows.size(), 0);
    std::size_t finished = 0;
    for (const auto& row : rows) finished += row.empty() ? 1 : 0;
    while (const auto rank = rounds_.take()) {
      const auto& row = rows[*rank];
      if (at[*rank] == row.size()) continue;
      switch (step(*rank, row[at[*rank]])) {
        case Step::done:
          if (++at[*rank] == row.size())
            ++finished;
          else
            rounds_.again(*rank);
          break;
        case Step::wait:
          rounds_.wait(*rank);
          break;
        case Step::broken:
          return false;
      }
    }
    return finished == rows.size() && chunks_ == 3 * known_.size();
  }
  LoweredList take() noexcept { return std::move(out_); }

 private:
  template <class Rows>
  void reserve(const Rows& rows) {
    std::vector<std::size_t> cells(rows.size(), 0);
    for (const StageLinks& link : links_)
      cells[static_cast<std::size_t>(link.rank)] += microbatches_ * link.messages();
    for (std::size_t r = 0; r < rows.size(); ++r) out_.ranks[r].reserve(cells[r] + rows[r].size());
  }

  Step step(std::size_t rank, const Cell& cell) {
    if (cell.kind == CellKind::compute) return step(rank, cell.action);
    out_.ranks[rank].push_back(cell);
    return Step::done;
  }
  Step step(std::size_t rank, const Action& action) {
    const bool pair = action.kind == ActionKind::overlap;
    if (pair && action.backward_kind != ActionKind::full_backward &&
        action.backward_kind != ActionKind::input_gradient)
      return Step::broken;
    const Part parts[2] = {{pair ? ActionKind::forward : action.kind, action.stage, action.microbatch},
                           {action.backward_kind, action.backward_stage, action.backward_microbatch}};
    for (int p = 0; p < (pair ? 2 : 1); ++p) {
      if (!belongs(rank, parts[p])) return Step::broken;
      const std::uint8_t needed = needs(parts[p]), known = known_[slot(parts[p])];
      if ((known & needed) == needed) continue;
      // What is missing of its own rank can only come earlier in the row, so it never comes.
      return (needed & ~known & (kInput | kGradient)) != 0 ? Step::wait : Step::broken;
    }
    out_.ranks[rank].push_back({.action = action});
    for (int p = 0; p < (pair ? 2 : 1); ++p)
      if (!finish(rank, parts[p])) return Step::broken;
    return Step::done;
  }

  struct Part {
    ActionKind kind;
    StageId stage;
    MicrobatchId microbatch;
  };
  [[nodiscard]] std::size_t slot(const Part& part) const noexcept {
    return part.stage.index() * microbatches_ + part.microbatch.index();
  }
  [[nodiscard]] bool belongs(std::size_t rank, const Part& part) const noexcept {
    return part.stage.value() >= 0 && part.stage.index() < links_.size() && part.microbatch.value() >= 0 &&
           part.microbatch.index() < microbatches_ &&
           links_[part.stage.index()].rank == static_cast<std::int32_t>(rank);
  }
  [[nodiscard]] std::uint8_t needs(const Part& part) const noexcept {
    const StageLinks& link = links_[part.stage.index()];
    if (part.kind == ActionKind::forward) return link.previous != StageLinks::none ? kInput : 0;
    if (part.kind == ActionKind::weight_gradient) return kBackward;
    return static_cast<std::uint8_t>(kForward | (link.next != StageLinks::none ? kGradient : 0));
  }
  // False when it was done before.
  bool finish(std::size_t rank, const Part& part) {
    const StageLinks& link = links_[part.stage.index()];
    const std::size_t at = slot(part);
    const std::uint8_t done = part.kind == ActionKind::forward           ? kForward
                              : part.kind == ActionKind::input_gradient  ? kBackward
                              : part.kind == ActionKind::weight_gradient ? kWeight
                                                                         : kBackward | kWeight;
    if ((known_[at] & done) != 0) return false;
    known_[at] |= done;
    chunks_ += done == (kBackward | kWeight) ? 2 : 1;
    if (done == kForward && link.next != StageLinks::none) {
      known_[at + microbatches_] |= kInput;
      if (link.sends_forward())
        send(rank, static_cast<std::size_t>(link.next), part, 1, CellKind::send_forward,
             CellKind::receive_forward);
    } else if ((done & kBackward) != 0 && link.previous != StageLinks::none) {
      known_[at - microbatches_] |= kGradient;
      if (link.sends_backward())
        send(rank, static_cast<std::size_t>(link.previous), part, -1, CellKind::send_backward,
             CellKind::receive_backward);
    }
    return true;
  }
  void send(std::size_t from, std::size_t to, const Part& part, std::int32_t step, CellKind out,
            CellKind in) {
    out_.ranks[from].push_back(message(out, part.stage, part.microbatch));
    out_.ranks[to].push_back(message(in, StageId(part.stage.value() + step), part.microbatch));
    rounds_.wake(to, from);
  }

  std::size_t microbatches_;
  std::vector<StageLinks> links_;
  std::vector<std::uint8_t> known_;
  Rounds rounds_;
  std::size_t chunks_ = 0;
  LoweredList out_;
};

std::unexpected<Error> refuse(const ActionList& list) {
  auto facts = check_schedule(list);
  return facts ? infeasible("the schedule cannot be lowered") : std::unexpected(std::move(facts).error());
}

}  // namespace

Result<LoweredList> lower(const ActionList& list, const LowerOptions& options) {
  std::size_t actions = 0;
  for (const auto& row : list.ranks) actions += row.size();
  // A chunk has at least two actions, or two halves of pairs.
  if (!has_sound_frame(list) || list.stages() * static_cast<std::size_t>(list.microbatches) > actions)
    return refuse(list);
  Lowering lowering(list);
  bool complete = false;
  if (options.shard) {
    std::vector<std::vector<Cell>> rows;
    rows.reserve(list.ranks.size());
    for (const auto& row : list.ranks)
      rows.push_back(with_sharding(row, list.microbatches, options.unsharded_stages));
    complete = lowering.run(rows);
  } else {
    complete = lowering.run(list.ranks);
  }
  if (!complete) return refuse(list);
  return lowering.take();
}

}  // namespace tessera::train
