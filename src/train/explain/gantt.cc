#include "gantt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "table.h"

namespace tessera::train {
namespace {

constexpr std::size_t kMostRows = 24;
// A chart is wide enough when this share of its tasks has room for a brief label; tasks below this share of
// the mean length do not count.
constexpr double kReadable = 0.8, kTiny = 0.1;
constexpr std::string_view kIdle = "·", kContinued = "…", kBar = "|";

// One lane over all rows: a glyph per column, since some are wider than a byte.
class Lane {
 public:
  explicit Lane(std::size_t columns) : cells_(columns, " ") {}

  void idle(std::size_t from, std::size_t to) {
    for (std::size_t c = from; c < to; ++c) cells_[c] = kIdle;
  }
  void write(std::size_t at, std::string_view ascii) {
    for (const char letter : ascii) cells_[at++] = std::string(1, letter);
  }
  void put(std::size_t at, std::string_view glyph) { cells_[at] = glyph; }
  [[nodiscard]] std::string row(std::size_t from, std::size_t to) const {
    std::string out;
    for (std::size_t c = from; c < to; ++c) out += cells_[c];
    return out;
  }

 private:
  std::vector<std::string> cells_;
};

class Chart {
 public:
  Chart(const std::vector<GanttTask>& tasks, Seconds makespan, std::size_t width, std::size_t rows)
      : tasks_(tasks), makespan_(makespan), width_(width), columns_(width * rows) {}

  // Share of the tasks with room for their brief label.
  [[nodiscard]] double readable() const {
    Seconds total;
    for (const GanttTask& task : tasks_) total += task.end - task.start;
    const Seconds tiny = total * (kTiny / static_cast<double>(std::max<std::size_t>(1, tasks_.size())));
    std::size_t fits = 0, all = 0;
    for (const GanttTask& task : tasks_) {
      if (task.end - task.start <= tiny) continue;
      ++all;
      if (widest_piece(task) >= task.brief.size()) ++fits;
    }
    return all == 0 ? 1.0 : static_cast<double>(fits) / static_cast<double>(all);
  }

  Gantt draw(const std::vector<std::string>& names) const {
    Gantt out;
    std::vector<Lane> lanes(names.size(), Lane(columns_ + 1));
    for (Lane& lane : lanes) lane.idle(0, columns_);
    for (std::size_t t = 0; t < tasks_.size(); ++t) draw_task(lanes[tasks_[t].lane], t, out);
    std::size_t indent = 0;
    for (const std::string& name : names) indent = std::max(indent, display_width(name));
    for (std::size_t from = 0; from < columns_; from += width_) {
      const bool last = from + width_ >= columns_;
      if (from > 0) out.text += '\n';
      for (std::size_t k = 0; k < names.size(); ++k) {
        std::string line = fmt::format("{:<{}}  {}", names[k], indent, lanes[k].row(from, from + width_));
        if (last) line += kBar;
        line.erase(line.find_last_not_of(' ') + 1);
        out.text += line + '\n';
      }
      out.text += std::string(indent + 2, ' ') + axis(from, last) + '\n';
    }
    return out;
  }

 private:
  struct Piece {
    std::size_t begin, end;  // columns for a label
    bool first;
  };

  [[nodiscard]] std::size_t column(Seconds time) const noexcept {
    if (makespan_.value() <= 0) return 0;
    return static_cast<std::size_t>(std::llround(time / makespan_ * static_cast<double>(columns_)));
  }

  [[nodiscard]] std::vector<Piece> pieces(const GanttTask& task) const {
    std::vector<Piece> out;
    const std::size_t begin = column(task.start), end = column(task.end);
    for (std::size_t at = begin; at < end; at = (at / width_ + 1) * width_)
      out.push_back({at + 1, std::min(end, (at / width_ + 1) * width_), at == begin});
    return out;
  }
  [[nodiscard]] std::size_t widest_piece(const GanttTask& task) const {
    std::size_t widest = 0;
    for (const Piece& piece : pieces(task)) widest = std::max(widest, piece.end - piece.begin);
    return widest;
  }

  void draw_task(Lane& lane, std::size_t index, Gantt& out) const {
    const GanttTask& task = tasks_[index];
    bool labelled = false;
    for (const Piece& piece : pieces(task)) {
      lane.put(piece.begin - 1, piece.first ? kBar : kContinued);
      for (std::size_t c = piece.begin; c < piece.end; ++c) lane.put(c, " ");
      const std::size_t room = piece.end - piece.begin;
      const bool whole = task.label.size() <= room;
      if (!whole && task.brief.size() > room) continue;
      lane.write(piece.begin, whole ? task.label : task.brief);
      labelled = true;
      out.briefs = out.briefs || !whole;
    }
    const std::size_t end = column(task.end);
    if (end < columns_ && end > column(task.start) && end % width_ != 0) close(lane, index, end);
    if (!labelled) out.unlabelled.push_back(index);
  }
  // What ends before idle time ends with a bar.
  void close(Lane& lane, std::size_t index, std::size_t end) const {
    const bool followed = std::ranges::any_of(tasks_, [&](const GanttTask& other) {
      return other.lane == tasks_[index].lane && column(other.start) == end && column(other.end) > end;
    });
    if (!followed) lane.put(end, kBar);
  }

  // Round times, at least 12 columns apart, and the makespan at the end.
  [[nodiscard]] std::string axis(std::size_t from, bool last) const {
    const double per_column = milliseconds(makespan_) / static_cast<double>(columns_);
    const double least = 12 * per_column;
    double step = std::pow(10.0, std::floor(std::log10(least)));
    for (const double factor : {1.0, 2.0, 5.0, 10.0})
      if (factor * step >= least) {
        step *= factor;
        break;
      }
    const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
    const int end_decimals = std::max(2, decimals);
    std::string line(width_, ' ');
    const std::string end = fmt::format("{:.{}f} ms", milliseconds(makespan_), end_decimals);
    const std::size_t free = last ? width_ - std::min(width_, end.size() + 2) : width_;
    for (auto k = static_cast<std::int64_t>(std::ceil(static_cast<double>(from) * per_column / step - 1e-9));;
         ++k) {
      const auto at = static_cast<std::size_t>(
          std::llround(static_cast<double>(k) * step / per_column - static_cast<double>(from)));
      const std::string tick = fmt::format("{:.{}f}", static_cast<double>(k) * step, decimals);
      if (at + tick.size() > free) break;
      line.replace(at, tick.size(), tick);
    }
    if (last)
      line.replace(width_ - end.size(), end.size(), end);
    else
      line.erase(line.find_last_not_of(' ') + 1);
    return line;
  }

  const std::vector<GanttTask>& tasks_;
  Seconds makespan_;
  std::size_t width_, columns_;
};

}  // namespace

Gantt draw_gantt(const std::vector<std::string>& lanes, const std::vector<GanttTask>& tasks, Seconds makespan,
                 std::size_t columns) {
  std::size_t indent = 0;
  for (const std::string& lane : lanes) indent = std::max(indent, display_width(lane));
  const std::size_t width = columns - indent - 3;  // two spaces, and the bar at the end
  std::size_t rows = 1;
  while (rows < kMostRows && Chart(tasks, makespan, width, rows).readable() < kReadable) ++rows;
  return Chart(tasks, makespan, width, rows).draw(lanes);
}

}  // namespace tessera::train
