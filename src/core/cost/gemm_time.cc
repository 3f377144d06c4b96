#include "gemm_time.h"

#include <algorithm>

namespace tessera::pricing {
namespace {

// Share of the dense peak a large product reaches where no table exists: the asymptotes of the H200 and B200
// GEMM tables (AIC): bf16 881 of 989 and 1,895 of 2,250 TFLOP/s, fp8 1,476 of 1,978 and 2,743 of 4,500, nvfp4
// 6,367 of 9,000.
double roofline_efficiency(Dtype dtype) noexcept {
  switch (dtype) {
    case Dtype::bf16:
      return 0.86;
    case Dtype::fp8:
    case Dtype::mxfp8:
      return 0.67;
    case Dtype::nvfp4:
      return 0.7;
  }
  return 0.7;
}

// Streaming a matrix reaches 0.8 of the memory's peak (AIC's and InferSim's figure).
constexpr double kStreaming = 0.8;
// The tables' asymptotes lie 12 to 14 % around their rows; shapes between the two known GPUs' spread further.
constexpr double kRooflineError = 0.25;
constexpr double kStreamingError = 0.2;
// Main gradients are read and written in fp32 where the measured product writes bf16 once.
constexpr double kAccumulateBytes = 4;

Seconds stream(const Context& c, double bytes) noexcept {
  return Bytes(bytes / kStreaming) / c.gpu.memory_bandwidth;
}

// One product of m × k by k × n. `shared` says how often the k × n operand is different for a part of the
// rows: a grouped product runs at the speed of one large product, but streams every group's operand.
Work product(const Context& c, Dtype dtype, double m, double n, double k, double groups) {
  const double bytes = operand_bytes(dtype);
  const Flops operations(2 * m * n * k * groups);
  const double moved = bytes * (m * k * groups + k * n) + 2 * m * n * groups;
  const Seconds memory = stream(c, moved);
  Estimate time;
  if (const auto measured =
          c.table != nullptr ? c.table->gemm(c.gpu, dtype, m * groups, n, k) : std::nullopt) {
    time = *measured;
    // A relative's table does not know this device's memory.
    if (memory > time.time) time = Estimate(memory, Provenance::roofline, kStreamingError);
  } else {
    const Seconds compute = operations / (c.gpu.peak_of(dtype) * roofline_efficiency(dtype));
    time = Estimate(compute + memory, Provenance::roofline, kRooflineError);
  }
  if (groups > 1)
    time += Estimate(stream(c, bytes * k * n * (groups - 1)), Provenance::roofline, kStreamingError);
  const Seconds busy = operations / (c.gpu.peak_of(dtype) * roofline_efficiency(dtype));
  Work out;
  out.add(time, time.time > Seconds(0) ? std::min(1.0, busy / time.time) : 1.0);
  return out;
}

}  // namespace

ThreePass gemm_time(const Context& c, const Product& p, Dtype dtype) {
  ThreePass out;
  if (p.rows <= 0 || p.in <= 0 || p.out <= 0) return out;
  out.forward = product(c, dtype, p.rows, p.out, p.in, p.count);
  out.input_gradient = product(c, dtype, p.rows, p.in, p.out, p.count);
  out.weight_gradient = product(c, weight_gradient_dtype(dtype), p.out, p.in, p.rows, p.count);
  out.weight_gradient.add(Estimate(Bytes(kAccumulateBytes * p.in * p.out * p.count) / c.gpu.memory_bandwidth,
                                   Provenance::roofline, kStreamingError),
                          0.0);
  return out;
}

}  // namespace tessera::pricing
