// The fields of a cluster that a preset gives and a job may override, in one table.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tessera/core/base/result.h"
#include "tessera/core/cluster/cluster.h"

namespace tessera::cluster_detail {

/// What an override of the field puts in doubt.
enum class Concerns : std::uint8_t { capacity, speed, fabric };

struct Field {
  std::string_view key;
  double low, high;
  bool integer;
  bool required;  ///< of a preset; the others have defaults
  Concerns concerns;
  void (*set)(Cluster&, double);
};

/// In the order of data/presets/gpus.yaml.
[[nodiscard]] std::span<const Field> fields() noexcept;
[[nodiscard]] const Field* find_field(std::string_view key) noexcept;

/// A value within the field's bounds, from a plain number.
[[nodiscard]] Status set_field(const Field& field, Cursor value, Cluster& cluster);

}  // namespace tessera::cluster_detail
