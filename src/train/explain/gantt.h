// A schedule as text: a lane per stream, wrapped into rows of equal time.
#pragma once

#include <string>
#include <vector>

#include "tessera/core/base/units.h"

namespace tessera::train {

struct GanttTask {
  std::size_t lane = 0;
  std::string label;  ///< where the cell is wide enough
  std::string brief;  ///< else, if it is wide enough for this
  Seconds start, end;
};

struct Gantt {
  std::string text;
  bool briefs = false;                  ///< some cell holds its brief label
  std::vector<std::size_t> unlabelled;  ///< tasks whose cell holds no label at all
};

/// `|` begins a task, `·` is idle time, `…` continues a task of the row above; ticks are milliseconds. As
/// many rows of at most `columns` as the brief labels need, up to a limit.
[[nodiscard]] Gantt draw_gantt(const std::vector<std::string>& lanes, const std::vector<GanttTask>& tasks,
                               Seconds makespan, std::size_t columns);

}  // namespace tessera::train
