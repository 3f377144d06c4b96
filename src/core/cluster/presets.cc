// The shipped presets, parsed once from the embedded data/presets/gpus.yaml.

#include <fmt/format.h>

#include <algorithm>

#include "gpu_fields.h"
#include "tessera/core/base/text.h"
#include "tessera/core/cluster/cluster.h"

namespace tessera {

namespace embedded {
std::string_view gpus_yaml();
}

namespace {

using cluster_detail::Field;
using cluster_detail::fields;
using cluster_detail::find_field;
using cluster_detail::set_field;

// [value, "source"]: a number without a source is refused, so that none slips in.
Status read_sourced(const Field& field, Cursor pair, Cluster& cluster) {
  if (!pair.is_list() || pair.size() != 2) return pair.error("expected [value, \"source\"]");
  TESSERA_TRY(const std::string source, pair.item(1).string());
  if (source.empty()) return pair.error("the source is empty");
  return set_field(field, pair.item(0), cluster);
}

Result<TableRelative> read_relative(Cursor entry) {
  if (!entry.is_list() || entry.size() < 3 || entry.size() > 4)
    return entry.error(
        "expected [device, time factor, \"reason\"], and `compute only` where the links differ");
  TableRelative out;
  TESSERA_TRY(out.device, entry.item(0).string());
  TESSERA_TRY(out.time_factor, entry.item(1).number(0.01, 100));
  TESSERA_TRY(out.reason, entry.item(2).string());
  if (entry.size() == 4) {
    TESSERA_TRY(const std::string scope, entry.item(3).string());
    if (scope != "compute only") return entry.item(3).error("expected `compute only`");
    out.fabric = false;
  }
  return out;
}

Status read_fields(Cursor map, Cluster& cluster) {
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (map.key(i) == "relatives") {
      const Cursor list = map.item(i);
      for (std::size_t j = 0; j < list.size(); ++j) {
        TESSERA_TRY(cluster.gpu.relatives.emplace_back(), read_relative(list.item(j)));
      }
      continue;
    }
    const Field* field = find_field(map.key(i));
    if (field == nullptr) return map.item(i).error("unknown field of a GPU preset");
    TESSERA_CHECK(read_sourced(*field, map.item(i), cluster));
  }
  return {};
}

Result<std::vector<Cluster>> read_presets(Cursor root) {
  TESSERA_CHECK(root.only_keys({"defaults", "presets"}));
  Cluster defaults;
  TESSERA_TRY(const Cursor shared, root.required_map("defaults"));
  TESSERA_CHECK(read_fields(shared, defaults));
  TESSERA_TRY(const Cursor presets, root.required_map("presets"));
  std::vector<Cluster> out;
  for (std::size_t i = 0; i < presets.size(); ++i) {
    Cluster cluster = defaults;
    cluster.name = presets.key(i);
    cluster.gpu.name = presets.key(i);
    for (const Field& field : fields())
      if (field.required) TESSERA_CHECK(presets.item(i).required(field.key));
    TESSERA_CHECK(read_fields(presets.item(i), cluster));
    out.push_back(std::move(cluster));
  }
  return out;
}

// Read once; a damaged shipped file shows as the error of every question.
const Result<std::vector<Cluster>>& presets() {
  static const Result<std::vector<Cluster>> all = []() -> Result<std::vector<Cluster>> {
    TESSERA_TRY(const Document document,
                Document::parse(embedded::gpus_yaml(), "data/presets/gpus.yaml", DocumentFormat::yaml));
    return read_presets(document.root());
  }();
  return all;
}

}  // namespace

std::vector<std::string> cluster_preset_names() {
  std::vector<std::string> out;
  if (presets())
    for (const Cluster& cluster : *presets()) out.push_back(cluster.name);
  return out;
}

Result<Cluster> cluster_preset(std::string_view name) {
  const auto& all = presets();
  if (!all) return std::unexpected(all.error());
  const auto found = std::ranges::find(*all, name, &Cluster::name);
  if (found != all->end()) return *found;
  return bad_input(fmt::format("no GPU preset is called {}", name),
                   fmt::format("Presets are {}.", join_words(cluster_preset_names())));
}

}  // namespace tessera
