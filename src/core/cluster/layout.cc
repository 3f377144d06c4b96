#include "tessera/core/cluster/layout.h"

#include <fmt/format.h>

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
Result<Recompute> read_recompute(Cursor value) {
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

Result<Layout> read_layout(Cursor section, std::int64_t gpus) {
  TESSERA_CHECK(section.only_keys({"tp", "pp", "vp", "ep", "etp", "cp", "dp", "microbatches", "global_batch",
                                   "microbatch_size", "sequence", "dtype", "recompute"}));
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
  if (const auto recompute = section.present("recompute")) {
    TESSERA_TRY(out.recompute, read_recompute(*recompute));
  }
  TESSERA_TRY(out.dp, read_data_parallel(section, out, gpus));
  TESSERA_TRY(out.microbatches, read_microbatches(section, out));
  if (const Status sizes = check_layout_sizes(out); !sizes)
    return section.error(sizes.error().message, sizes.error().hint);
  return out;
}

}  // namespace tessera
