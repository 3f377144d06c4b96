#include "label_search.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tessera::train {
namespace {

constexpr Ticks kFar = FluidBound::kNever / 4;
// The clock is read about once in so many steps.
constexpr std::int64_t kClockEvery = 512;
// Comparing a new label with so many others takes about as long as making it.
constexpr std::size_t kComparedPerStep = 16;

constexpr LeafSet leaf(std::size_t k) noexcept {
  return LeafSet{1} << k;
}

}  // namespace

LabelSearch::LabelSearch(const ChainPair& pair) : pair_(pair) {
  for (std::size_t side = 0; side < 2; ++side) {
    const auto& chain = pair.chain[side];
    auto& ahead = ahead_[side];
    ahead.assign(chain.size() + 1, {.to_comp = kFar, .to_comm = kFar});
    for (std::size_t i = chain.size(); i-- > 0;) {
      const ChainOp& op = chain[i];
      const Ahead& after = ahead[i + 1];
      Ticks longest_leaf = 0;
      for (LeafSet set = op.released; set != 0; set &= set - 1) {
        const Leaf& released = pair.leaves[static_cast<std::size_t>(std::countr_zero(set))];
        if (!released.movable || released.duration > pair.credit)
          longest_leaf = std::max(longest_leaf, released.duration);
      }
      ahead[i].to_comp = op.comm ? after.to_comp + op.duration : 0;
      ahead[i].to_comm = op.comm ? 0 : after.to_comm + op.duration;
      ahead[i].comp = after.comp + (op.comm ? 0 : op.duration) + pair.sum(op.released);
      ahead[i].comm = after.comm + (op.comm ? op.duration : 0);
      ahead[i].tail = op.duration + std::max(after.tail, longest_leaf);
      if (op.comm) comm_deadline_ |= op.required;
    }
  }
  for (std::size_t k = 0; k < pair.leaves.size(); ++k) {
    if (pair.leaves[k].has_deadline || (pair.credit > 0 && !pair.leaves[k].movable)) tied_ |= leaf(k);
    // In the place of a leaf that waits for none it may come too late for those that wait for it.
    tied_ |= pair.leaves[k].needs;
  }
}

PassOutcome LabelSearch::run(const PassLimits& limits, const FluidBound* fluid) {
  limits_ = limits;
  fluid_ = fluid;
  outcome_ = {.complete = true};
  work_ = next_clock_ = 0;
  stopped_ = false;
  labels_.clear();
  finals_.clear();
  const std::size_t forward = pair_.chain[0].size(), backward = pair_.chain[1].size();
  current_.resize(forward + 1);
  next_.resize(forward + 1);
  for (auto* cells : {&current_, &next_})
    for (auto& cell : *cells) cell.clear();

  Label root{.pending = pair_.at_start};
  root.time[kWork] = pair_.sum(pair_.at_start);
  insert(root, {});
  for (std::size_t diagonal = 0; diagonal <= forward + backward; ++diagonal) {
    std::swap(current_, next_);
    for (std::size_t i = diagonal > backward ? diagonal - backward : 0; i <= std::min(diagonal, forward);
         ++i) {
      auto& cell = current_[i];
      if (diagonal == forward + backward) {
        close(cell);
        break;
      }
      narrow(cell);
      for (const std::uint32_t index : cell) expand(index, {i, diagonal - i});
      cell.clear();
      if (stopped_) {
        outcome_.complete = false;
        outcome_.exhausted = true;
        outcome_.bound = 0;
        outcome_.work = work_;
        return outcome_;
      }
    }
  }
  outcome_.work = work_;
  return outcome_;
}

bool LabelSearch::spent() noexcept {
  if (stopped_) return true;
  ++work_;
  stopped_ = work_ > limits_.work;
  if (limits_.until && work_ >= next_clock_) {
    next_clock_ = work_ + kClockEvery;
    stopped_ = stopped_ || std::chrono::steady_clock::now() > *limits_.until;
  }
  return stopped_;
}

// ------------------------------------------------------------------------------------------- transitions

