// What goes on inside an action. It does not depend on when the action starts, so each distinct one (a
// stage's pass, or a pair of stages; the rank, and so its speed, follows from the stage) is timed once.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/train/execution_plan/execution_plan.h"

namespace tessera::train {

/// Times from the action's start.
struct TaskTiming {
  TaskName name;
  Resource stream = Resource::comp;
  bool forward = false;  ///< of the action's forward chunk; else of its backward chunk
  Seconds start, end;
};

struct ActionTiming {
  Seconds duration;
  Seconds comp_busy, comm_busy;
  Seconds exposed_comm;  ///< comm running while comp is idle
  std::vector<TaskTiming> tasks;
};

struct ActionTimings {
  std::vector<ActionTiming> distinct;         ///< of what is no shadow; a shadow alone takes no time
  std::vector<std::vector<std::int32_t>> of;  ///< per rank and action, index into `distinct`

  [[nodiscard]] static Result<ActionTimings> build(const ExecutionPlan& plan);
  [[nodiscard]] const ActionTiming& at(std::size_t rank, std::size_t index) const noexcept {
    return distinct[static_cast<std::size_t>(of[rank][index])];
  }
};

/// How much longer a measured pair takes than its tasks say, on the rank that runs it; 1 where it was not
/// measured.
[[nodiscard]] double measured_stretch(const PairPlan& pair, Seconds composed) noexcept;

/// Compute at the rank's speed; communication does not care.
[[nodiscard]] TaskGraph at_rank_speed(const ExecutionPlan& plan, StageId stage, TaskGraph graph);

}  // namespace tessera::train
