// Costs outside a block: gradient reduction, optimizer, transfers between stages, interference.

#include <algorithm>

#include "collective.h"

namespace tessera {

using pricing::Context;

StepCost price_step(const CostInput& input, std::int64_t dense_parameters, std::int64_t expert_parameters) {
  const Context c(input);
  const double dense = static_cast<double>(dense_parameters), expert = static_cast<double>(expert_parameters);
  const double dense_ranks = static_cast<double>(input.layout->dp * input.layout->cp);
  const double expert_ranks = static_cast<double>(std::max<std::int64_t>(1, input.layout->expert_dp()));
  // Gradients are reduced as they are kept. Weights are gathered in bf16, also where they are kept in MXFP8:
  // both of its copies are quantised from bf16 (Megatron-Core, reuse_grad_buf_for_mxfp8_param_ag).
  constexpr double kWeight = 2;
  const double gradient = input.software.bf16_gradients ? 2 : 4;
  const auto both = [&](KernelTable::Collective kind, double bytes) {
    return pricing::ring_time(c, kind, bytes * dense, dense_ranks, c.tp) +
           pricing::ring_time(c, kind, bytes * expert, expert_ranks, c.ep * c.etp);
  };
  StepCost out;
  const bool sharded = input.software.distributed_optimizer;
  if (sharded) {
    out.reduce_scatter = both(KernelTable::Collective::reduce_scatter, gradient);
    out.all_gather = both(KernelTable::Collective::all_gather, kWeight);
  } else {
    out.reduce_scatter = both(KernelTable::Collective::reduce_scatter, gradient) +
                         both(KernelTable::Collective::all_gather, gradient);
  }
  // The shard's master weight, moments and gradient; and every gradient of the rank is cleared, one write at
  // the peak of the memory.
  const double local = sharded ? dense / dense_ranks + expert / expert_ranks : dense + expert;
  const double bytes =
      c.constants.memory_traffic * c.constants.optimizer_bytes * local + gradient * (dense + expert);
  constexpr double kOptimizerError = 0.4;
  out.optimizer = {Bytes(bytes) / c.gpu.memory_bandwidth, Provenance::roofline, kOptimizerError};
  return out;
}

TransferCost price_transfer(const CostInput& input) {
  const Context c(input);
  const Fabric& fabric = input.cluster->fabric;
  TransferCost out;
  out.bytes = Bytes(2 * c.hidden * c.tokens_local * static_cast<double>(c.model.residual_streams));
  // Pipeline neighbours are on one scale-up domain only when a whole pipeline is. Data parallel ranks do not
  // count, so that a plan is the same for one replica and for many.
  const double stage = std::max(c.tp * c.cp, c.ep * c.etp);
  const bool inside =
      stage * static_cast<double>(input.layout->pp) <= static_cast<double>(fabric.scale_up_size);
  const BytesPerSecond rate = inside ? fabric.scale_up_bandwidth * fabric.scale_up_efficiency
                                     : fabric.scale_out_bandwidth * fabric.scale_out_efficiency;
  out.latency = inside ? fabric.scale_up_latency : fabric.scale_out_latency;
  constexpr double kTransferError = 0.25;
  out.duration = {out.bytes / rate, Provenance::roofline, kTransferError};
  return out;
}

Interference interference(const CostInput& input) noexcept {
  Interference out;
  const Cluster& cluster = *input.cluster;
  const Fabric& fabric = cluster.fabric;
  if (input.layout->ep <= 1) return out;
  const bool low_latency = input.software.dispatcher == Dispatcher::low_latency;
  const int taken =
      low_latency ? 0 : std::min(fabric.communication_multiprocessors, cluster.gpu.multiprocessors);
  out.compute_bound_rate = 1 - static_cast<double>(taken) / cluster.gpu.multiprocessors;
  // Whatever crosses the fabric is read from memory on one side and written on the other: each GPU does both.
  const Context c(input);
  const bool inside = c.ep * c.etp <= static_cast<double>(fabric.scale_up_size);
  const BytesPerSecond link = inside ? fabric.scale_up_bandwidth * fabric.scale_up_efficiency
                                     : fabric.scale_out_bandwidth * fabric.scale_out_efficiency;
  // An assumption: a memory serves both sides alike, so a link too fast for it leaves compute half.
  constexpr double kFairShare = 0.5;
  out.memory_bound_rate = std::max(kFairShare, 1 - 2 * (link.value() / cluster.gpu.memory_bandwidth.value()));
  return out;
}

}  // namespace tessera
