// What the training software does, as far as it decides time: an input, because the same model on the same
// machine runs up to 1.8 times apart between releases.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/core/base/document.h"
#include "tessera/core/base/result.h"
#include "tessera/core/base/units.h"
#include "tessera/core/cluster/cluster.h"

namespace tessera {

enum class CudaGraphs : std::uint8_t { none, layer, iteration };
enum class Dispatcher : std::uint8_t {
  deduplicated,  ///< DeepEP, HybridEP: a token crosses to each distinct rank once
  all_to_all,    ///< NCCL all-to-all: k copies
  low_latency,   ///< RDMA kernels that take no SMs
};

struct SoftwareProfile {
  CudaGraphs cuda_graphs = CudaGraphs::none;
  Dispatcher dispatcher = Dispatcher::deduplicated;
  bool fused_grouped_mlp = false;  ///< activation, quantisation and probability inside the grouped GEMM
  bool expert_overlap =
      false;  ///< the framework itself hides part of the all-to-all (not our plan's overlap)
  bool shared_beside_dispatch = false;  ///< shared expert as a task of its own
  bool fp8_attention = false;
  bool fp8_dispatch = false;          ///< dispatch sends fp8 with scales instead of bf16
  bool expert_bias_loop = false;      ///< expert biases applied outside the grouped GEMM (gpt-oss)
  bool distributed_optimizer = true;  ///< optimizer state sharded over data parallel ranks (ZeRO-1)
  bool bf16_gradients = false;        ///< main gradients kept and reduced in bf16 instead of fp32
  bool bf16_moments = false;          ///< both Adam moments in bf16 (Megatron's precision-aware optimizer)
  bool low_precision_weights =
      false;  ///< no bf16 copy beside fp8 or fp4 weights (Megatron's fp8_param_gather)
  bool operator==(const SoftwareProfile&) const = default;
};

/// Constants of the time model that no table holds, with their documented defaults (reference:
/// docs/cost-model.md).
struct CostConstants {
  double memory_traffic = 1.25;       ///< × counted elementwise bytes / peak bandwidth (1/0.8)
  Seconds host_per_sublayer{2.0e-3};  ///< launch time of a sublayer, F + B, without CUDA graphs
  Seconds host_per_expert{0.12e-3};   ///< per local expert and MoE layer, F + B, without a fused grouped MLP
  double graphed_host = 0.4;  ///< share of the host time left with layer graphs; none with iteration graphs
  double framework_overlap = 0.5;  ///< share of the all-to-all hidden by `expert_overlap`
  double fused_traffic = 1.0;  ///< × elementwise bytes with a fused grouped MLP. At 1 fusion saves host time
                               ///< only: no measurement of the bytes it saves is published, and a fit to the
                               ///< runs of BENCH=validate (0.67 to 0.73) would make that bench no test
  double quantised_bytes = 0.5;       ///< × the cast traffic of low-precision operands
  double attention_backward = 3.2;    ///< × forward core time
  double linear_backward = 2.75;      ///< × forward core time of delta-rule, scan and lightning cores
  double exposed_reduction = 0.1;     ///< share of the gradient reduction that never hides
  double host_link_efficiency = 0.8;  ///< share of the host link that copies of pinned memory reach; assumed
  double optimizer_bytes =
      30;  ///< per parameter of the local shard and step: fp32 gradient, master weight
           ///< and two moments read (16), the latter three (12) and a bf16 weight written
  Bytes context{2.0 * 1024 * 1024 * 1024};  ///< CUDA context, NCCL and allocator floor per GPU
  bool operator==(const CostConstants&) const = default;
};

/// Defaults that fit a GPU generation: eager on H100 and DGX B200/B300, layer graphs on GB200/GB300.
[[nodiscard]] SoftwareProfile default_software(const Cluster& cluster);
/// The `software:` section of a job over those defaults.
[[nodiscard]] Result<SoftwareProfile> read_software(Cursor section, const Cluster& cluster);
/// The `constants:` section over the documented ones.
[[nodiscard]] Result<CostConstants> read_constants(Cursor section);

}  // namespace tessera
