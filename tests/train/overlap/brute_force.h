// The shortest makespan of a small graph, by trying every topological order.
//
// In-order streams started as early as possible reach the optimum for some order (a semi-active schedule), so
// the smallest makespan over all orders is it. Only for graphs of about nine tasks.
#pragma once

#include <algorithm>
#include <vector>

#include "tessera/train/overlap/task_graph.h"

namespace tessera::train::testing {

class BruteForce {
 public:
  explicit BruteForce(const TaskGraph& graph) : graph_(graph), end_(graph.tasks.size(), -1) {
    extend(0, 0, 0);
  }
  [[nodiscard]] double makespan() const { return best_; }

 private:
  void extend(std::size_t placed, double comp_free, double comm_free) {
    if (std::max(comp_free, comm_free) >= best_) return;
    if (placed == graph_.tasks.size()) {
      best_ = std::max(comp_free, comm_free);
      return;
    }
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
      if (end_[i] >= 0) continue;
      const bool comm = graph_.tasks[i].resource == Resource::comm;
      double start = comm ? comm_free : comp_free;
      bool ready = true;
      for (const TaskId before : graph_.tasks[i].after) {
        ready = ready && end_[before.index()] >= 0;
        start = std::max(start, end_[before.index()]);
      }
      if (!ready) continue;
      end_[i] = start + graph_.tasks[i].duration.value();
      extend(placed + 1, comm ? comp_free : end_[i], comm ? end_[i] : comm_free);
      end_[i] = -1;
    }
  }

  const TaskGraph& graph_;
  std::vector<double> end_;
  double best_ = 1e300;
};

}  // namespace tessera::train::testing
