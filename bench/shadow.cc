// What shadow microbatches cost: interleaved 1F1B with groups of K = p and M microbatches that p does not
// divide, F = 1, B = 2, transfers free. Overhead = makespan / ((M·v + p − 1)(F + B)) − 1: the denominator is
// what a number that divides would take. "Best" is the better of the searched places and of any larger group
// that holds no more activations than groups of p.
//
//   make bench BENCH=shadow
#include "tessera/train/schedule/shadow.h"

#include <chrono>
#include <optional>

#include "report.h"
#include "tessera/train/schedule/check_schedule.h"

namespace {

using namespace tessera;
using namespace tessera::train;

constexpr double kForward = 1, kBackward = 2;

Seconds unit_time(const Action& action) {
  return Seconds(action.kind == ActionKind::forward ? kForward : kBackward);
}
double makespan(const ActionList& list) {
  return pipeline_makespan(list, unit_time, Seconds(0)).value().value();
}
std::int32_t peak_of(const ActionList& list) {
  return std::ranges::max(check_schedule(list).value().peak_live);
}

struct Point {
  double last = 0, placed = 0, best = 0;  // overheads
  std::optional<double> group;            // of the smallest legal group, whatever it holds
  std::int32_t peak = 0, group_peak = 0;  // chunk activations
  bool proved = false;
};

Point measure(const TemplateSizes& sizes) {
  const std::int32_t padded = padded_microbatches(Template::interleaved, sizes);
  const double bound =
      (static_cast<double>(sizes.microbatches) * sizes.vp + sizes.pp - 1) * (kForward + kBackward);
  const auto overhead = [&](double time) {
    bench::verify(time >= bound * (1 - 1e-12), "no order beats the closed form");
    return time / bound - 1;
  };
  Point out;
  const auto last =
      make_padded_schedule(Template::interleaved, sizes, padded,
                           shadow_places(ShadowPlacement::last, padded, padded - sizes.microbatches));
  out.last = overhead(makespan(last.value()));
  const ShadowChoice found =
      best_shadows(Template::interleaved, sizes, padded, unit_time, Seconds(0)).value();
  const ActionList placed = make_padded_schedule(Template::interleaved, sizes, padded, found.places).value();
  bench::verify(makespan(placed) == found.makespan.value(), "the search's makespan is the order's");
  out.placed = overhead(found.makespan.value());
  out.proved = found.proved;
  out.peak = peak_of(placed);
  out.best = out.placed;
  const std::int32_t allowed = (sizes.vp - 1) * sizes.pp + 2 * (sizes.pp - 1) + 1;  // groups of p, M large
  for (const std::int32_t group : legal_groups(sizes.pp, sizes.microbatches)) {
    TemplateSizes larger = sizes;
    larger.group = group;
    const ActionList list = make_schedule(Template::interleaved, larger).value();
    const double time = overhead(makespan(list));
    if (!out.group) {
      out.group = time;
      out.group_peak = peak_of(list);
    }
    if (peak_of(list) <= allowed) out.best = std::min(out.best, time);
  }
  return out;
}

}  // namespace

int main() {
  bench::Table table({"p × v", "M", "last %", "placed %", "", "best %", "live", "smallest group %", "live"},
                     1);
  std::vector<double> best, last;
  double worst_seconds = 0;
  const auto percent = [](double share) { return fmt::format("{:.2f}", 100 * share); };
  for (const auto& [pp, vp] : {std::pair{4, 2}, std::pair{8, 4}, std::pair{16, 2}}) {
    for (const int groups : {1, 2, 4, 8, 16}) {
      for (const int rest : {1, pp / 2, pp - 1}) {
        const TemplateSizes sizes{.pp = pp, .vp = vp, .microbatches = groups * pp + rest};
        const auto begin = std::chrono::steady_clock::now();
        const Point point = measure(sizes);
        worst_seconds = std::max(
            worst_seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        table.add({fmt::format("{} × {}", pp, vp), fmt::format("{}", sizes.microbatches), percent(point.last),
                   percent(point.placed), point.proved ? "proved" : "searched", percent(point.best),
                   fmt::format("{}", point.peak), point.group ? percent(*point.group) : "-",
                   point.group ? fmt::format("{}", point.group_peak) : "-"});
        best.push_back(point.best);
        last.push_back(point.last);
      }
    }
  }
  table.print();
  const auto mean = [](const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  };
  fmt::print("\nmean overhead {} at the best places, {} with the shadows last; published: about 0.5 %\n",
             bench::percent(mean(best)), bench::percent(mean(last)));
  bench::Json()
      .add("points", best.size())
      .add("best_mean_percent", 100 * mean(best))
      .add("best_median_percent", 100 * bench::quantile(best, 0.5))
      .add("best_worst_percent", 100 * bench::quantile(best, 1))
      .add("last_mean_percent", 100 * mean(last))
      .add("published_percent", 0.5)
      .add("slowest_point_seconds", worst_seconds)
      .print();
  return 0;
}
