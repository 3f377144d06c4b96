#include "tessera/core/cost/kernel_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "kernel_table_rows.h"
#include "kernel_table_surface.h"

namespace tessera::embedded {
std::string_view measured_kernels_csv();
}

namespace tessera {

namespace kt = kernel_table;

namespace {

// What a query may ask for, and the op and dtype it stands under in the table.
struct Queried {
  std::string_view op;
  std::string_view dtype;  ///< empty = any
};
// Fabric kernels come last.
enum Kernel : std::size_t {
  kGemmBf16,
  kGemmFp8,
  kGemmNvfp4,
  kAttention,
  kDeltaConvolution,
  kDeltaRule,
  kKimiConvolution,
  kKimiRule,
  kMambaConvolution,
  kMambaScan,
  kDispatch,
  kCombine,
  kAllToAll,
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kKernels,
};
constexpr std::array<Queried, kKernels> kQueried{{
    {"gemm", "bfloat16"},
    {"gemm", "fp8"},
    {"gemm", "nvfp4"},
    {"attention_fwd_causal", ""},
    {"gdn_causal_conv1d_fn", ""},
    {"gdn_chunk_gated_delta_rule", ""},
    {"kda_causal_conv1d_fn_qkv3", ""},
    {"kda_flashkda_fwd", ""},
    {"mamba2_causal_conv1d_fn", ""},
    {"mamba2_mamba_chunk_scan_combined", ""},
    {"deepep_dispatch_1node", ""},
    {"deepep_combine_1node", ""},
    {"nccl_alltoall", ""},
    {"nccl_all_gather", ""},
    {"nccl_reduce_scatter", ""},
    {"nccl_all_reduce", ""},
}};

// Added to the error of a relative's time: attention, latent attention and delta rule were measured on both
// H100 and H200; nine in ten attention shapes agree to 10 %.
constexpr double kRelativeError = 0.10;

}  // namespace

struct KernelTable::Tables {
  std::string text;  ///< owned text the views point into; empty for the embedded table
  kt::Rows data;
  struct Device {
    std::string_view name;
    std::array<std::int32_t, kKernels> surface;  ///< −1 = not measured
  };
  std::vector<Device> devices;
  std::vector<kt::Surface> surfaces;

  [[nodiscard]] const kt::Surface* find(std::string_view device, Kernel kernel) const noexcept {
    for (const Device& candidate : devices)
      if (candidate.name == device && candidate.surface[kernel] >= 0)
        return &surfaces[static_cast<std::size_t>(candidate.surface[kernel])];
    return nullptr;
  }

  [[nodiscard]] std::optional<Estimate> ask(const Gpu& gpu, Kernel kernel, const kt::Shape& shape,
                                            bool exact_dtype = true) const noexcept {
    const kt::Surface* surface = find(gpu.name, kernel);
    const bool own = surface != nullptr && exact_dtype;
    double factor = 1;
    const bool fabric = kernel >= kDispatch;
    for (const TableRelative& relative : gpu.relatives) {
      if (surface != nullptr) break;
      if (fabric && !relative.fabric) continue;
      surface = find(relative.device, kernel);
      factor = relative.time_factor;
    }
    if (surface == nullptr) return std::nullopt;
    for (const double value : shape)
      if (!(value > 0) || !std::isfinite(value)) return std::nullopt;
    const kt::Prediction prediction = surface->predict(shape);
    if (!std::isfinite(prediction.seconds)) return std::nullopt;
    const Provenance provenance = prediction.octaves_beyond > 0 ? Provenance::extended_table
                                  : own                         ? Provenance::table
                                                                : Provenance::scaled_table;
    return Estimate(Seconds(prediction.seconds * factor), provenance,
                    prediction.relative_error + (own ? 0 : kRelativeError));
  }

  [[nodiscard]] std::optional<Estimate> ask_both(const Gpu& gpu, Kernel first, Kernel second,
                                                 const kt::Shape& shape) const noexcept {
    const auto a = ask(gpu, first, shape);
    const auto b = ask(gpu, second, shape);
    if (!a || !b) return std::nullopt;
    return *a + *b;
  }

