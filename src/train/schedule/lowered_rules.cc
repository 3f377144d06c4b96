#include "lowered_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace tessera::train {
namespace {

enum : std::uint8_t {
  kForward = 1,
  kBackward = 2,
  kWeight = 4,
  kReceivedForward = 8,
  kReceivedBackward = 16,
  kSentForward = 32,
  kSentBackward = 64,
};

constexpr std::uint8_t bit_of(CellKind kind) noexcept {
  return kind == CellKind::send_forward      ? kSentForward
         : kind == CellKind::receive_forward ? kReceivedForward
         : kind == CellKind::send_backward   ? kSentBackward
                                             : kReceivedBackward;
}
constexpr std::uint8_t bits_of(ActionKind kind) noexcept {
  return kind == ActionKind::forward           ? kForward
         : kind == ActionKind::input_gradient  ? kBackward
         : kind == ActionKind::weight_gradient ? kWeight
                                               : kBackward | kWeight;
}
// Is the other end of the message in the stage after?
constexpr bool faces_next(CellKind kind) noexcept {
  return kind == CellKind::send_forward || kind == CellKind::receive_backward;
}

}  // namespace

RowRules::RowRules(const LoweredList& list, const std::vector<StageLinks>& links)
    : list_(list),
      links_(links),
      microbatches_(static_cast<std::size_t>(list.microbatches)),
      seen_(list.stages() * microbatches_, 0),
      sharding_(list.stages()) {}

Status RowRules::check_row(std::size_t rank, ScheduleFacts& facts) {
  std::int32_t live = 0, held = 0, peak_live = 0, peak_held = 0;
  const std::vector<Cell>& row = list_.ranks[rank];
  for (std::size_t i = 0; i < row.size(); ++i) {
    const Cell& cell = row[i];
    if (const Fault fault = try_cell(cell, rank); fault != Fault::none) return explain(fault, {rank, i});
    if (cell.kind != CellKind::compute) continue;
    const bool pair = cell.action.kind == ActionKind::overlap;
    const ActionKind kind = pair ? cell.action.backward_kind : cell.action.kind;
    facts.actions += pair ? 2 : 1;
    // In a pair the forward allocates before the backward frees.
    if (pair || kind == ActionKind::forward) {
      peak_live = std::max(peak_live, ++live);
      peak_held = std::max(peak_held, ++held);
    }
    if (kind == ActionKind::full_backward || kind == ActionKind::input_gradient) --live;
    if (kind == ActionKind::full_backward || kind == ActionKind::weight_gradient) --held;
  }
  facts.peak_live.push_back(peak_live);
  facts.peak_until_weight.push_back(peak_held);
  return {};
}

RowRules::Fault RowRules::try_cell(const Cell& cell, std::size_t rank) noexcept {
  if (is_message(cell.kind)) return try_message(cell, rank);
  if (cell.kind != CellKind::compute) return try_collective(cell, rank);
  const Action& action = cell.action;
  if (action.kind != ActionKind::overlap)
    return try_chunk({action.kind, action.stage, action.microbatch}, rank);
  if (action.backward_kind != ActionKind::full_backward && action.backward_kind != ActionKind::input_gradient)
    return Fault::bad_pair;
  // Both halves start together: the backward may not need this forward, so it is looked at first.
  const Fault backward =
      try_chunk({action.backward_kind, action.backward_stage, action.backward_microbatch}, rank);
  return backward != Fault::none ? backward
                                 : try_chunk({ActionKind::forward, action.stage, action.microbatch}, rank);
}

RowRules::Fault RowRules::try_place(StageId stage, MicrobatchId microbatch, std::size_t rank) const noexcept {
  // A negative index is a huge one here.
  if (stage.index() >= links_.size()) return Fault::other_stage;
  if (microbatch.index() >= microbatches_) return Fault::other_microbatch;
  return links_[stage.index()].rank == static_cast<std::int32_t>(rank) ? Fault::none : Fault::other_rank;
}

