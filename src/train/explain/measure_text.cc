#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "table.h"
#include "tessera/core/base/text.h"
#include "tessera/train/explain/explain.h"

namespace tessera::train {
namespace {

using Json = nlohmann::ordered_json;

std::string percent(double share) {
  return fmt::format("{:.3g} %", 100 * share);
}

std::string verdict(const MeasureReport& r) {
  const std::string bounds = fmt::format(
      "The slowest pair of the best partition takes {:.2f} … {:.2f} ms, if composed times are right within "
      "{} and measured ones within {}.\n",
      milliseconds(r.lower), milliseconds(r.upper), percent(r.composed_error), percent(r.measured_error));
  const std::string known = fmt::format("{} of {} distinct pairs are measured.\n", with_thousands(r.measured),
                                        with_thousands(r.distinct));
  if (r.certain)
    return bounds + known +
           fmt::format("The choice is certain: no measurement makes another partition better by {}.\n",
                       percent(r.tolerance));
  std::string out = bounds + known;
  // The reason why measuring may not be enough.
  constexpr std::string_view kDoubt =
      "pairs as slow as each other cannot be told apart better than they are measured, and stages that "
      "overlap with nothing stay composed";
  if (r.next.empty())
    return out + fmt::format("The choice is within {} of the best, and no pair is left to measure: {}.\n",
                             percent(r.regret), kDoubt);
  out += fmt::format("The choice is not certain yet: {} more {} can change it. ",
                     with_thousands(std::ssize(r.next)), r.next.size() == 1 ? "pair" : "pairs");
  return out + (r.certain_then
                    ? fmt::format("If each confirms its composed time, it is then certain within {}.\n",
                                  percent(r.tolerance))
                    : fmt::format("If each confirms its composed time, it is then within {} of the best, not "
                                  "{}: {}.\n",
                                  percent(r.regret_then), percent(r.tolerance), kDoubt));
}

}  // namespace

std::string measure_text(const MeasureReport& report) {
  std::string out =
      fmt::format("{} on {}, {}: which pairs to measure\n\n", report.model, report.device, report.schedule);
  out += verdict(report);
  if (report.next.empty()) return out;
  Table table(4);
  table.row({"", "forward", "backward", "composed ms", "forward holds | backward holds"});
  for (std::size_t i = 0; i < report.next.size(); ++i) {
    const PairToProfile& pair = report.next[i];
    table.row({fmt::format("{}", i + 1), fmt::format("{}", pair.forward.value()),
               fmt::format("{}", pair.backward.value()), fmt::format("{:.2f}", milliseconds(pair.composed)),
               fmt::format("{} | {}", pair.forward_holds, pair.backward_holds)});
  }
  return out + "\nMost useful first:\n\n" + table.text("  ") +
         "\n--json gives each its four keys and its launch order, for a profiler.\n";
}

std::string measure_json(const MeasureReport& report) {
  Json pairs = Json::array();
  for (const PairToProfile& pair : report.next)
    pairs.push_back({{"mesh", pair.key.mesh},
                     {"pair", pair.key.pair},
                     {"schedule", pair.key.schedule},
                     {"software", pair.key.software},
                     {"composed_ms", milliseconds(pair.composed)},
                     {"forward", {{"stage", pair.forward.value()}, {"holds", pair.forward_holds}}},
                     {"backward", {{"stage", pair.backward.value()}, {"holds", pair.backward_holds}}},
                     {"launch_order", pair.launch_order}});
  const Json out{{"model", report.model},
                 {"device", report.device},
                 {"schedule", report.schedule},
                 {"certain", report.certain},
                 {"regret", report.regret},
                 {"certain_then", report.certain_then},
                 {"regret_then", report.regret_then},
                 {"tolerance", report.tolerance},
                 {"composed_error", report.composed_error},
                 {"measured_error", report.measured_error},
                 {"lower_ms", milliseconds(report.lower)},
                 {"upper_ms", milliseconds(report.upper)},
                 {"distinct_pairs", report.distinct},
                 {"measured_pairs", report.measured},
                 {"to_measure", pairs}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tessera::train
