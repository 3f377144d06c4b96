// Phrases and figures about a schedule file that text and JSON share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/train/schedule/schedule_times.h"
#include "tessera/train/schedule/torch_csv.h"

namespace tessera::train {

struct ScheduleCounts {
  std::int64_t forwards = 0, whole_backwards = 0, input_gradients = 0, weight_gradients = 0;
  std::int64_t pairs = 0;  ///< whose halves are counted above too
  std::int64_t messages = 0, gathers = 0, reductions = 0;
};
[[nodiscard]] ScheduleCounts count_cells(const LoweredList& list);
/// Stages per rank, ascending.
[[nodiscard]] std::vector<std::vector<std::int32_t>> stages_of_ranks(const LoweredList& list);
[[nodiscard]] std::string_view form_name(CsvForm form) noexcept;           ///< "compute_only"
[[nodiscard]] std::string_view grammar_name(CsvGrammar grammar) noexcept;  ///< "current", "2024"
/// "4, 4, 3".
[[nodiscard]] std::string numbers(const std::vector<std::int32_t>& values);
/// "0SEND_F1 from rank 0 to rank 1".
[[nodiscard]] std::string overtaking_words(const Overtaking& overtaking);

}  // namespace tessera::train
