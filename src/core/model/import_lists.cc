// Reading what a config says layer by layer: lists with or without an MTP tail, indices from 0 or from 1,
// a number or a list, one number under several names.
#include <fmt/format.h>

#include <algorithm>

#include "import_draft.h"
#include "tessera/core/base/text.h"

namespace tessera::importing {

namespace {

bool same_value(Cursor a, Cursor b) {
  if (a.is_list() != b.is_list()) return false;
  if (!a.is_list()) {
    const auto left = a.scalar_text(), right = b.scalar_text();
    return left && right && *left == *right;
  }
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto left = a.item(i).scalar_text(), right = b.item(i).scalar_text();
    if (!left || !right || *left != *right) return false;
  }
  return true;
}

std::string shown(Cursor value) {
  if (value.is_list()) return fmt::format("a list of {}", value.size());
  const auto text = value.scalar_text();
  return text ? *text : std::string(describe(value.kind()));
}

std::string plural(std::int64_t n, std::string_view word) {
  if (n == 1) return fmt::format("1 {}", word);
  return word == "entry" ? fmt::format("{} entries", n) : fmt::format("{} {}s", n, word);
}

// Repeats the last layer's value for MTP blocks that the list does not reach.
template <class T>
void extend(std::vector<T>& values, const Draft& draft) {
  if (!values.empty()) values.resize(static_cast<std::size_t>(draft.all()), T(values.back()));
}

// The layer indices of a list, each within 0 … count and none twice.
Result<std::vector<std::int64_t>> read_indices(Cursor list, std::int64_t count) {
  if (!list.is_list())
    return list.error(fmt::format("expected a list of layer indices, found {}", describe(list.kind())));
  std::vector<std::int64_t> out;
  std::vector<bool> seen(static_cast<std::size_t>(count) + 1, false);
  for (std::size_t i = 0; i < list.size(); ++i) {
    TESSERA_TRY(const auto index, list.item(i).integer(0, count));
    if (seen[static_cast<std::size_t>(index)])
      return list.item(i).error(fmt::format("layer {} is listed twice", index));
    seen[static_cast<std::size_t>(index)] = true;
    out.push_back(index);
  }
  return out;
}

}  // namespace

Result<std::optional<Cursor>> one_of(Cursor keys, std::span<const std::string_view> names) {
  std::optional<Cursor> first;
  std::string_view first_name;
  for (const std::string_view name : names) {
    const auto found = keys.present(name);
    if (!found) continue;
    if (!first) {
      first = found;
      first_name = name;
    } else if (!same_value(*first, *found)) {
      return found->error(fmt::format("{} here, but {} says {}", shown(*found), first_name, shown(*first)),
                          "Both keys name the same number; keep one of them.");
    }
  }
  return first;
}

Status check_length(Draft& draft, Cursor list) {
  if (!list.is_list())
    return list.error(fmt::format("expected a list with one entry a layer, found {}", describe(list.kind())));
  const auto size = static_cast<std::int64_t>(list.size());
  if (size == draft.layer_count) return {};
  if (draft.mtp_count > 0 && size == draft.all()) {
    draft.note(fmt::format("{} has {} entries for {}: the last {} for MTP.", list.path(), size,
                           plural(draft.layer_count, "layer"),
                           draft.mtp_count == 1 ? "one stands" : fmt::format("{} stand", draft.mtp_count)));
    return {};
  }
  if (draft.mtp_count > 0)
    return list.error(fmt::format("has {}; expected {} (the layers) or {} (with {})", plural(size, "entry"),
                                  draft.layer_count, draft.all(), plural(draft.mtp_count, "MTP block")));
  return list.error(
      fmt::format("has {}, but the model has {}", plural(size, "entry"), plural(draft.layer_count, "layer")));
}

Result<std::vector<std::int64_t>> per_layer(Draft& draft, Cursor value, std::int64_t low, std::int64_t high) {
  std::vector<std::int64_t> out;
  if (!value.is_list()) {
    TESSERA_TRY(const auto same, value.integer(low, high));
    out.assign(static_cast<std::size_t>(draft.all()), same);
    return out;
  }
  TESSERA_CHECK(check_length(draft, value));
  for (std::size_t i = 0; i < value.size(); ++i) {
    TESSERA_TRY(const auto one, value.item(i).integer(low, high));
    out.push_back(one);
  }
  extend(out, draft);
  return out;
}

