#include "gpu_fields.h"

#include <algorithm>
#include <array>

namespace tessera::cluster_detail {
namespace {

template <Dtype dtype>
void set_peak(Cluster& c, double v) {
  c.gpu.peak[static_cast<std::size_t>(dtype)] = FlopsPerSecond(v * 1e12);
}

constexpr double kMaxTflops = 1e6;
constexpr auto kFields = std::to_array<Field>({
    {"bf16_tflops", 1, kMaxTflops, false, true, Concerns::speed, set_peak<Dtype::bf16>},
    {"fp8_tflops", 0, kMaxTflops, false, false, Concerns::speed, set_peak<Dtype::fp8>},
    {"mxfp8_tflops", 0, kMaxTflops, false, false, Concerns::speed, set_peak<Dtype::mxfp8>},
    {"nvfp4_tflops", 0, kMaxTflops, false, false, Concerns::speed, set_peak<Dtype::nvfp4>},
    {"memory_gb", 1, 1e5, false, true, Concerns::capacity,
     [](Cluster& c, double v) { c.gpu.memory = Bytes(v * 1e9); }},
    {"memory_bandwidth_tb", 0.01, 1e3, false, true, Concerns::speed,
     [](Cluster& c, double v) { c.gpu.memory_bandwidth = BytesPerSecond(v * 1e12); }},
    {"multiprocessors", 1, 1e5, true, true, Concerns::speed,
     [](Cluster& c, double v) { c.gpu.multiprocessors = static_cast<int>(v); }},
    {"host_link_gb", 0, 1e5, false, false, Concerns::capacity,
     [](Cluster& c, double v) { c.gpu.host_link = BytesPerSecond(v * 1e9); }},
    {"scale_up_size", 1, 1e6, true, false, Concerns::fabric,
     [](Cluster& c, double v) { c.fabric.scale_up_size = static_cast<int>(v); }},
    {"scale_up_gb", 0.1, 1e5, false, true, Concerns::fabric,
     [](Cluster& c, double v) { c.fabric.scale_up_bandwidth = BytesPerSecond(v * 1e9); }},
    {"scale_up_efficiency", 0.01, 1, false, false, Concerns::fabric,
     [](Cluster& c, double v) { c.fabric.scale_up_efficiency = v; }},
    {"scale_up_latency_us", 0, 1e6, false, false, Concerns::fabric,
     [](Cluster& c, double v) { c.fabric.scale_up_latency = Seconds(v * 1e-6); }},
    {"scale_out_gb", 0.1, 1e5, false, true, Concerns::fabric,
     [](Cluster& c, double v) { c.fabric.scale_out_bandwidth = BytesPerSecond(v * 1e9); }},
    {"scale_out_efficiency", 0.01, 1, false, false, Concerns::fabric,
     [](Cluster& c, double v) { c.fabric.scale_out_efficiency = v; }},
    {"scale_out_latency_us", 0, 1e6, false, false, Concerns::fabric,
     [](Cluster& c, double v) { c.fabric.scale_out_latency = Seconds(v * 1e-6); }},
    {"communication_multiprocessors", 0, 1e5, true, false, Concerns::fabric,
     [](Cluster& c, double v) { c.fabric.communication_multiprocessors = static_cast<int>(v); }},
    {"bandwidth_per_multiprocessor_gb", 0, 1e5, false, false, Concerns::fabric,
     [](Cluster& c, double v) { c.fabric.bandwidth_per_multiprocessor = BytesPerSecond(v * 1e9); }},
});

}  // namespace

std::span<const Field> fields() noexcept {
  return kFields;
}

const Field* find_field(std::string_view key) noexcept {
  const auto found = std::ranges::find(kFields, key, &Field::key);
  return found == kFields.end() ? nullptr : &*found;
}

Status set_field(const Field& field, Cursor value, Cluster& cluster) {
  double number = 0;
  if (field.integer) {
    TESSERA_TRY(const std::int64_t whole,
                value.integer(static_cast<std::int64_t>(field.low), static_cast<std::int64_t>(field.high)));
    number = static_cast<double>(whole);
  } else {
    TESSERA_TRY(number, value.number(field.low, field.high));
  }
  field.set(cluster, number);
  return {};
}

}  // namespace tessera::cluster_detail
