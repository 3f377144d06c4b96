#include "sharding.h"

#include <algorithm>
#include <map>

namespace tessera::train {
namespace {

struct NextUse {
  StageId stage;
  std::size_t action;
};

// Stages in the order of their next use, while a row is walked from its end.
class UpcomingStages {
 public:
  void use(const Action& action, std::size_t index) {
    if (action.kind == ActionKind::overlap) move_to_front({action.backward_stage, index});
    move_to_front({action.stage, index});
  }
  // The first `count`; both of a pair when it holds the last of them.
  [[nodiscard]] std::vector<StageId> first(std::size_t count) const {
    std::vector<StageId> out;
    for (std::size_t i = 0; i < order_.size(); ++i)
      if (i < count || (i == count && order_[i].action == order_[i - 1].action))
        out.push_back(order_[i].stage);
    return out;
  }

 private:
  void move_to_front(NextUse use) {
    auto old = std::ranges::find(order_, use.stage, &NextUse::stage);
    if (old == order_.end()) old = order_.insert(order_.end(), use);
    std::rotate(order_.begin(), old, old + 1);
    order_.front() = use;
  }
  std::vector<NextUse> order_;
};

class ShardedRow {
 public:
  ShardedRow(std::size_t actions, std::int32_t microbatches) : microbatches_(microbatches) {
    cells_.reserve(actions + actions / 8 + 8);
  }
  void gather(const std::vector<StageId>& upcoming) {
    std::vector<StageId> kept;
    for (const StageId stage : gathered_)
      if (std::ranges::find(upcoming, stage) != upcoming.end())
        kept.push_back(stage);
      else
        cells_.push_back({.kind = CellKind::reshard, .action = {.stage = stage}});
    for (const StageId stage : upcoming)
      if (std::ranges::find(gathered_, stage) == gathered_.end()) {
        kept.push_back(stage);
        cells_.push_back({.kind = CellKind::unshard, .action = {.stage = stage}});
      }
    std::ranges::sort(kept);
    gathered_ = std::move(kept);
  }
  void run(const Action& action) {
    cells_.push_back({.action = action});
    const bool pair = action.kind == ActionKind::overlap;
    const ActionKind kind = pair ? action.backward_kind : action.kind;
    if (kind != ActionKind::full_backward && kind != ActionKind::weight_gradient) return;
    const StageId stage = pair ? action.backward_stage : action.stage;
    if (++gradients_[stage] == microbatches_)
      cells_.push_back({.kind = CellKind::reduce_gradient, .action = {.stage = stage}});
  }
  std::vector<Cell> take() {
    gather({});
    return std::move(cells_);
  }

 private:
  std::int32_t microbatches_;
  std::vector<StageId> gathered_;  // ascending
  std::map<StageId, std::int32_t> gradients_;
  std::vector<Cell> cells_;
};

}  // namespace

std::vector<Cell> with_sharding(std::span<const Action> row, std::int32_t microbatches, std::int32_t ahead) {
  std::vector<std::vector<StageId>> upcoming(row.size());
  UpcomingStages stages;
  for (std::size_t i = row.size(); i-- > 0;) {
    stages.use(row[i], i);
    upcoming[i] = stages.first(static_cast<std::size_t>(std::max(ahead, 1)));
  }
  ShardedRow out(row.size(), microbatches);
  for (std::size_t i = 0; i < row.size(); ++i) {
    out.gather(upcoming[i]);
    out.run(row[i]);
  }
  return out.take();
}

}  // namespace tessera::train