  // One surface per queried kernel and device. Where several frameworks timed the same kernel, the one with
  // the most shapes stands for it, the first in the file among equals.
  void index() {
    for (const kt::Group& group : data.groups) {
      for (std::size_t kernel = 0; kernel < kKernels; ++kernel) {
        if (group.op->name != kQueried[kernel].op) continue;
        if (!kQueried[kernel].dtype.empty() && group.dtype != kQueried[kernel].dtype) continue;
        const auto rival = [&](const kt::Group& other) {
          return other.op == group.op && other.device == group.device && &other != &group &&
                 (kQueried[kernel].dtype.empty() || other.dtype == group.dtype) &&
                 (other.points.size() > group.points.size() ||
                  (other.points.size() == group.points.size() && &other < &group));
        };
        if (std::ranges::any_of(data.groups, rival)) continue;
        auto device = std::ranges::find(devices, group.device, &Device::name);
        if (device == devices.end()) {
          devices.push_back({group.device, {}});
          devices.back().surface.fill(-1);
          device = std::prev(devices.end());
        }
        device->surface[kernel] = static_cast<std::int32_t>(surfaces.size());
        surfaces.emplace_back(*group.op, kt::element_bytes_of(group.dtype), group.points);
      }
    }
  }
};

KernelTable::KernelTable() : tables_(std::make_unique<Tables>()) {}
KernelTable::KernelTable(KernelTable&&) noexcept = default;
KernelTable& KernelTable::operator=(KernelTable&&) noexcept = default;
KernelTable::~KernelTable() = default;

const KernelTable& KernelTable::builtin() {
  static const KernelTable table = [] {
    KernelTable out;
    auto rows = kt::read_rows(embedded::measured_kernels_csv(), "data/kernels/measured-kernels.csv");
    assert(rows.has_value() && "the shipped table is read by a test of every build");
    if (rows) out.tables_->data = *std::move(rows);
    out.tables_->index();
    return out;
  }();
  return table;
}

Result<KernelTable> KernelTable::parse(std::string_view csv, const std::string& file) {
  KernelTable out;
  out.tables_->text = csv;
  TESSERA_TRY(out.tables_->data, kt::read_rows(out.tables_->text, file));
  out.tables_->index();
  return out;
}

std::size_t KernelTable::rows() const noexcept {
  return tables_->data.rows.size();
}

std::optional<Estimate> KernelTable::gemm(const Gpu& gpu, Dtype dtype, double m, double n,
                                          double k) const noexcept {
  const kt::Shape shape{m, n, k, 1, 1, 1};
  switch (dtype) {
    case Dtype::bf16:
      return tables_->ask(gpu, kGemmBf16, shape);
    case Dtype::fp8:
      return tables_->ask(gpu, kGemmFp8, shape);
    // Tensor cores run MXFP8 at the rate of FP8 (NVIDIA Blackwell architecture brief); the scales add 1/32
    // byte.
    case Dtype::mxfp8:
      return tables_->ask(gpu, kGemmFp8, shape, false);
    case Dtype::nvfp4:
      return tables_->ask(gpu, kGemmNvfp4, shape);
  }
  return std::nullopt;
}

std::optional<Estimate> KernelTable::attention(const Gpu& gpu, double query_heads, double kv_heads,
                                               double head_dim, double sequence,
                                               double batch) const noexcept {
  return tables_->ask(gpu, kAttention, {query_heads, kv_heads, head_dim, sequence, batch, 1});
}

std::optional<Estimate> KernelTable::gated_delta_net(const Gpu& gpu, double key_heads, double value_heads,
                                                     double head_dim, double sequence,
                                                     double batch) const noexcept {
  return tables_->ask_both(gpu, kDeltaConvolution, kDeltaRule,
                           {key_heads, value_heads, head_dim, sequence, batch, 1});
}

std::optional<Estimate> KernelTable::kimi_delta(const Gpu& gpu, double heads, double head_dim,
                                                double sequence, double batch) const noexcept {
  return tables_->ask_both(gpu, kKimiConvolution, kKimiRule, {heads, head_dim, sequence, batch, 1, 1});
}

std::optional<Estimate> KernelTable::mamba2(const Gpu& gpu, double heads, double head_dim, double groups,
                                            double state, double sequence, double batch) const noexcept {
  return tables_->ask_both(gpu, kMambaConvolution, kMambaScan,
                           {heads, head_dim, groups, state, sequence, batch});
}

std::optional<Estimate> KernelTable::expert_dispatch(const Gpu& gpu, double hidden, double top_k,
                                                     double experts, double tokens,
                                                     double multiprocessors) const noexcept {
  return tables_->ask(gpu, kDispatch, {hidden, top_k, experts, tokens, multiprocessors, 1});
}

std::optional<Estimate> KernelTable::expert_combine(const Gpu& gpu, double hidden, double top_k,
                                                    double experts, double tokens,
                                                    double multiprocessors) const noexcept {
  return tables_->ask(gpu, kCombine, {hidden, top_k, experts, tokens, multiprocessors, 1});
}

std::optional<Estimate> KernelTable::collective(const Gpu& gpu, Collective kind, double ranks,
                                                double bytes) const noexcept {
  constexpr std::array<Kernel, 4> kKernelOf{kAllToAll, kAllGather, kReduceScatter, kAllReduce};
  constexpr double kHalf = 2;  // bytes of the table's elements
  return tables_->ask(gpu, kKernelOf[static_cast<std::size_t>(kind)], {ranks, bytes / kHalf, 1, 1, 1, 1});
}

std::vector<KernelTable::LeaveOneOut> KernelTable::leave_one_out() const {
  const kt::Rows& data = tables_->data;
  constexpr double kTrainingTokens = 512;

  // All repeats of a shape are left out together: a repeat left in would give the answer away.
  std::vector<std::vector<kt::Prediction>> predicted(data.groups.size());
  std::vector<std::vector<bool>> interior(data.groups.size());
  std::vector<kt::Point> others;
  for (std::size_t g = 0; g < data.groups.size(); ++g) {
    const kt::Group& group = data.groups[g];
    const double bytes = kt::element_bytes_of(group.dtype);
    interior[g] = kt::interior(group.points);
    predicted[g].resize(group.points.size());
    if (group.points.size() < 2) continue;
    for (std::size_t p = 0; p < group.points.size(); ++p) {
      others.assign(group.points.begin(), group.points.end());
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(p));
      predicted[g][p] = kt::Surface(*group.op, bytes, others).predict(group.points[p].shape);
    }
  }

  std::vector<LeaveOneOut> out;
  out.reserve(data.rows.size());
  for (const kt::Row& row : data.rows) {
    const kt::Group& group = data.groups[row.group];
    if (group.points.size() < 2) continue;
    const kt::Shape& shape = group.points[row.point].shape;
    out.push_back(
        {.op = group.op->name,
         .device = group.device,
         .dtype = group.dtype,
         .source = group.source,
         .measured = Seconds(row.seconds),
         .predicted = Seconds(predicted[row.group][row.point].seconds),
         .bound = predicted[row.group][row.point].relative_error,
         .training = group.op->use == kt::Use::training && kt::tokens_of(*group.op, shape) >= kTrainingTokens,
         .interior = interior[row.group][row.point]});
  }
  return out;
}

}  // namespace tessera