void LabelSearch::expand(std::uint32_t index, Point point) {
  const Label label = labels_[index];  // labels move when new ones come
  const ChainOp* op[2] = {next(point, 0), next(point, 1)};
  if (label.frozen >= 0) {
    const auto other = static_cast<std::size_t>(1 - label.frozen);
    if (op[other] == nullptr) return;
    if (op[other]->comm) return take_comm(index, point, other, label.frozen);
    return take(index, point, other, false);
  }
  for (std::size_t side = 0; side < 2; ++side) {
    if (op[1 - side] != nullptr) continue;
    return op[side]->comm ? take_comm(index, point, side, -1) : take(index, point, side);
  }
  const Times& time = label.time;
  const LeafSet blocked[2] = {op[0]->comm ? op[0]->required & label.pending : 0,
                              op[1]->comm ? op[1]->required & label.pending : 0};
  const Ticks start[2] = {time[kReady], time[kReady + 1]};  // settled: not before the resource is free
  const Ticks end[2] = {start[0] + op[0]->duration, start[1] + op[1]->duration};

  if (op[0]->comm && op[1]->comm) {
    // One that can end before the other can start goes first: that costs the other nothing.
    if (blocked[1] == 0 && end[1] <= start[0]) return take_comm(index, point, 1, -1);
    if (blocked[0] == 0 && end[0] <= start[1]) return take_comm(index, point, 0, -1);
    take_comm(index, point, 0, -1);
    take_comm(index, point, 1, -1);
    return;
  }
  if (!op[0]->comm && !op[1]->comm) {
    for (std::size_t side = 0; side < 2; ++side) {
      const std::size_t other = 1 - side;
      const bool other_fits = (op[other]->required & label.pending) == 0 && end[other] <= start[side];
      // Two operations without length fit before each other; one of them has to go first.
      const bool tie = end[side] <= start[other] && side == 0;
      take(index, point, side, !other_fits || tie);
    }
    return;
  }
  const std::size_t x = op[0]->comm ? 1 : 0, y = 1 - x;  // x on comp, y on comm
  if (blocked[y] != 0) {
    take(index, point, x);
    take_comm(index, point, y, -1);
    return;
  }
  const Ticks x_end =
      std::max(time[kComp] + pair_.sum(op[x]->required & label.pending), start[x]) + op[x]->duration;
  // Whatever else goes to comm comes after x.
  if (end[y] <= x_end) return take_comm(index, point, y, -1);
  take(index, point, x);
  // A later comp operation of y's chain may come before x, but only after leaves that fill the time until
  // then: else x would fit in front of it.
  if (label.pending != 0) take_comm(index, point, y, static_cast<std::int8_t>(x));
}

void LabelSearch::take_comm(std::uint32_t index, Point point, std::size_t side, std::int8_t frozen) {
  const ChainOp& op = *next(point, side);
  Label label = labels_[index];
  label.block = op.required & label.pending;
  label.frozen = label.block == 0 ? frozen : std::int8_t{-1};
  label.trailing = 0;
  label.parent = index;
  label.side = static_cast<std::int8_t>(side);
  Ticks& ready = label.time[kReady + side];
  if (label.block != 0) {
    label.time[kComp] += pair_.sum(label.block);
    label.pending &= ~label.block;
    ready = std::max(ready, label.time[kComp]);
  }
  ready = label.time[kComm] = std::max(ready, label.time[kComm]) + op.duration;
  ++point.at[side];
  insert(label, point);
}

void LabelSearch::take(std::uint32_t index, Point point, std::size_t side, bool empty_allowed) {
  const Label label = labels_[index];  // labels move when new ones come
  const ChainOp& op = *next(point, side);
  const ChainOp* other = next(point, 1 - side);
  BlockSearch search{.label = &label,
                     .point = point,
                     .side = side,
                     .parent = index,
                     .gap = label.time[kReady + side] - label.time[kComp],
                     .urgent = other != nullptr && other->comm ? other->required & label.pending : 0,
                     .empty_allowed = empty_allowed};
  const LeafSet required = op.required & label.pending;
  // Leaves that comm waits for compete with the operation like operations: each set of them may go first.
  LeafSet chosen = 0;
  do {
    LeafSet base = required | chosen;
    for (LeafSet set = chosen; set != 0; set &= set - 1)
      base |= pair_.leaves[static_cast<std::size_t>(std::countr_zero(set))].needs & label.pending;
    extend_block(search, base, pair_.sum(base), 0);
    chosen = (chosen - search.urgent) & search.urgent;  // the next subset
  } while (chosen != 0);
}

