// Measured kernel latencies (data/kernels/measured-kernels.csv, public, Apache-2.0), asked by shape.
//
// A query gives a measured point back as measured. Between points it interpolates the efficiency, that is the
// time over a fitted sum of launch time, operations and bytes, over the logarithms of all axes; beyond the
// measured range it keeps the efficiency of the nearest end and says so (extended_table). The error bound
// comes from the errors of the points nearby when each is left out: about one row in ten lies outside it.
//
// Durations are of one forward kernel on one GPU with nothing else running. Reading the shipped table takes
// about 5 ms, a query about 1 µs. Thread-safe; a query allocates nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/core/cluster/cluster.h"
#include "tessera/core/cost/estimate.h"

namespace tessera {

class KernelTable {
 public:
  /// The shipped table. Parsed on first use and kept.
  [[nodiscard]] static const KernelTable& builtin();
  /// From CSV text with columns op,device,dtype,shape,latency_us,source; data/kernels/README.md has the ops
  /// and their axes. Errors name the line: an unknown op or axis, a missing axis, a value that is not
  /// positive.
  [[nodiscard]] static Result<KernelTable> parse(std::string_view csv, const std::string& file);

  KernelTable(KernelTable&&) noexcept;
  KernelTable& operator=(KernelTable&&) noexcept;
  ~KernelTable();

  // Each answers for `gpu` itself, or through the first of gpu.relatives that has one, times its documented
  // factor (scaled_table), or nullopt when no table reaches: then the caller falls back to a roofline.

  /// One m×k by k×n product, operands in `dtype`, output bf16. MXFP8 is answered by the FP8 table
  /// (scaled_table).
  [[nodiscard]] std::optional<Estimate> gemm(const Gpu& gpu, Dtype dtype, double m, double n,
                                             double k) const noexcept;
  /// Causal softmax core, forward, `batch` sequences.
  [[nodiscard]] std::optional<Estimate> attention(const Gpu& gpu, double query_heads, double kv_heads,
                                                  double head_dim, double sequence,
                                                  double batch) const noexcept;
  /// Convolution and chunked delta rule, forward.
  [[nodiscard]] std::optional<Estimate> gated_delta_net(const Gpu& gpu, double key_heads, double value_heads,
                                                        double head_dim, double sequence,
                                                        double batch) const noexcept;
  [[nodiscard]] std::optional<Estimate> kimi_delta(const Gpu& gpu, double heads, double head_dim,
                                                   double sequence, double batch) const noexcept;
  /// Convolution and chunk scan, forward.
  [[nodiscard]] std::optional<Estimate> mamba2(const Gpu& gpu, double heads, double head_dim, double groups,
                                               double state, double sequence, double batch) const noexcept;
  /// DeepEP normal dispatch / combine inside one node, `tokens` per rank, kernel on `multiprocessors` SMs.
  [[nodiscard]] std::optional<Estimate> expert_dispatch(const Gpu& gpu, double hidden, double top_k,
                                                        double experts, double tokens,
                                                        double multiprocessors) const noexcept;
  [[nodiscard]] std::optional<Estimate> expert_combine(const Gpu& gpu, double hidden, double top_k,
                                                       double experts, double tokens,
                                                       double multiprocessors) const noexcept;
  /// NCCL collectives inside one node; `bytes` as NCCL counts them (the full buffer of one rank).
  enum class Collective : std::uint8_t { all_to_all, all_gather, reduce_scatter, all_reduce };
  [[nodiscard]] std::optional<Estimate> collective(const Gpu& gpu, Collective kind, double ranks,
                                                   double bytes) const noexcept;

  /// One measured row and what the table says of it when it and all repeats of its shape are left out.
  struct LeaveOneOut {
    std::string_view op, device, dtype, source;
    Seconds measured;
    Seconds predicted;      ///< from the other rows
    double bound = 0;       ///< the relative error bound given with it
    bool training = false;  ///< no decode, low-latency or fused-MoE row, ≥ 512 tokens
    bool interior = false;  ///< has neighbours on both sides of an axis
  };
  [[nodiscard]] std::vector<LeaveOneOut> leave_one_out() const;
  [[nodiscard]] std::size_t rows() const noexcept;

 private:
  KernelTable();
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace tessera
