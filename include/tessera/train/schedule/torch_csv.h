// Schedules as torch.distributed.pipelining writes and loads them: a row per rank, a cell per action.
//
//   0F0,0F1,(0F2;3B0)OVERLAP_F_B,,0I1,0W1          compute only
//   0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0RESHARD    with communication
//
// An empty cell is an idle step: it aligns rows for the eye and has no meaning. Files of 2024 say BW for the
// whole backward and B for the input gradient (now B and I); a file with neither BW nor I reads as a new one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/core/base/result.h"
#include "tessera/train/schedule/check_lowered.h"
#include "tessera/train/schedule/lowered_list.h"

namespace tessera::train {

enum class CsvForm : std::uint8_t { compute_only, compute_comms };
enum class CsvGrammar : std::uint8_t { current, of_2024 };

struct TorchCsv {
  LoweredList list;  ///< of a compute-only file: compute cells alone. One pipeline
  CsvForm form = CsvForm::compute_only;
  CsvGrammar grammar = CsvGrammar::current;
  std::int64_t idle_cells = 0;
};

/// Reads a file's text. Stages, where they live, and the number of microbatches follow from the cells. An
/// error names file, line and cell; `file` is the name it gives. Refused: anything the grammar does not know,
/// both ages in one file, a rank without cells, a stage on two ranks or on none.
[[nodiscard]] Result<TorchCsv> read_torch_csv(std::string_view text, std::string_view file);

/// Holds a file to this product's rules: check_schedule and, after lowering where it is compute-only,
/// check_lowered.
[[nodiscard]] Result<LoweredFacts> check_torch_csv(const TorchCsv& csv);

/// Writes the new grammar, without idle cells. Refused: more than one pipeline (DualPipe), since there a
/// stage's weights live on two ranks, which the format cannot say; and a rank without cells.
[[nodiscard]] Result<std::string> write_torch_csv(const ActionList& list);
[[nodiscard]] Result<std::string> write_torch_csv(const LoweredList& list);

/// What the runtime object that loads a file was made for; unset = as in the file.
struct TorchRuntime {
  std::optional<std::int64_t> ranks;
  std::optional<std::int64_t> stages;
  std::optional<std::int64_t> microbatches;
  std::optional<CsvForm> form;
};

/// What torch says.
struct TorchVerdict {
  bool accepted = false;
  std::string reason;  ///< the exception in torch's words, or close to them; empty when accepted
};

/// Would _PipelineScheduleRuntime._load_csv of PyTorch 2.13 take this text? It parses prefixes, counts sets
/// and lowers compute-only files; so it takes duplicates, "0F0junk" and "()OVERLAP_F_B", which fail later or
/// never. Knows nothing of read_torch_csv.
[[nodiscard]] TorchVerdict torch_loads(std::string_view text, const TorchRuntime& runtime = {});

}  // namespace tessera::train
