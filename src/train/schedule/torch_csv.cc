#include "tessera/train/schedule/torch_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tessera/core/base/text.h"

namespace tessera::train {
namespace {

constexpr std::size_t kShownCell = 40;  // characters of a wrong cell in its error

struct CellPlace {
  std::size_t line = 0;  // both 1-based
  std::size_t cell = 0;
};

class Reader {
 public:
  Reader(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  Result<TorchCsv> read() {
    if (text_.empty())
      return fault({1, 0}, "the file is empty", "A schedule has a row per rank, such as 0F0,0B0.");
    TESSERA_CHECK(find_age());
    std::size_t line = 0;
    std::string_view rest = text_.ends_with('\n') ? text_.substr(0, text_.size() - 1) : text_;
    for (bool last = false; !last;) {
      const std::size_t end = rest.find('\n');
      last = end == std::string_view::npos;
      std::string_view row = rest.substr(0, end);
      if (!last) rest.remove_prefix(end + 1);
      if (row.ends_with('\r')) row.remove_suffix(1);
      TESSERA_CHECK(read_row(row, ++line));
    }
    TESSERA_CHECK(place_stages());
    return std::move(csv_);
  }

 private:
  std::unexpected<Error> fault(CellPlace place, std::string message, std::string hint = {}) const {
    return std::unexpected(Error{.kind = ErrorKind::bad_input,
                                 .file = std::string(file_),
                                 .line = static_cast<int>(place.line),
                                 .key = place.cell == 0 ? std::string() : fmt::format("cell {}", place.cell),
                                 .message = std::move(message),
                                 .hint = std::move(hint)});
  }
  [[nodiscard]] CellPlace place_of(std::size_t offset) const {
    const std::string_view before = text_.substr(0, offset);
    const std::size_t row = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    return {static_cast<std::size_t>(std::ranges::count(before, '\n')) + 1,
            static_cast<std::size_t>(std::ranges::count(before.substr(row), ',')) + 1};
  }

  // No other word of the grammar has an I, or a W behind a B.
  Status find_age() {
    const std::size_t old = text_.find("BW"), now = text_.find('I');
    if (old != std::string_view::npos) csv_.grammar = CsvGrammar::of_2024;
    if (old == std::string_view::npos || now == std::string_view::npos) return {};
    const CellPlace first = place_of(now);
    return fault(
        place_of(old),
        fmt::format("BW belongs to the grammar of 2024, but line {} cell {} has the I of the new one",
                    first.line, first.cell),
        "Write B for the whole backward, I for the input gradient and W for the weight gradient.");
  }

  Status read_row(std::string_view row, std::size_t line) {
    auto& cells = csv_.list.ranks.emplace_back();
    std::size_t number = 0;
    for (const std::string_view piece : split(row, ',')) {
      const CellPlace place{line, ++number};
      const std::string_view word = trim(piece);
      if (word.empty()) {
        ++csv_.idle_cells;
        continue;
      }
      const std::optional<Cell> cell = parse(word);
      if (!cell) return refuse(word, place);
      if (cell->kind != CellKind::compute) csv_.form = CsvForm::compute_comms;
      TESSERA_CHECK(note(cell->action.stage, place));
      if (cell->kind == CellKind::compute || is_message(cell->kind)) note(cell->action.microbatch);
      if (cell->kind == CellKind::compute && cell->action.kind == ActionKind::overlap) {
        TESSERA_CHECK(note(cell->action.backward_stage, place));
        note(cell->action.backward_microbatch);
      }
      cells.push_back(*cell);
    }
    if (!cells.empty()) return {};
    return fault({line, 0}, fmt::format("rank {} has no actions", line - 1),
                 "Each line is a rank; remove an empty line.");
  }

  [[nodiscard]] std::optional<Cell> parse(std::string_view word) const {
    if (csv_.grammar == CsvGrammar::current) return parse_cell(word);
    // The 2024 grammar has no pairs. Its BW is B now, its B is I.
    const std::size_t whole = word.find("BW");
    std::string renamed(word);
    if (whole != std::string::npos) renamed.erase(whole + 1, 1);
    std::optional<Cell> cell = parse_cell(renamed);
    if (!cell || cell->kind != CellKind::compute) return whole == std::string::npos ? cell : std::nullopt;
    if (cell->action.kind == ActionKind::overlap) return std::nullopt;
    if (whole == std::string::npos && cell->action.kind == ActionKind::full_backward)
      cell->action.kind = ActionKind::input_gradient;
    return cell;
  }

  std::unexpected<Error> refuse(std::string_view word, CellPlace place) const {
    std::string hint =
        "A cell is <stage>F<microbatch>, B (whole backward), I (input gradient) or W (weight gradient),\n"
        "(<F>;<B or I>)OVERLAP_F_B, <stage>SEND_F<microbatch>, RECV_F, SEND_B, RECV_B, or\n"
        "<stage>UNSHARD, RESHARD, REDUCE_GRAD; capital letters.";
    std::string shown;
    for (const char c : word.substr(0, kShownCell)) {
      const bool printable = static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f;
      shown += printable ? c : '?';
    }
    if (word.size() > kShownCell) shown += "…";
    return fault(place, fmt::format("\"{}\" is no action", shown), std::move(hint));
  }

  Status note(StageId stage, CellPlace place) {
    const auto rank = csv_.list.ranks.size() - 1;
    const auto [at, fresh] = homes_.try_emplace(stage, Home{rank, place});
    if (fresh || at->second.rank == rank) return {};
    return fault(place,
                 fmt::format("stage {} is on rank {} here, but on rank {} in line {} cell {}", stage.value(),
                             rank, at->second.rank, at->second.place.line, at->second.place.cell),
                 "All actions of a stage belong to one rank. A schedule with two copies of each stage\n"
                 "(DualPipe) cannot be said in this format; DualPipeV can.");
  }
  void note(MicrobatchId microbatch) noexcept {
    // One more than the largest index fits, since 2³¹ − 1 itself is refused below.
    most_ = std::max(most_, std::int64_t{microbatch.value()} + 1);
  }

  Status place_stages() {
    if (most_ > kMostMicrobatches)
      return fault({1, 0}, fmt::format("{} microbatches; at most {} can be held", most_, kMostMicrobatches));
    csv_.list.microbatches = static_cast<std::int32_t>(most_);
    for (const auto& [stage, home] : homes_) {
      const auto expected = static_cast<std::int32_t>(csv_.list.rank_of_stage.size());
      if (stage.value() != expected)
        return fault(home.place,
                     fmt::format("there is a stage {}, but no rank runs stage {}", stage.value(), expected),
                     "Stages count from 0 without a gap.");
      csv_.list.rank_of_stage.emplace_back(static_cast<std::int64_t>(home.rank));
    }
    return {};
  }

  static constexpr std::int64_t kMostMicrobatches = 1 << 30;
  struct Home {
    std::size_t rank;
    CellPlace place;  // of its first cell
  };
  std::string_view text_;
  std::string_view file_;
  TorchCsv csv_;
  std::map<StageId, Home> homes_;
  std::int64_t most_ = 0;
};

template <class List>
Result<std::string> write(const List& list) {
  if (list.pipelines > 1)
    return bad_input(
        fmt::format(
            "{} pipelines side by side hold each stage's weights on {} ranks, and a torch CSV can say "
            "one rank per stage",
            list.pipelines, list.pipelines),
        "Use dualpipe-v, the folded form, or --to chrome.");
  std::string out;
  for (std::size_t r = 0; r < list.ranks.size(); ++r) {
    if (list.ranks[r].empty())
      return bad_input(fmt::format("rank {} has no actions, and a torch CSV needs a row per rank", r));
    bool first = true;
    for (const auto& cell : list.ranks[r]) {
      if (!first) out += ',';
      first = false;
      out += text(cell);
    }
    out += '\n';
  }
  return out;
}

}  // namespace

Result<TorchCsv> read_torch_csv(std::string_view text, std::string_view file) {
  return Reader(text, file).read();
}

Result<LoweredFacts> check_torch_csv(const TorchCsv& csv) {
  if (csv.form == CsvForm::compute_comms) return check_lowered(csv.list);
  const ActionList actions = without_communication(csv.list);
  TESSERA_CHECK(check_schedule(actions));
  TESSERA_TRY(const LoweredList lowered, lower(actions));
  return check_lowered(lowered);
}

Result<std::string> write_torch_csv(const ActionList& list) {
  return write(list);
}
Result<std::string> write_torch_csv(const LoweredList& list) {
  return write(list);
}

}  // namespace tessera::train
