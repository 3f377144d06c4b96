#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "table.h"
#include "tessera/core/base/text.h"
#include "tessera/train/explain/explain.h"

namespace tessera::train {

std::string profile_text(std::span<const ProfileCell> cells) {
  std::string pairs;
  std::int64_t count = 0;
  for (std::size_t first = 0; first < cells.size(); ++count) {
    const ProfileKey& key = cells[first].key;
    pairs += fmt::format("\npair      {}\nmesh      {}\nschedule  {}\nsoftware  {}\n", key.pair, key.mesh,
                         key.schedule, key.software);
    Table table;
    for (; first < cells.size() && cells[first].key == key; ++first) {
      const ProfileValue& value = cells[first].value;
      table.row({std::string(name(cells[first].source)), fmt::format("{:.3f} ms", milliseconds(value.median)),
                 fmt::format("± {:.3g} %", 100 * value.error),
                 fmt::format("spread {:.3g} %", 100 * value.spread),
                 fmt::format("of {}", with_thousands(value.count))});
    }
    pairs += table.text("  ");
  }
  return fmt::format("{} {}, {} {}\n", with_thousands(count), count == 1 ? "pair" : "pairs",
                     with_thousands(std::ssize(cells)), cells.size() == 1 ? "value" : "values") +
         pairs;
}

std::string profile_json(std::span<const ProfileCell> cells) {
  using Json = nlohmann::ordered_json;
  Json out = Json::array();
  for (const ProfileCell& cell : cells)
    out.push_back({{"mesh", cell.key.mesh},
                   {"pair", cell.key.pair},
                   {"schedule", cell.key.schedule},
                   {"software", cell.key.software},
                   {"source", name(cell.source)},
                   {"median_ms", milliseconds(cell.value.median)},
                   {"spread", cell.value.spread},
                   {"count", cell.value.count},
                   {"error", cell.value.error}});
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tessera::train