// Adds leaves, longest first. Each must be able to start before the operation is ready, else it could as well
// come after it; and no leaf that still fits into the gap is left out.
void LabelSearch::extend_block(const BlockSearch& search, LeafSet block, Ticks sum, std::size_t from) {
  if (spent()) return;
  if (sum >= search.gap) return emit(search, block, sum);
  const LeafSet unused = search.label->pending & ~block;
  bool full = true;
  for (LeafSet set = unused; set != 0;) {
    const auto shortest = static_cast<std::size_t>(std::bit_width(set)) - 1;
    if ((pair_.leaves[shortest].needs & unused) == 0) {
      full = sum + pair_.leaves[shortest].duration > search.gap;
      break;
    }
    set &= ~leaf(shortest);
  }
  if (full) emit(search, block, sum);
  Ticks skipped = -1;  // duration of interchangeable leaves passed over
  for (LeafSet set = unused & ~search.urgent & (~LeafSet{0} << from); set != 0; set &= set - 1) {
    const auto k = static_cast<std::size_t>(std::countr_zero(set));
    const Leaf& candidate = pair_.leaves[k];
    if (candidate.free && candidate.duration == skipped) continue;
    const LeafSet needed = candidate.needs & unused;
    if ((needed & (leaf(k) - 1)) != 0) continue;  // comes with a longer leaf that was passed over
    const Ticks with_needed = sum + pair_.sum(needed);
    if (with_needed >= search.gap) continue;
    if (k + 1 < kMostLeaves)
      extend_block(search, block | needed | leaf(k), with_needed + candidate.duration, k + 1);
    else
      emit(search, block | needed | leaf(k), with_needed + candidate.duration);
    if (candidate.free) skipped = candidate.duration;
  }
}

void LabelSearch::emit(const BlockSearch& search, LeafSet block, Ticks sum) {
  if (block == 0 && !search.empty_allowed) return;
  const ChainOp& op = *next(search.point, search.side);
  Label label = *search.label;
  label.block = block;
  label.trailing = 0;
  label.parent = search.parent;
  label.side = static_cast<std::int8_t>(search.side);
  label.frozen = -1;
  const Ticks began = label.time[kComp];
  if (const LeafSet awaited = search.urgent & block; awaited != 0) {
    LeafSet with_needs = awaited;
    for (LeafSet set = awaited; set != 0; set &= set - 1)
      with_needs |= pair_.leaves[static_cast<std::size_t>(std::countr_zero(set))].needs & block;
    Ticks& other = label.time[kReady + 1 - search.side];
    other = std::max(other, began + pair_.sum(with_needs));
  }
  const Ticks end = std::max(began + sum, label.time[kReady + search.side]) + op.duration;
  const Ticks pending = label.time[kWork] - began - sum + pair_.sum(op.released);
  label.pending = (label.pending & ~block) | op.released;
  label.time[kComp] = label.time[kReady + search.side] = end;
  label.time[kWork] = end + pending;
  Point point = search.point;
  ++point.at[search.side];
  insert(label, point);
}

// --------------------------------------------------------------------------------------------- labels

