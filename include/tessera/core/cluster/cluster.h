// The machine: a GPU type, its fabric, how many there are. Presets live in data/presets/gpus.yaml, each
// number with its source; any field can be overridden in a job file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/base/document.h"
#include "tessera/core/base/result.h"
#include "tessera/core/base/units.h"

namespace tessera {

enum class Dtype : std::uint8_t { bf16, fp8, mxfp8, nvfp4 };
inline constexpr std::array kDtypes{Dtype::bf16, Dtype::fp8, Dtype::mxfp8, Dtype::nvfp4};
[[nodiscard]] std::string_view name(Dtype dtype) noexcept;
/// The inverse of name; nullopt for anything else.
[[nodiscard]] std::optional<Dtype> dtype_by_name(std::string_view text) noexcept;
/// Bytes per element of a matrix operand: 2, 1, 1, 0.5.
[[nodiscard]] double operand_bytes(Dtype dtype) noexcept;

/// A device whose measured kernel tables stand in for another's.
struct TableRelative {
  std::string device;
  double time_factor = 1.0;  ///< multiplies its times
  std::string reason;        ///< why this device and this factor, with source
  bool fabric = true;        ///< its collectives stand in too; false where the links differ
};

struct Gpu {
  std::string name;                      ///< "H100"
  std::array<FlopsPerSecond, 4> peak{};  ///< dense, by Dtype; 0 = the device has no such unit
  Bytes memory;                          ///< as sold, GB = 1e9 bytes
  BytesPerSecond memory_bandwidth;
  int multiprocessors = 0;   ///< SMs, CUs or cube cores
  BytesPerSecond host_link;  ///< to the host's memory, one direction; 0 = no figure, so nothing is offloaded
  std::vector<TableRelative>
      relatives;  ///< asked in this order for a kernel the device has no table of its own for
  [[nodiscard]] FlopsPerSecond peak_of(Dtype dtype) const noexcept {
    return peak[static_cast<std::size_t>(dtype)];
  }
};

/// Bandwidths are per GPU and one direction.
struct Fabric {
  int scale_up_size = 8;  ///< GPUs in one NVLink/xGMI domain
  BytesPerSecond scale_up_bandwidth;
  BytesPerSecond scale_out_bandwidth;  ///< NIC
  double scale_up_efficiency = 0.7;    ///< share of the link a collective reaches
  double scale_out_efficiency = 0.8;
  Seconds scale_up_latency;  ///< of one collective or message
  Seconds scale_out_latency;
  int communication_multiprocessors = 0;        ///< SMs an EP kernel takes from compute
  BytesPerSecond bandwidth_per_multiprocessor;  ///< what one such SM moves; 0 = not the limit
  bool has_tables = true;  ///< the GPU's measured collectives apply; false once a link figure is overridden
};

struct Cluster {
  std::string name;
  Gpu gpu;
  Fabric fabric;
  std::int64_t gpus = 0;
  std::vector<double> rank_speed;  ///< per pipeline rank, 1 = nominal, 0.5 = half as fast; empty = all 1
  [[nodiscard]] std::int64_t nodes() const noexcept;  ///< scale-up domains, rounded up
};

/// A preset by name ("H100", "GB200"): a Cluster with gpus = 0. An unknown name is an error listing them all.
[[nodiscard]] Result<Cluster> cluster_preset(std::string_view name);
[[nodiscard]] std::vector<std::string> cluster_preset_names();
/// The `cluster:` section of a job: `preset`, `gpus`, and any field of data/presets/gpus.yaml to override
/// with a plain number, such as `scale_out_gb: 25` (see docs/job-file.md). `gpus` is required. A GPU whose
/// speed is overridden is no longer the measured one: it is called "modified H100" and priced by roofline.
/// Communication must leave compute at least one multiprocessor.
[[nodiscard]] Result<Cluster> read_cluster(Cursor section);

}  // namespace tessera
