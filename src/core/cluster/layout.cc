#include "tessera/core/cluster/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "tessera/core/base/text.h"

namespace tessera {
namespace {

constexpr std::int64_t kMaxSize = 1 << 20;

Result<Dtype> read_dtype(Cursor value) {
  TESSERA_TRY(const std::string text, value.string());
  if (const auto dtype = dtype_by_name(text)) return *dtype;
  std::vector<std::string> names;
  for (const Dtype dtype : kDtypes) names.emplace_back(name(dtype));
  return value.error(fmt::format("{} is no data type", text),
                     fmt::format("Data types are {}.", join_words(names)));
}

Status add_recompute(Cursor value, Recompute& out) {
  TESSERA_TRY(const std::string text, value.string());
  for (const auto& [key, member] : kRecomputeUnits) {
    if (text != key) continue;
    out.*member = true;
    return {};
  }
  std::vector<std::string> names;
  for (const auto& [key, member] : kRecomputeUnits) names.emplace_back(key);
  return value.error(fmt::format("{} is nothing that can be recomputed", text),
                     fmt::format("Units are {}.", join_words(names)));
}

// One name or a list of names.
Result<Recompute> read_units(Cursor value) {
  Recompute out;
  if (value.is_string() && value.string().value() == "none") return out;
  if (value.is_string()) {
    TESSERA_CHECK(add_recompute(value, out));
    return out;
  }
  if (!value.is_list())
    return value.error(
        fmt::format("expected a list of units to recompute, found {}", describe(value.kind())));
  for (std::size_t i = 0; i < value.size(); ++i) TESSERA_CHECK(add_recompute(value.item(i), out));
  return out;
}

LayerMemory& entry_of(Layout& layout, std::string kind) {
  const auto found = std::ranges::find(layout.layer_memory, kind, &LayerMemory::kind);
  if (found != layout.layer_memory.end()) return *found;
  return layout.layer_memory.emplace_back(
      LayerMemory{.kind = std::move(kind), .recompute = layout.recompute});
}

// For all layers, or a map from kinds of layers. Then kinds to offload.
Status read_memory(Cursor section, Layout& layout) {
  const auto recompute = section.present("recompute");
  if (recompute && recompute->is_map()) {
    for (std::size_t i = 0; i < recompute->size(); ++i) {
      TESSERA_TRY(entry_of(layout, std::string(recompute->key(i))).recompute, read_units(recompute->item(i)));
    }
  } else if (recompute && !leaves_memory_open(section)) {
    TESSERA_TRY(layout.recompute, read_units(*recompute));
  }
  const auto offload = section.present("offload");
  if (!offload) return {};
  if (recompute && leaves_memory_open(section))
    return offload->error("recompute: auto decides what is offloaded too",
                          "Remove one of the two, or name what is recomputed.");
  if (!offload->is_list() && !offload->is_map())
    return offload->error(
        fmt::format("expected a list of kinds of layers, or a map from kinds to shares, found {}",
                    describe(offload->kind())));
  for (std::size_t i = 0; i < offload->size(); ++i) {
    const Cursor item = offload->item(i);
    if (offload->is_map()) {
      TESSERA_TRY(entry_of(layout, std::string(offload->key(i))).offload, item.number(0, 1));
    } else {
      TESSERA_TRY(std::string kind, item.string());
      entry_of(layout, std::move(kind)).offload = 1;
    }
  }
  return {};
}

// From the world, unless it is given; then check_layout compares.
Result<std::int64_t> read_data_parallel(Cursor section, const Layout& layout, std::int64_t gpus) {
  if (const auto given = section.present("dp")) return given->integer(1, kMaxSize);
  const std::int64_t replica = layout.tp * layout.pp * layout.cp;
  if (replica <= gpus && gpus % replica == 0) return gpus / replica;
  return section.error(fmt::format("TP × PP × CP = {} × {} × {} = {} does not divide the {} GPUs", layout.tp,
                                   layout.pp, layout.cp, replica, gpus),
                       "The rest is data parallel: DP = GPUs / (TP × PP × CP) must be a whole number.");
}

Result<std::int64_t> read_microbatches(Cursor section, const Layout& layout) {
  const auto count = section.present("microbatches");
  const auto global = section.present("global_batch");
  if (count && global)
    return global->error("microbatches is given too",
                         "Give one: global_batch = microbatches × microbatch_size × DP.");
  if (count) return count->integer(1, kMaxSize);
  if (!global)
    return section.error("neither microbatches nor global_batch is given",
                         "Give microbatches per pipeline and step, or global_batch in sequences.");
  TESSERA_TRY(const std::int64_t sequences, global->integer(1, std::int64_t{1} << 40));
  const std::int64_t round = layout.microbatch_size * layout.dp;
  if (sequences % round == 0) return sequences / round;
  return global->error(
      fmt::format("{} is no multiple of microbatch_size × DP = {} × {} = {}", sequences,
                  layout.microbatch_size, layout.dp, round),
      fmt::format("The nearest are {} and {}.", sequences / round * round, (sequences / round + 1) * round));
}

}  // namespace

LayerMemory Layout::memory_of(std::string_view kind) const {
  const auto found = std::ranges::find(layer_memory, kind, &LayerMemory::kind);
  if (found != layer_memory.end()) return *found;
  return {.kind = std::string(kind), .recompute = recompute};
}

bool leaves_memory_open(Cursor section) {
  const auto recompute = section.present("recompute");
  if (!recompute) return !section.present("offload");
  return recompute->is_string() && recompute->string().value() == "auto";
}

Result<Layout> read_layout(Cursor section, std::int64_t gpus) {
  TESSERA_CHECK(section.only_keys({"tp", "pp", "vp", "ep", "etp", "cp", "dp", "microbatches", "global_batch",
                                   "microbatch_size", "sequence", "dtype", "recompute", "offload"}));
  Layout out;
  constexpr auto kSizes = std::to_array<std::pair<std::string_view, std::int64_t Layout::*>>({
      {"tp", &Layout::tp},
      {"pp", &Layout::pp},
      {"vp", &Layout::vp},
      {"ep", &Layout::ep},
      {"etp", &Layout::etp},
      {"cp", &Layout::cp},
      {"microbatch_size", &Layout::microbatch_size},
  });
  for (const auto& [key, member] : kSizes) {
    TESSERA_TRY(out.*member, section.integer_or(key, 1, 1 << 16, out.*member));
  }
  TESSERA_TRY(out.sequence, section.integer_or("sequence", 1, std::int64_t{1} << 30, out.sequence));
  if (const auto dtype = section.present("dtype")) {
    TESSERA_TRY(out.dtype, read_dtype(*dtype));
  }
  TESSERA_CHECK(read_memory(section, out));
  TESSERA_TRY(out.dp, read_data_parallel(section, out, gpus));
  TESSERA_TRY(out.microbatches, read_microbatches(section, out));
  if (const Status sizes = check_layout_sizes(out); !sizes)
    return section.error(sizes.error().message, sizes.error().hint);
  return out;
}

}  // namespace tessera