// Raises every time to the first moment it can matter, so that labels that differ only in what cannot matter
// compare as equal.
void LabelSearch::settle(Label& label, const Point& point) const noexcept {
  Times& time = label.time;
  for (std::size_t side = 0; side < 2; ++side) {
    const ChainOp* op = next(point, side);
    Ticks& ready = time[kReady + side];
    if (op == nullptr) {
      ready = 0;
      continue;
    }
    ready = std::max(ready, time[op->comm ? kComm : kComp]);
    if (op->comm && (op->required & label.pending) != 0)
      ready = std::max(ready, time[kComp] + pair_.sum(op->required & label.pending));
  }
  if (label.frozen >= 0) return;
  Ticks first_comp = kFar, first_comm = kFar;
  for (std::size_t side = 0; side < 2; ++side) {
    const Ahead& ahead = ahead_[side][point.at[side]];
    first_comp = std::min(first_comp, time[kReady + side] + ahead.to_comp);
    first_comm = std::min(first_comm, time[kReady + side] + ahead.to_comm);
  }
  if (first_comm < kFar) time[kComm] = std::max(time[kComm], first_comm);
  if (label.pending != 0 && time[kWork] <= first_comp && (label.pending & comm_deadline_) == 0 &&
      first_comp < kFar) {
    label.trailing = label.pending;
    label.pending = 0;
    time[kComp] = time[kWork];
  }
  if (label.pending == 0 && first_comp < kFar) time[kComp] = time[kWork] = std::max(time[kComp], first_comp);
}

Ticks LabelSearch::simple_finish(const Label& label, const Point& point) const noexcept {
  const Ahead& f = ahead_[0][point.at[0]];
  const Ahead& b = ahead_[1][point.at[1]];
  return std::max({label.time[kWork] + f.comp + b.comp - pair_.credit, label.time[kComm] + f.comm + b.comm,
                   label.time[kReady] + f.tail, label.time[kReady + 1] + b.tail});
}

void LabelSearch::insert(Label label, Point point) {
  if (spent()) return;
  settle(label, point);
  label.finish =
      fluid_ != nullptr ? fluid_->finish(point.at[0], point.at[1], label.time) : simple_finish(label, point);
  if (label.finish > limits_.cut) {
    outcome_.bound = std::min(outcome_.bound, label.finish);
    return;
  }
  auto& cell = next_[point.at[0]];
  work_ += static_cast<std::int64_t>(cell.size() / kComparedPerStep);
  const bool last = next(point, 0) == nullptr && next(point, 1) == nullptr;
  for (std::size_t k = 0; !last && k < cell.size();) {
    const Label& other = labels_[cell[k]];
    if (dominates(other, label)) return;
    if (dominates(label, other)) {
      cell[k] = cell.back();
      cell.pop_back();
    } else {
      ++k;
    }
  }
  cell.push_back(static_cast<std::uint32_t>(labels_.size()));
  labels_.push_back(label);
}

// Whatever b can still become, a can become as early: each leaf pending only in a takes the place of one, not
// shorter, pending only in b.
bool LabelSearch::dominates(const Label& a, const Label& b) const noexcept {
  for (std::size_t k = 0; k < a.time.size(); ++k)
    if (a.time[k] > b.time[k]) return false;
  if (a.frozen >= 0 && a.frozen != b.frozen) return false;
  LeafSet only_a = a.pending & ~b.pending, only_b = b.pending & ~a.pending;
  if ((only_a & tied_) != 0) return false;
  for (; only_a != 0; only_a &= only_a - 1, only_b &= only_b - 1) {
    if (only_b == 0) return false;
    if (pair_.leaves[static_cast<std::size_t>(std::countr_zero(only_b))].duration <
        pair_.leaves[static_cast<std::size_t>(std::countr_zero(only_a))].duration)
      return false;
  }
  return true;
}

// Keeps the most promising labels of a point when there are too many.
void LabelSearch::narrow(std::vector<std::uint32_t>& cell) {
  if (cell.size() <= limits_.width) return;
  const auto promise = [&](std::uint32_t index) {
    const Label& label = labels_[index];
    return std::pair(label.finish,
                     label.time[kWork] + label.time[kComm] + label.time[kReady] + label.time[kReady + 1]);
  };
  const auto end = cell.begin() + static_cast<std::ptrdiff_t>(limits_.width);
  std::nth_element(cell.begin(), end, cell.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return promise(a) < promise(b); });
  for (auto it = end; it != cell.end(); ++it) outcome_.bound = std::min(outcome_.bound, labels_[*it].finish);
  outcome_.complete = false;
  cell.erase(end, cell.end());
}