RowRules::Fault RowRules::try_chunk(const Chunk& chunk, std::size_t rank) noexcept {
  failed_ = chunk;
  if (const Fault fault = try_place(chunk.stage, chunk.microbatch, rank); fault != Fault::none) return fault;
  const std::size_t at = slot(chunk.stage, chunk.microbatch);
  const StageLinks& link = links_[chunk.stage.index()];
  const std::uint8_t seen = seen_[at], done = bits_of(chunk.kind);
  switch (chunk.kind) {
    case ActionKind::forward:
      if (link.previous == StageLinks::none) break;
      if (link.receives_forward()) {
        if ((seen & kReceivedForward) == 0) return Fault::before_receive;
      } else if ((seen_[at - microbatches_] & kForward) == 0) {
        return Fault::before_neighbour;
      }
      break;
    case ActionKind::weight_gradient:
      if ((seen & kBackward) == 0) return Fault::before_own;
      break;
    default:
      if ((seen & kForward) == 0) return Fault::before_own;
      if (link.next == StageLinks::none) break;
      if (link.receives_backward()) {
        if ((seen & kReceivedBackward) == 0) return Fault::before_receive;
      } else if ((seen_[at + microbatches_] & kBackward) == 0) {
        return Fault::before_neighbour;
      }
  }
  if ((seen & done) != 0) return Fault::doubled;
  Sharding& sharding = sharding_[chunk.stage.index()];
  if (sharding.gathers && !sharding.gathered) return Fault::without_weights;
  if (sharding.reduced && (done & kWeight) != 0) return Fault::after_reduction;
  sharding.computed = true;
  seen_[at] = seen | done;
  chunks_ += done == (kBackward | kWeight) ? 2 : 1;
  return Fault::none;
}

RowRules::Fault RowRules::try_message(const Cell& cell, std::size_t rank) noexcept {
  const StageId stage = cell.action.stage;
  if (const Fault fault = try_place(stage, cell.action.microbatch, rank); fault != Fault::none) return fault;
  const StageLinks& link = links_[stage.index()];
  const std::int32_t other = faces_next(cell.kind) ? link.next : link.previous;
  if (other == StageLinks::none) return Fault::no_other_end;
  if (other == link.rank) return Fault::stays_on_rank;
  const std::size_t at = slot(stage, cell.action.microbatch);
  const std::uint8_t seen = seen_[at], bit = bit_of(cell.kind);
  if ((seen & bit) != 0) return Fault::doubled_message;
  if (is_send(cell.kind) && (seen & (is_forward(cell.kind) ? kForward : kBackward)) == 0)
    return Fault::before_data;
  seen_[at] = seen | bit;
  ++messages_;
  return Fault::none;
}

RowRules::Fault RowRules::try_collective(const Cell& cell, std::size_t rank) noexcept {
  if (const Fault fault = try_place(cell.action.stage, MicrobatchId(0), rank); fault != Fault::none)
    return fault;
  Sharding& sharding = sharding_[cell.action.stage.index()];
  switch (cell.kind) {
    case CellKind::unshard:
      if (sharding.gathered) return Fault::doubled_gathering;
      if (!sharding.gathers && sharding.computed) return Fault::late_gathering;
      sharding.gathered = sharding.gathers = true;
      return Fault::none;
    case CellKind::reshard:
      if (!sharding.gathered) return Fault::nothing_to_drop;
      sharding.gathered = false;
      return Fault::none;
    default:
      if (sharding.reduced) return Fault::doubled_reduction;
      sharding.reduced = true;
      return Fault::none;
  }
}

std::unexpected<Error> RowRules::explain(Fault fault, Place place) const {
  const Cell& cell = list_.ranks[place.rank][place.index];
  return infeasible(fmt::format("{}, cell {} of rank {}, {}", text(cell), place.index, place.rank,
                                sentence(fault, cell, place.rank)));
}

