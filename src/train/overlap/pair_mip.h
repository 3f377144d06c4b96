// The disjunctive MILP of a pair: when each task starts, and which of two tasks on one stream goes first.
//
//   min T   s_j ≥ s_i + d_i                       j needs i
//           s_j ≥ s_i + d_i − M_ij·(1 − y_ij)      y_ij = 1: i before j, on one stream
//           s_i ≥ s_j + d_j − M_ji·y_ij
//           T ≥ s_i + d_i
//
// A task that may go to the pool has a 0-1 column; left, it takes no time: d becomes d·(1 − left). Each M is
// as small as a known schedule's length and the chains before and after its tasks let it be. Times count in a
// unit that makes most of them near 1, for HiGHS' tolerances are absolute.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "flat_graph.h"
#include "tessera/core/solver/mip.h"

namespace tessera::train {

class PairMip {
 public:
  /// `longest`: length of a schedule there is, in seconds, above 0; longer ones are not in the model.
  PairMip(const FlatGraph& graph, double credit, double longest);

  [[nodiscard]] const MipModel& model() const noexcept { return model_; }
  [[nodiscard]] double unit() const noexcept { return unit_; }  ///< seconds in a unit of the model's time
  /// Longest chain or most work on a stream, in seconds: no schedule is shorter.
  [[nodiscard]] double simple_bound() const noexcept { return simple_bound_ * unit_; }

  /// Column values of a schedule no longer than `longest`; the tasks it lacks are left to the pool.
  [[nodiscard]] std::vector<double> values_of(const LaunchOrder& order) const;
  /// The order in which a solution runs the tasks it does not leave; none when it leaves too much.
  [[nodiscard]] std::optional<LaunchOrder> order_of(std::span<const double> values) const;

 private:
  using Task = std::int32_t;
  struct Choice {  // of two tasks on one stream
    Task first, second;
    MipColumn column;  // 1 = in this order
  };
  enum class Order : std::uint8_t { open, as_named, reversed };

  [[nodiscard]] std::int32_t size() const noexcept { return graph_.size(); }
  [[nodiscard]] static std::size_t at(Task task) noexcept { return static_cast<std::size_t>(task); }
  [[nodiscard]] bool may_leave(Task task) const { return left_[at(task)].has_value(); }

  void find_ancestors();
  void find_what_may_leave();
  void find_windows(double longest);
  [[nodiscard]] bool goes_first_of_twins(Task a, Task b) const;
  [[nodiscard]] Order known_order(Task a, Task b) const;
  [[nodiscard]] double shortest_makespan() const;

  void add_columns(double longest);
  void add_order_choices();
  void add_position_cuts();
  // For a row `terms ≥ …` whose right side has the task's length·(1 − left): adds what belongs on the left
  // side and gives the constant on the right.
  double demand_length(Task task, std::vector<MipTerm>& terms) const;
  void add_sequence(Task earlier, Task later);

  const FlatGraph& graph_;
  double unit_;
  double credit_;  // in units, as all times below
  std::vector<double> length_;
  std::vector<double> head_, tail_;       // longest chain up to the start, and from it on, in any schedule
  std::vector<double> latest_;            // start
  std::vector<std::vector<bool>> needs_;  // [task][other]: other comes before, through others too
  std::vector<std::optional<MipColumn>> left_;
  std::vector<MipColumn> start_;
  MipColumn makespan_;
  double simple_bound_ = 0;
  std::vector<Choice> choices_;
  std::vector<std::pair<Task, Task>> twins_;    // the first goes first
  std::vector<std::pair<Task, Task>> decided_;  // the first goes first
  MipModel model_;
};

}  // namespace tessera::train
