#include "kernel_table_ops.h"

#include <algorithm>
#include <cmath>

namespace tessera::kernel_table {

namespace {

using Axis = std::string_view;
constexpr std::array<Axis, 3> kGemm{"m", "n", "k"};
constexpr std::array<Axis, 5> kAttention{"nq", "nkv", "hd", "s", "b"};
constexpr std::array<Axis, 3> kLatent{"H", "s", "b"};
constexpr std::array<Axis, 5> kDelta{"nk", "nv", "d", "s", "b"};
constexpr std::array<Axis, 4> kDeltaDecode{"nk", "nv", "d", "b"};
constexpr std::array<Axis, 4> kKimi{"H", "d", "s", "b"};
constexpr std::array<Axis, 3> kKimiDecode{"H", "d", "b"};
constexpr std::array<Axis, 6> kMamba{"nh", "hd", "G", "N", "s", "b"};
constexpr std::array<Axis, 5> kMambaDecode{"nh", "hd", "G", "N", "b"};
constexpr std::array<Axis, 6> kMoe{"h", "f", "k", "E", "ep", "tokens"};
constexpr std::array<Axis, 5> kDispatch{"h", "k", "E", "tokens", "sms"};
constexpr std::array<Axis, 4> kLowLatency{"h", "k", "E", "tokens"};
constexpr std::array<Axis, 2> kCollective{"gpus", "elems"};

WorkTerms gemm(const Shape& s, double bytes) noexcept {
  const double m = s[0], n = s[1], k = s[2];
  return {1, 2 * m * n * k, bytes * (m * k + k * n) + 2 * m * n, 0};
}
WorkTerms attention(const Shape& s, double) noexcept {
  const double query = s[0], kv = s[1], head = s[2], sequence = s[3], batch = s[4];
  return {1, 2 * batch * query * head * sequence * sequence, 2 * batch * sequence * head * 2 * (query + kv),
          0};
}
WorkTerms latent(const Shape& s, double) noexcept {
  return {1, s[2] * s[0] * s[1] * s[1], s[2] * s[0] * s[1], 0};
}
// Recurrences and convolutions are linear in tokens; per token they pay for each head and once.
WorkTerms delta_convolution(const Shape& s, double) noexcept {
  const double tokens = s[3] * s[4];
  return {1, tokens * (2 * s[0] + s[1]) * s[2], tokens, 0};
}
WorkTerms delta_rule(const Shape& s, double) noexcept {
  const double tokens = s[3] * s[4];
  return {1, tokens * s[1] * s[2], tokens * s[0] * s[2], 0};
}
WorkTerms delta_decode_convolution(const Shape& s, double) noexcept {
  return {1, s[3] * (2 * s[0] + s[1]) * s[2], s[3], 0};
}
WorkTerms delta_decode(const Shape& s, double) noexcept {
  return {1, s[3] * s[1] * s[2], s[3] * s[0] * s[2], 0};
}
WorkTerms kimi(const Shape& s, double) noexcept {
  const double tokens = s[2] * s[3];
  return {1, tokens * s[0] * s[1], tokens, 0};
}
WorkTerms kimi_decode(const Shape& s, double) noexcept {
  return {1, s[2] * s[0] * s[1], s[2], 0};
}
WorkTerms mamba_convolution(const Shape& s, double) noexcept {
  const double tokens = s[4] * s[5];
  return {1, tokens * (s[0] * s[1] + 2 * s[2] * s[3]), tokens, 0};
}
WorkTerms mamba_scan(const Shape& s, double) noexcept {
  const double tokens = s[4] * s[5];
  return {1, tokens * s[0] * s[1] * s[3], tokens, 0};
}
WorkTerms mamba_decode(const Shape& s, double) noexcept {
  return {1, s[4] * (s[0] * s[1] + 2 * s[2] * s[3]), s[4], 0};
}
// Weights of the experts that got a token, and the products.
WorkTerms moe(const Shape& s, double) noexcept {
  const double hidden = s[0], width = s[1], top_k = s[2], experts = s[3], ranks = s[4], tokens = s[5];
  const double active = experts / ranks * (1 - std::pow(1 - 1 / experts, top_k * tokens));
  return {1, active * hidden * width, tokens * top_k / ranks * hidden * width, 0};
}
// A token crosses once to each distinct GPU of the node; the copy is limited by the SMs given, then by the
// link.
double crossing_bytes(const Shape& s) noexcept {
  constexpr double kNode = 8;
  return s[3] * s[0] * kNode * (1 - std::pow(1 - 1 / kNode, s[1]));
}
WorkTerms dispatch(const Shape& s, double) noexcept {
  const double moved = crossing_bytes(s);
  return {1, moved / s[4], moved, s[3]};
}
WorkTerms low_latency(const Shape& s, double) noexcept {
  const double moved = s[3] * s[0] * s[1];
  return {1, moved, s[3], 0};
}
// NCCL changes protocol with size: between latency and bandwidth its time grows like the root of the size.
WorkTerms collective(const Shape& s, double) noexcept {
  return {1, s[1], std::sqrt(s[1]), s[0]};
}

constexpr std::array kOps{
    Op{"gemm", kGemm, 0, Use::training, gemm},
    Op{"attention_fwd_causal", kAttention, 3, Use::training, attention},
    Op{"mla_context_absorbed", kLatent, 1, Use::training, latent},
    Op{"gdn_causal_conv1d_fn", kDelta, 3, Use::training, delta_convolution},
    Op{"gdn_chunk_gated_delta_rule", kDelta, 3, Use::training, delta_rule},
    Op{"gdn_decode_causal_conv1d_update", kDeltaDecode, 3, Use::serving, delta_decode_convolution},
    Op{"gdn_decode_fused_recurrent_gated_delta_rule_packed_decode", kDeltaDecode, 3, Use::serving,
       delta_decode},
    Op{"kda_causal_conv1d_fn_qkv3", kKimi, 2, Use::training, kimi},
    Op{"kda_flashkda_fwd", kKimi, 2, Use::training, kimi},
    Op{"kda_decode_causal_conv1d_update", kKimiDecode, 2, Use::serving, kimi_decode},
    Op{"kda_decode_fused_kda_decode", kKimiDecode, 2, Use::serving, kimi_decode},
    Op{"kda_decode_fused_recurrent_kda_packed_decode", kKimiDecode, 2, Use::serving, kimi_decode},
    Op{"mamba2_causal_conv1d_fn", kMamba, 4, Use::training, mamba_convolution},
    Op{"mamba2_mamba_chunk_scan_combined", kMamba, 4, Use::training, mamba_scan},
    Op{"mamba2_decode_causal_conv1d_update", kMambaDecode, 4, Use::serving, mamba_decode},
    Op{"fused_moe", kMoe, 5, Use::serving, moe},
    Op{"deepep_moe_context", kMoe, 5, Use::training, moe},
    Op{"deepep_dispatch_1node", kDispatch, 3, Use::training, dispatch},
    Op{"deepep_combine_1node", kDispatch, 3, Use::training, dispatch},
    Op{"deepep_ll_dispatch_1node", kLowLatency, 3, Use::serving, low_latency},
    Op{"deepep_ll_combine_1node", kLowLatency, 3, Use::serving, low_latency},
    Op{"nccl_alltoall", kCollective, 1, Use::training, collective},
    Op{"nccl_all_gather", kCollective, 1, Use::training, collective},
    Op{"nccl_reduce_scatter", kCollective, 1, Use::training, collective},
    Op{"nccl_all_reduce", kCollective, 1, Use::training, collective},
};

}  // namespace

std::span<const Op> ops() noexcept {
  return kOps;
}

std::optional<std::uint16_t> find_op(std::string_view name) noexcept {
  const auto found = std::ranges::find(kOps, name, &Op::name);
  if (found == kOps.end()) return std::nullopt;
  return static_cast<std::uint16_t>(found - kOps.begin());
}

bool is_comment_key(std::string_view key) noexcept {
  // The hidden size stands outside the mixers' kernels, and the model's name is only where a shape came from.
  return key == "model" || key == "C" || key == "h";
}

double tokens_of(const Op& op, const Shape& shape) noexcept {
  constexpr double kSmallestHidden = 2048;
  const double value = shape[op.tokens_axis];
  return op.axes.data() == kCollective.data() ? value / kSmallestHidden : value;
}

double element_bytes_of(std::string_view dtype) noexcept {
  if (dtype == "nvfp4") return 0.5;
  return dtype.starts_with("fp8") ? 1 : 2;
}

}  // namespace tessera::kernel_table