// The end: everything still pending runs, except what the pool may have.
void LabelSearch::close(std::vector<std::uint32_t>& cell) {
  for (const std::uint32_t index : cell) {
    Label& label = labels_[index];
    const LeafSet left = pair_.credit > 0 ? most_left(label.pending) : 0;
    label.trailing |= label.pending & ~left;
    label.pending = left;
    label.finish = std::max(label.time[kWork] - pair_.sum(left), label.time[kComm]);
    if (label.finish > limits_.cut) {
      outcome_.bound = std::min(outcome_.bound, label.finish);
      continue;
    }
    outcome_.best = std::min(outcome_.best, label.finish);
    finals_.push_back(index);
  }
  std::ranges::stable_sort(finals_, {}, [&](std::uint32_t index) { return labels_[index].finish; });
}

// The movable leaves of most time within the credit. Branch and bound; a pair has few kinds of leaves.
LeafSet LabelSearch::most_left(LeafSet pending) const {
  std::vector<std::size_t> leaves;
  for (LeafSet set = pending; set != 0; set &= set - 1) {
    const auto k = static_cast<std::size_t>(std::countr_zero(set));
    if (pair_.leaves[k].movable && pair_.leaves[k].duration <= pair_.credit) leaves.push_back(k);
  }
  std::vector<Ticks> rest(leaves.size() + 1, 0);
  for (std::size_t k = leaves.size(); k-- > 0;) rest[k] = rest[k + 1] + pair_.leaves[leaves[k]].duration;
  LeafSet best = 0;
  Ticks most = 0;
  const auto choose = [&](const auto& self, std::size_t k, LeafSet set, Ticks sum) -> void {
    if (sum > most) most = sum, best = set;
    if (k == leaves.size() || sum + rest[k] <= most || most == pair_.credit) return;
    const Ticks duration = pair_.leaves[leaves[k]].duration;
    if (sum + duration <= pair_.credit) self(self, k + 1, set | leaf(leaves[k]), sum + duration);
    std::size_t other = k + 1;
    while (other < leaves.size() && pair_.leaves[leaves[other]].duration == duration) ++other;
    self(self, other, set, sum);
  };
  choose(choose, 0, 0, 0);
  return best;
}

// --------------------------------------------------------------------------------------------- orders

std::vector<LaunchOrder> LabelSearch::orders(std::size_t count) const {
  std::vector<LaunchOrder> out;
  for (std::size_t k = 0; k < std::min(count, finals_.size()); ++k) out.push_back(order_of(finals_[k]));
  return out;
}

LaunchOrder LabelSearch::order_of(std::uint32_t last) const {
  std::vector<std::uint32_t> path;
  for (std::uint32_t at = last; labels_[at].side >= 0; at = labels_[at].parent) path.push_back(at);
  LaunchOrder order;
  append_instant(pair_.instant_at_start, order);
  append_leaves(labels_.front().trailing, 0, order);
  Point point;
  for (std::size_t k = path.size(); k-- > 0;) {
    const Label& label = labels_[path[k]];
    const std::size_t side = label.side == 0 ? 0 : 1;
    const ChainOp* other = next(point, 1 - side);
    append_leaves(label.block, other != nullptr && other->comm ? other->required : 0, order);
    const std::int32_t task = next(point, side)->task;
    order.push_back(task);
    append_instant(pair_.instant[static_cast<std::size_t>(task)], order);
    append_leaves(label.trailing, 0, order);
    ++point.at[side];
  }
  return order;
}

void LabelSearch::append_leaves(LeafSet set, LeafSet first, LaunchOrder& order) const {
  LeafSet done = 0;
  for (const LeafSet group : {set & first, set})
    for (bool again = true; again;) {
      again = false;
      for (LeafSet open = group & ~done; open != 0; open &= open - 1) {
        const auto k = static_cast<std::size_t>(std::countr_zero(open));
        if ((pair_.leaves[k].needs & set & ~done) != 0) {
          again = true;
          continue;
        }
        done |= leaf(k);
        order.push_back(pair_.leaves[k].task);
        append_instant(pair_.instant[static_cast<std::size_t>(pair_.leaves[k].task)], order);
      }
    }
}

void LabelSearch::append_instant(const std::vector<std::int32_t>& tasks, LaunchOrder& order) const {
  order.insert(order.end(), tasks.begin(), tasks.end());
}

}  // namespace tessera::train
