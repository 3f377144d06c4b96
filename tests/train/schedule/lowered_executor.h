// Rendezvous execution by brute force: step through the rows and look at everything anew each time. Shares
// nothing with the checker.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tessera/train/schedule/lowered_list.h"

namespace tessera::train::testing {

class SlowExecutor {
 public:
  explicit SlowExecutor(const LoweredList& list) : list_(list), next_(list.ranks.size(), 0) {}

  bool runs_to_the_end() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < list_.ranks.size(); ++r) {
        if (next_[r] == row(r).size()) continue;
        const Cell& cell = row(r)[next_[r]];
        if (is_message(cell.kind)) {
          if (!group_met(r)) {
            if (broken_) return false;
            continue;
          }
          next_[r] = group_end(r);
        } else {
          if (!perform(r, cell)) return false;
          ++next_[r];
        }
        moved = true;
      }
    }
    for (std::size_t r = 0; r < list_.ranks.size(); ++r)
      if (next_[r] != row(r).size()) return false;
    return complete();
  }

 private:
  using Thing = std::tuple<char, int, int>;  // what, stage, microbatch

  [[nodiscard]] const std::vector<Cell>& row(std::size_t r) const { return list_.ranks[r]; }
  [[nodiscard]] std::size_t group_end(std::size_t r) const {
    std::size_t end = next_[r];
    while (end < row(r).size() && is_message(row(r)[end].kind)) ++end;
    return end;
  }
  [[nodiscard]] bool inside(std::size_t r, int stage, int microbatch) const {
    return stage >= 0 && stage < static_cast<int>(list_.stages()) && microbatch >= 0 &&
           microbatch < list_.microbatches && rank_of(stage) == static_cast<int>(r);
  }
  [[nodiscard]] int rank_of(int stage) const {
    return stage < 0 || stage >= static_cast<int>(list_.stages())
               ? -1
               : list_.rank_of_stage[static_cast<std::size_t>(stage)].value();
  }
  // The stage at the other end, and whether this end sends.
  static std::pair<int, bool> other_end(const Cell& cell) {
    const int stage = cell.action.stage.value();
    switch (cell.kind) {
      case CellKind::send_forward:
        return {stage + 1, true};
      case CellKind::receive_forward:
        return {stage - 1, false};
      case CellKind::send_backward:
        return {stage - 1, true};
      default:
        return {stage + 1, false};
    }
  }
  // Is the other end of each cell of the group in the group that its rank stands at?
  bool group_met(std::size_t r) {
    for (std::size_t i = next_[r]; i < group_end(r); ++i) {
      const Cell& cell = row(r)[i];
      const int stage = cell.action.stage.value(), m = cell.action.microbatch.value();
      const auto [other, sends] = other_end(cell);
      const int peer = rank_of(other);
      if (!inside(r, stage, m) || peer < 0 || peer == static_cast<int>(r)) return !(broken_ = true);
      const char pass = is_forward(cell.kind) ? 'F' : 'B';
      if (sends && !has(pass, stage, m)) return !(broken_ = true);
      const Thing end{pass, stage, m};
      const Thing start{pass, other, m};
      const Thing& mine = sends ? end : start;
      // Met before, with this rank waiting for the rest of its group.
      if (met_.contains({mine, static_cast<int>(r), i})) continue;
      bool found = false;
      const auto p = static_cast<std::size_t>(peer);
      for (std::size_t k = next_[p]; k < group_end(p) && !found; ++k) {
        const Cell& theirs = row(p)[k];
        const auto [back, their_sends] = other_end(theirs);
        if (theirs.action.stage.value() != other || back != stage || theirs.action.microbatch.value() != m ||
            is_forward(theirs.kind) != is_forward(cell.kind) || their_sends == sends ||
            met_.contains({mine, peer, k}))
          continue;
        if (!delivered_.insert(mine).second) return !(broken_ = true);
        met_.insert({mine, static_cast<int>(r), i});
        met_.insert({mine, peer, k});
        found = true;
      }
    }
    for (std::size_t i = next_[r]; i < group_end(r); ++i) {
      const Cell& cell = row(r)[i];
      const auto [other, sends] = other_end(cell);
      const Thing mine{is_forward(cell.kind) ? 'F' : 'B', sends ? cell.action.stage.value() : other,
                       cell.action.microbatch.value()};
      if (!met_.contains({mine, static_cast<int>(r), i})) return false;
    }
    for (std::size_t i = next_[r]; i < group_end(r); ++i) {
      const Cell& cell = row(r)[i];
      if (!other_end(cell).second)
        arrived_.insert(
            {is_forward(cell.kind) ? 'F' : 'B', cell.action.stage.value(), cell.action.microbatch.value()});
    }
    return true;
  }

  [[nodiscard]] bool has(char pass, int stage, int m) const {
    return done_.contains({pass, stage, m}) || (pass == 'B' && done_.contains({'I', stage, m}));
  }
  [[nodiscard]] bool input(char pass, int stage, int m) const {
    const int from = pass == 'F' ? stage - 1 : stage + 1;
    if (rank_of(from) < 0) return true;
    return rank_of(from) == rank_of(stage) ? has(pass, from, m) : arrived_.contains({pass, stage, m});
  }
  bool perform(std::size_t r, const Cell& cell) {
    const Action& a = cell.action;
    if (cell.kind != CellKind::compute) {
      const int s = a.stage.value();
      if (!inside(r, s, 0)) return false;
      if (cell.kind == CellKind::unshard) return gathered_.insert(s).second;
      if (cell.kind == CellKind::reshard) return gathered_.erase(s) == 1;
      return reduced_.insert(s).second;
    }
    const auto letter = [](ActionKind kind) {
      return kind == ActionKind::forward          ? 'F'
             : kind == ActionKind::full_backward  ? 'B'
             : kind == ActionKind::input_gradient ? 'I'
                                                  : 'W';
    };
    std::vector<Thing> parts;
    if (a.kind == ActionKind::overlap) {
      parts.push_back({'F', a.stage.value(), a.microbatch.value()});
      parts.push_back({letter(a.backward_kind), a.backward_stage.value(), a.backward_microbatch.value()});
    } else {
      parts.push_back({letter(a.kind), a.stage.value(), a.microbatch.value()});
    }
    for (const auto& [pass, s, m] : parts) {
      if (!inside(r, s, m)) return false;
      if (done_.contains({pass, s, m})) return false;
      if (pass == 'B' && (done_.contains({'I', s, m}) || done_.contains({'W', s, m}))) return false;
      if ((pass == 'I' || pass == 'W') && done_.contains({'B', s, m})) return false;
      if (pass == 'F' && !input('F', s, m)) return false;
      if ((pass == 'B' || pass == 'I') && (!has('F', s, m) || !input('B', s, m))) return false;
      if (pass == 'W' && !done_.contains({'I', s, m})) return false;
      if (ever_gathered(s) && !gathered_.contains(s)) return false;
      if ((pass == 'B' || pass == 'W') && reduced_.contains(s)) return false;
    }
    for (const Thing& part : parts) done_.insert(part);
    return true;
  }
  [[nodiscard]] bool ever_gathered(int stage) const {
    for (const auto& cells : list_.ranks)
      for (const Cell& cell : cells)
        if ((cell.kind == CellKind::unshard || cell.kind == CellKind::reshard) &&
            cell.action.stage.value() == stage)
          return true;
    return false;
  }
  [[nodiscard]] bool complete() const {
    for (int s = 0; s < static_cast<int>(list_.stages()); ++s) {
      if (!reduced_.empty() && !reduced_.contains(s)) return false;
      for (int m = 0; m < list_.microbatches; ++m) {
        if (!has('F', s, m) || !has('B', s, m)) return false;
        if (!done_.contains({'B', s, m}) && !done_.contains({'W', s, m})) return false;
      }
    }
    return true;
  }

  const LoweredList& list_;
  std::vector<std::size_t> next_;
  std::set<Thing> done_, arrived_, delivered_;
  std::set<std::tuple<Thing, int, std::size_t>> met_;
  std::set<int> gathered_, reduced_;
  bool broken_ = false;
};

}  // namespace tessera::train::testing