std::string RowRules::sentence(Fault fault, const Cell& cell, std::size_t rank) const {
  const bool compute = cell.kind == CellKind::compute;
  const std::int32_t stage = (compute ? failed_.stage : cell.action.stage).value();
  const std::int32_t microbatch = (compute ? failed_.microbatch : cell.action.microbatch).value();
  switch (fault) {
    case Fault::other_stage:
      return fmt::format("names stage {}, but there are {} stages", stage, links_.size());
    case Fault::other_microbatch:
      if (!compute && !is_message(cell.kind)) return "stands in a schedule without microbatches";
      return fmt::format("names microbatch {}, but there are {} microbatches", microbatch, microbatches_);
    case Fault::other_rank:
      return fmt::format("runs on rank {}, but stage {} is on rank {}", rank, stage,
                         links_[static_cast<std::size_t>(stage)].rank);
    case Fault::bad_pair:
      return "overlaps a forward with something other than B or I";
    case Fault::no_other_end:
      return fmt::format("has no other end: there is no stage {} stage {}",
                         faces_next(cell.kind) ? "after" : "before", stage);
    case Fault::stays_on_rank:
      return fmt::format("stays on its rank: stage {} is on rank {} too",
                         stage + (faces_next(cell.kind) ? 1 : -1), rank);
    case Fault::doubled_message:
      return "stands a second time";
    case Fault::before_data:
      return is_forward(cell.kind)
                 ? fmt::format("sends before {}F{} runs", stage, microbatch)
                 : fmt::format("sends before the backward of stage {} for microbatch {} runs", stage,
                               microbatch);
    case Fault::late_gathering:
      return fmt::format("gathers weights with which stage {} has computed before", stage);
    case Fault::doubled_gathering:
      return fmt::format("gathers the weights of stage {} a second time", stage);
    case Fault::nothing_to_drop:
      return fmt::format("drops weights of stage {} that are not there", stage);
    case Fault::doubled_reduction:
      return fmt::format("reduces the gradients of stage {} a second time", stage);
    default:
      return sentence(fault, failed_);
  }
}

std::string RowRules::sentence(Fault fault, const Chunk& chunk) const {
  const std::int32_t stage = chunk.stage.value(), microbatch = chunk.microbatch.value();
  const bool forward = chunk.kind == ActionKind::forward;
  switch (fault) {
    case Fault::before_receive:
      return fmt::format("runs before {}RECV_{}{} brings its {}", stage, forward ? 'F' : 'B', microbatch,
                         forward ? "input" : "gradient");
    case Fault::before_neighbour:
      return fmt::format("does not run after {}{}{}", stage + (forward ? -1 : 1), forward ? 'F' : 'B',
                         microbatch);
    case Fault::before_own:
      return fmt::format("does not run after {}{}{}", stage,
                         chunk.kind == ActionKind::weight_gradient ? 'I' : 'F', microbatch);
    case Fault::doubled:
      return fmt::format("is the second {} of stage {} for microbatch {}",
                         forward                                     ? "forward"
                         : chunk.kind == ActionKind::weight_gradient ? "weight gradient"
                                                                     : "backward",
                         stage, microbatch);
    case Fault::without_weights:
      return fmt::format("computes without the weights of stage {}: no UNSHARD since its last RESHARD",
                         stage);
    default:
      return fmt::format("makes a gradient after {}REDUCE_GRAD", stage);
  }
}

Status RowRules::check_messages_complete() const {
  std::size_t expected = 0;
  for (const StageLinks& link : links_) expected += microbatches_ * link.messages();
  if (messages_ == expected) return {};
  // A receive that is missing was met as an action without its input, so it is a send.
  for (std::size_t s = 0; s < links_.size(); ++s)
    for (std::size_t m = 0; m < microbatches_; ++m)
      for (const auto& [needed, bit, kind] :
           {std::tuple{links_[s].sends_forward(), kSentForward, CellKind::send_forward},
            std::tuple{links_[s].sends_backward(), kSentBackward, CellKind::send_backward}})
        if (needed && (seen_[s * microbatches_ + m] & bit) == 0)
          return infeasible(
              fmt::format("{} is missing: rank {} waits for it",
                          text(message(kind, StageId(static_cast<std::int64_t>(s)),
                                       MicrobatchId(static_cast<std::int64_t>(m)))),
                          kind == CellKind::send_forward ? links_[s].next : links_[s].previous));
  return infeasible(fmt::format("{} messages where {} are needed", messages_, expected));
}

Status RowRules::check_sharding_complete() const {
  const auto some = std::ranges::find(sharding_, true, &Sharding::reduced);
  const auto none = std::ranges::find(sharding_, false, &Sharding::reduced);
  if (some == sharding_.end() || none == sharding_.end()) return {};
  return infeasible(fmt::format("{}REDUCE_GRAD is missing, while stage {} has its own",
                                none - sharding_.begin(), some - sharding_.begin()));
}

}  // namespace tessera::train
