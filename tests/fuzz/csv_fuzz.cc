// Schedules in CSV from any bytes: an error with a place, or a list that can be written, read again, judged
// and timed. What passes our check must pass torch's loader.
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/tally.h"
#include "tessera/core/base/text.h"
#include "tessera/train/schedule/launch_order.h"
#include "tessera/train/schedule/schedule_times.h"
#include "tessera/train/schedule/torch_csv.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace tessera;

fuzzing::Tally tally("csv");

using Random = std::minstd_rand;
std::size_t below(Random& random, std::size_t n) {
  return n == 0 ? 0 : random() % n;
}

// One change to a cell, or of its place.
void change(std::vector<std::vector<std::string>>& rows, Random& random) {
  auto& row = rows[below(random, rows.size())];
  if (row.empty()) return;
  const std::size_t at = below(random, row.size());
  const auto here = row.begin() + static_cast<std::ptrdiff_t>(at);
  const std::string cell = row[at];
  switch (below(random, 16)) {
    case 0:
    case 8:
      std::swap(row[at], row[below(random, row.size())]);
      break;
    case 1:
    case 9:
    case 10:
      if (at + 1 < row.size()) std::swap(row[at], row[at + 1]);
      break;
    case 2:
    case 11:
      row.erase(here);
      break;
    case 3:
    case 12:
      row.insert(here, cell);
      break;
    case 13: {  // elsewhere in its row
      row.erase(here);
      row.insert(row.begin() + static_cast<std::ptrdiff_t>(below(random, row.size() + 1)), cell);
      break;
    }
    case 4: {
      row.erase(here);
      auto& other = rows[below(random, rows.size())];
      other.insert(other.begin() + static_cast<std::ptrdiff_t>(below(random, other.size() + 1)), cell);
      break;
    }
    case 14:  // a step that does nothing
      row.insert(here, "");
      break;
    case 5: {  // another number
      std::vector<std::size_t> digits;
      for (std::size_t i = 0; i < cell.size(); ++i)
        if (cell[i] >= '0' && cell[i] <= '9') digits.push_back(i);
      if (!digits.empty())
        row[at][digits[below(random, digits.size())]] = static_cast<char>('0' + below(random, 10));
      break;
    }
    case 6: {  // another word
      constexpr std::string_view words[] = {
          "F", "B", "I", "W", "BW", "SEND_F", "RECV_B", "UNSHARD", "()OVERLAP_F_B", ""};
      const std::size_t letter = cell.find_first_not_of("0123456789");
      if (letter != std::string::npos)
        row[at] = cell.substr(0, letter) + std::string(words[below(random, 10)]) +
                  cell.substr(std::min(cell.size(), letter + 1));
      break;
    }
    default:
      if (!cell.empty()) row[at][below(random, cell.size())] = static_cast<char>(' ' + below(random, 95));
  }
}

// A fresh schedule, for mutants of mutants that are past reading.
std::string fresh(Random& random) {
  using namespace tessera::train;
  while (true) {
    const auto schedule = static_cast<Template>(below(random, kTemplates));
    if (traits(schedule).durations) continue;  // slow to make under the sanitizers
    const int chunks = traits(schedule).chunks;
    const auto list =
        make_schedule(schedule, {.pp = 1 + static_cast<int>(below(random, 3)),
                                 .vp = chunks != 0 ? chunks : 1 + static_cast<int>(below(random, 3)),
                                 .microbatches = 1 + static_cast<int>(below(random, 6))});
    if (!list || list->pipelines > 1) continue;
    if (below(random, 2) == 0) return write_torch_csv(*list).value_or("");
    const auto lowered = lower(*list, {.shard = below(random, 2) == 0});
    return lowered ? write_torch_csv(*lowered).value_or("") : "";
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  Random random(seed);
  if (size == 0 || below(random, 8) == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::vector<std::vector<std::string>> rows;
  std::string base(reinterpret_cast<const char*>(data), size);
  if (below(random, 4) != 0 && !train::read_torch_csv(base, "base")) base = fresh(random);
  for (const std::string_view line : split(base, '\n')) {
    if (line.empty()) continue;
    auto& row = rows.emplace_back();
    for (const std::string_view cell : split(line, ',')) row.emplace_back(cell);
  }
  if (rows.empty()) return LLVMFuzzerMutate(data, size, max_size);
  for (std::size_t changes = 1 + below(random, 2); changes > 0; --changes) change(rows, random);
  std::string out;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) out += (i == 0 ? "" : ",") + row[i];
    out += '\n';
  }
  if (out.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, out.data(), out.size());
  return out.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tessera::train;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ++tally.mutants;
  const TorchVerdict torch = torch_loads(text);
  if (torch.accepted != torch.reason.empty()) std::abort();
  const auto csv = read_torch_csv(text, "mutant.csv");
  if (!csv) {
    if (csv.error().message.empty() || csv.error().file.empty() || csv.error().line < 1) std::abort();
    return 0;
  }
  ++tally.parsed;
  ++tally.reached;
  const auto written = write_torch_csv(csv->list);
  if (!written) std::abort();
  const auto again = read_torch_csv(*written, "again.csv");
  // A 2024 file without its BW cells is no 2024 file any more, so compare what it was written as.
  if (!again || again->list != csv->list || again->form != csv->form) std::abort();
  const auto facts = check_torch_csv(*csv);
  if (!facts) {
    if (facts.error().message.empty()) std::abort();
    return 0;
  }
  ++tally.accepted;
  if (!time_schedule(without_communication(csv->list))) std::abort();
  if (csv->form == CsvForm::compute_comms && !facts->overtaking &&
      !check_launch_order(launch_orders(csv->list)))
    std::abort();
  const bool idle = csv->form == CsvForm::compute_comms && csv->idle_cells > 0;
  if (!idle && !torch_loads(*written).accepted) std::abort();
  return 0;
}
