#include "rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace tessera::train {
namespace {

constexpr std::size_t kShownWaits = 24;  // of a cycle; a longer one is cut

// The two ends of a message share a slot: two per (stage, microbatch) of the sender, forward and backward.
class Execution {
 public:
  Execution(const LoweredList& list, const std::vector<StageLinks>& links)
      : list_(list),
        links_(links),
        microbatches_(static_cast<std::size_t>(list.microbatches)),
        posted_(2 * list.stages() * microbatches_, kNotPosted),
        rows_(list.ranks.size()) {
    name_channels();
  }

  Status run(LoweredFacts& facts) {
    std::vector<std::size_t> runnable;
    runnable.reserve(rows_.size());
    for (std::size_t r = rows_.size(); r-- > 0;) runnable.push_back(r);
    while (!runnable.empty()) {
      const std::size_t rank = runnable.back();
      runnable.pop_back();
      while (post_group(rank, facts, runnable)) {
      }
    }
    for (std::size_t r = 0; r < rows_.size(); ++r)
      if (rows_[r].missing > 0) return deadlock(r);
    return {};
  }

 private:
  static constexpr std::int32_t kNotPosted = -1;
  static constexpr std::int32_t kMet = -2;

  struct Row {
    std::size_t begin = 0, end = 0;  ///< of the posted group
    std::size_t missing = 0;         ///< its messages whose other end is not posted
  };
  struct Message {
    std::size_t slot;
    std::size_t channel;
    std::size_t peer;  ///< the other rank
  };

  [[nodiscard]] Message message_of(const Cell& cell) const noexcept {
    const std::size_t stage = cell.action.stage.index();
    const bool to_next = cell.kind == CellKind::send_forward || cell.kind == CellKind::receive_backward;
    const std::size_t other = to_next ? stage + 1 : stage - 1;
    const std::size_t sender = is_send(cell.kind) ? stage : other;
    const std::size_t direction = is_forward(cell.kind) ? 0 : 1;
    return {.slot = 2 * (sender * microbatches_ + cell.action.microbatch.index()) + direction,
            .channel = channels_[2 * sender + direction],
            .peer = static_cast<std::size_t>(links_[other].rank)};
  }

  // A channel is an ordered pair of ranks.
  void name_channels() {
    std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
    const auto each = [&](auto&& use) {
      for (std::size_t s = 0; s < links_.size(); ++s) {
        if (links_[s].sends_forward()) use(2 * s, std::pair{links_[s].rank, links_[s].next});
        if (links_[s].sends_backward()) use(2 * s + 1, std::pair{links_[s].rank, links_[s].previous});
      }
    };
    each([&](std::size_t, std::pair<std::int32_t, std::int32_t> pair) { pairs.push_back(pair); });
    std::ranges::sort(pairs);
    pairs.erase(std::ranges::unique(pairs).begin(), pairs.end());
    channels_.assign(2 * links_.size(), 0);
    each([&](std::size_t at, std::pair<std::int32_t, std::int32_t> pair) {
      channels_[at] = static_cast<std::size_t>(std::ranges::lower_bound(pairs, pair) - pairs.begin());
    });
    sent_.assign(pairs.size(), 0);
    received_.assign(pairs.size(), 0);
  }

  // Posts the next group of the rank; true when it is done at once.
  bool post_group(std::size_t rank, LoweredFacts& facts, std::vector<std::size_t>& runnable) {
    const std::vector<Cell>& cells = list_.ranks[rank];
    Row& row = rows_[rank];
    std::size_t i = row.end;
    while (i < cells.size() && !is_message(cells[i].kind)) ++i;
    row.begin = i;
    while (i < cells.size() && is_message(cells[i].kind)) ++i;
    row.end = i;
    if (row.begin == row.end) return false;
    ++facts.groups;
    facts.largest_group = std::max(facts.largest_group, static_cast<std::int64_t>(row.end - row.begin));
    row.missing = row.end - row.begin;
    for (std::size_t k = row.begin; k < row.end; ++k) {
      const Message message = message_of(cells[k]);
      std::int32_t& count = is_send(cells[k].kind) ? sent_[message.channel] : received_[message.channel];
      const std::int32_t ordinal = count++;
      std::int32_t& other = posted_[message.slot];
      if (other == kNotPosted) {
        other = ordinal;
        continue;
      }
      if (other != ordinal && !facts.overtaking) note_overtaking(rank, cells[k], message.peer, facts);
      other = kMet;
      ++facts.messages;
      --row.missing;
      if (--rows_[message.peer].missing == 0) runnable.push_back(message.peer);
    }
    return row.missing == 0;
  }

  static void note_overtaking(std::size_t rank, Cell cell, std::size_t peer, LoweredFacts& facts) {
    if (!is_send(cell.kind)) {
      const bool forward = is_forward(cell.kind);
      cell = message(forward ? CellKind::send_forward : CellKind::send_backward,
                     StageId(cell.action.stage.value() + (forward ? -1 : 1)), cell.action.microbatch);
      std::swap(rank, peer);
    }
    facts.overtaking = {.send = cell,
                        .from = RankId(static_cast<std::int64_t>(rank)),
                        .to = RankId(static_cast<std::int64_t>(peer))};
  }

  // A rank that stands still waits for a message whose other end stands behind another standing rank's group:
  // following the waits must come back.
  std::unexpected<Error> deadlock(std::size_t rank) const {
    std::vector<std::int32_t> visited(rows_.size(), -1);
    std::vector<std::size_t> path, waiting;  // ranks, and the cell each waits in
    while (visited[rank] < 0) {
      visited[rank] = static_cast<std::int32_t>(path.size());
      path.push_back(rank);
      std::size_t cell = rows_[rank].begin;
      while (posted_[message_of(list_.ranks[rank][cell]).slot] == kMet) ++cell;
      waiting.push_back(cell);
      rank = message_of(list_.ranks[rank][cell]).peer;
    }
    const auto first = static_cast<std::size_t>(visited[rank]);
    std::string lines;
    for (std::size_t i = first; i < std::min(path.size(), first + kShownWaits); ++i) {
      const std::vector<Cell>& cells = list_.ranks[path[i]];
      const Message wanted = message_of(cells[waiting[i]]);
      const std::vector<Cell>& peer = list_.ranks[wanted.peer];
      std::size_t at = rows_[wanted.peer].end;
      while (!is_message(peer[at].kind) || message_of(peer[at]).slot != wanted.slot) ++at;
      lines += fmt::format("{}rank {} cell {}, {}, waits for rank {} cell {}, {}", i == first ? "" : "\n",
                           path[i], waiting[i], text(cells[waiting[i]]), wanted.peer, at, text(peer[at]));
    }
    const std::size_t length = path.size() - first;
    if (length > kShownWaits) lines += fmt::format("\n… and {} more", length - kShownWaits);
    return infeasible(
        fmt::format("the communication deadlocks: {} messages wait for each other in a circle", length),
        lines);
  }

  const LoweredList& list_;
  const std::vector<StageLinks>& links_;
  std::size_t microbatches_;
  std::vector<std::int32_t> posted_;  ///< the first end's place in its channel, kNotPosted or kMet
  std::vector<Row> rows_;
  std::vector<std::size_t> channels_;          ///< per sender stage and direction
  std::vector<std::int32_t> sent_, received_;  ///< per channel
};

}  // namespace

Status run_rendezvous(const LoweredList& list, const std::vector<StageLinks>& links, LoweredFacts& facts) {
  return Execution(list, links).run(facts);
}

}  // namespace tessera::train
