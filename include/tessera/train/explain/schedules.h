// Schedules without a plan, from a template or a file, in words, JSON and as a trace.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/train/schedule/check_lowered.h"
#include "tessera/train/schedule/schedule_times.h"
#include "tessera/train/schedule/torch_csv.h"

namespace tessera::train {

/// `tessera import --schedule`: form, grammar, sizes, placement, counts; times with F = I = W = 1 when it
/// runs.
[[nodiscard]] std::string schedule_text(std::string_view file, const TorchCsv& csv);
[[nodiscard]] std::string schedule_json(std::string_view file, const TorchCsv& csv);

/// `tessera check` of a schedule that passed.
[[nodiscard]] std::string schedule_check_text(std::string_view file, const TorchCsv& csv,
                                              const LoweredFacts& facts);
[[nodiscard]] std::string schedule_check_json(std::string_view file, const TorchCsv& csv,
                                              const LoweredFacts& facts);

/// `tessera check --as torch`.
[[nodiscard]] std::string torch_verdict_text(std::string_view file, const TorchVerdict& verdict);
[[nodiscard]] std::string torch_verdict_json(std::string_view file, const TorchVerdict& verdict);

/// `tessera schedules`.
struct SchedulesQuestion {
  TemplateSizes sizes;
  StageCost chunk;
  Seconds transfer;
  double pair_share = 1;
};
[[nodiscard]] std::string schedules_text(const SchedulesQuestion& question);
[[nodiscard]] std::string schedules_json(const SchedulesQuestion& question);

/// The schedule as a Chrome trace: a lane per rank, an arrow per transfer. A time unit of `times` is a
/// second.
[[nodiscard]] std::string schedule_trace(const ActionList& list, const ScheduleTimes& times);

}  // namespace tessera::train
