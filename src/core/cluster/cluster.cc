#include "tessera/core/cluster/cluster.h"

#include <fmt/format.h>

#include "gpu_fields.h"
#include "tessera/core/base/text.h"

namespace tessera {

std::string_view name(Dtype dtype) noexcept {
  switch (dtype) {
    case Dtype::bf16:
      return "bf16";
    case Dtype::fp8:
      return "fp8";
    case Dtype::mxfp8:
      return "mxfp8";
    case Dtype::nvfp4:
      return "nvfp4";
  }
  return "?";
}

std::optional<Dtype> dtype_by_name(std::string_view text) noexcept {
  for (const Dtype dtype : kDtypes)
    if (text == name(dtype)) return dtype;
  return std::nullopt;
}

double operand_bytes(Dtype dtype) noexcept {
  switch (dtype) {
    case Dtype::bf16:
      return 2;
    case Dtype::fp8:
    case Dtype::mxfp8:
      return 1;
    case Dtype::nvfp4:
      return 0.5;
  }
  return 2;
}

std::int64_t Cluster::nodes() const noexcept {
  const std::int64_t size = fabric.scale_up_size;
  return (gpus + size - 1) / size;
}

namespace {

Result<std::vector<double>> read_rank_speed(Cursor list) {
  if (!list.is_list())
    return list.error(
        fmt::format("expected a list with one speed per pipeline rank, found {}", describe(list.kind())),
        "1 is nominal, 0.5 half as fast.");
  std::vector<double> out;
  out.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    TESSERA_TRY(out.emplace_back(), list.item(i).number(0.01, 100));
  }
  return out;
}

std::unexpected<Error> unknown_key(Cursor value, std::string_view key) {
  std::vector<std::string_view> known{"preset", "gpus", "rank_speed"};
  for (const auto& field : cluster_detail::fields()) known.push_back(field.key);
  if (const auto guess = nearest(key, known))
    return value.error("unknown key", fmt::format("Did you mean {}?", *guess));
  return value.error(
      "unknown key",
      fmt::format("Keys here are {}.", join_words(std::vector<std::string>(known.begin(), known.end()))));
}

// Either figure may be the job's: the error stands at the one that is.
Status check_multiprocessors(Cursor section, const Cluster& cluster) {
  const int taken = cluster.fabric.communication_multiprocessors, all = cluster.gpu.multiprocessors;
  if (taken < all) return {};
  auto at = section.present("communication_multiprocessors");
  if (!at) at = section.present("multiprocessors");
  return at.value_or(section).error(
      fmt::format("communication takes {} of the {} multiprocessors of a {}", taken, all, cluster.name),
      fmt::format("Compute needs at least one: communication_multiprocessors can be 0 to {}.", all - 1));
}

}  // namespace

Result<Cluster> read_cluster(Cursor section) {
  TESSERA_TRY(const std::string preset, section.required_string("preset"));
  auto found = cluster_preset(preset);
  if (!found) return section.find("preset")->error(found.error().message, found.error().hint);
  Cluster cluster = *std::move(found);
  TESSERA_TRY(cluster.gpus, section.required_integer("gpus", 1, 1 << 24));
  for (std::size_t i = 0; i < section.size(); ++i) {
    const std::string_view key = section.key(i);
    const Cursor value = section.item(i);
    if (key == "preset" || key == "gpus") continue;
    if (key == "rank_speed") {
      TESSERA_TRY(cluster.rank_speed, read_rank_speed(value));
      continue;
    }
    const cluster_detail::Field* field = cluster_detail::find_field(key);
    if (field == nullptr) return unknown_key(value, key);
    TESSERA_CHECK(cluster_detail::set_field(*field, value, cluster));
    // The measured tables hold for the device as sold: one with another speed is priced by its figures.
    if (field->concerns == cluster_detail::Concerns::speed) {
      cluster.gpu.name = "modified " + cluster.name;
      cluster.gpu.relatives.clear();
    }
    if (field->concerns == cluster_detail::Concerns::fabric) cluster.fabric.has_tables = false;
  }
  TESSERA_CHECK(check_multiprocessors(section, cluster));
  return cluster;
}

}  // namespace tessera