Result<std::vector<int>> per_layer_kinds(Draft& draft, Cursor list, std::span<const Kind> known) {
  TESSERA_CHECK(check_length(draft, list));
  std::vector<int> out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    TESSERA_TRY(const auto name, list.item(i).string());
    const auto found = std::ranges::find(known, name, &Kind::name);
    if (found == known.end()) {
      std::vector<std::string> names;
      for (const Kind& kind : known) names.emplace_back(kind.name);
      return list.item(i).error(fmt::format("unknown layer kind \"{}\"", name),
                                fmt::format("This family knows {}.", join_words(names)));
    }
    out.push_back(found->kind);
  }
  extend(out, draft);
  return out;
}

Result<std::vector<bool>> two_index_lists(Draft& draft, Cursor first, Cursor second) {
  const std::int64_t count = draft.layer_count;
  TESSERA_TRY(const auto in_first, read_indices(first, count));
  TESSERA_TRY(const auto in_second, read_indices(second, count));
  std::vector<bool> seen(static_cast<std::size_t>(count) + 1, false);
  for (const auto index : in_first) seen[static_cast<std::size_t>(index)] = true;
  for (std::size_t i = 0; i < in_second.size(); ++i) {
    if (seen[static_cast<std::size_t>(in_second[i])])
      return second.item(i).error(fmt::format("layer {} stands in {} too", in_second[i], first.path()));
    seen[static_cast<std::size_t>(in_second[i])] = true;
  }
  const bool from_zero = seen.front(), from_one = seen.back();
  if (from_zero && from_one)
    return second.error(
        fmt::format("the two layer lists hold both 0 and {}: they count neither from 0 nor from 1", count));
  const std::int64_t base = from_zero ? 0 : 1;
  for (std::int64_t i = base; i < base + count; ++i) {
    if (!seen[static_cast<std::size_t>(i)])
      return second.error(fmt::format("layer {} is in neither list; the two must name {} … {} once", i, base,
                                      base + count - 1),
                          fmt::format("The other list is {}.", first.path()));
  }
  if (base == 1) draft.note(fmt::format("{} counts layers from 1.", first.path()));
  std::vector<bool> out(static_cast<std::size_t>(count), false);
  for (const auto index : in_first) out[static_cast<std::size_t>(index - base)] = true;
  extend(out, draft);
  return out;
}

Result<std::vector<bool>> index_list(Draft& draft, Cursor list) {
  TESSERA_TRY(const auto indices, read_indices(list, draft.layer_count));
  std::vector<bool> out(static_cast<std::size_t>(draft.layer_count), false);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] == draft.layer_count)
      return list.item(i).error(fmt::format("there is no layer {}: the model has {}, counted from 0",
                                            indices[i], plural(draft.layer_count, "layer")));
    out[static_cast<std::size_t>(indices[i])] = true;
  }
  extend(out, draft);
  return out;
}

Result<std::vector<bool>> moe_layers_by_frequency(Draft& draft) {
  const auto frequency = draft.keys.present("moe_layer_freq");
  TESSERA_TRY(const auto first, draft.keys.integer_or("first_k_dense_replace", 0, max_layers, 0));
  if (first > draft.layer_count)
    return draft.keys.find("first_k_dense_replace")
        ->error(fmt::format("{} dense layers first, but the model has {}", first,
                            plural(draft.layer_count, "layer")));
  std::vector<bool> out;
  if (frequency && frequency->is_list()) {
    TESSERA_TRY(const auto flags, per_layer(draft, *frequency, 0, 1));
    for (std::size_t i = 0; i < flags.size(); ++i) {
      if (flags[i] == 1 && static_cast<std::int64_t>(i) < first)
        return frequency->item(i).error(
            fmt::format("layer {} is a MoE layer here, but first_k_dense_replace = {} makes it dense", i,
                        first),
            "Keep one of the two keys.");
      out.push_back(flags[i] == 1);
    }
    return out;
  }
  std::int64_t every = 1;
  if (frequency) {
    TESSERA_TRY(every, frequency->integer(1, max_layers));
  }
  for (std::int64_t i = 0; i < draft.layer_count; ++i) out.push_back(i >= first && i % every == 0);
  extend(out, draft);
  return out;
}

}  // namespace tessera::importing
