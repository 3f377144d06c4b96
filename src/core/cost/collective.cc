#include "collective.h"

#include <algorithm>

#include "tessera/core/cost/expert_time.h"

namespace tessera::pricing {
namespace {

constexpr double kFabricError = 0.25;

BytesPerSecond scale_up_rate(const Context& c) noexcept {
  return c.cluster.fabric.scale_up_bandwidth * c.cluster.fabric.scale_up_efficiency;
}
BytesPerSecond scale_out_rate(const Context& c) noexcept {
  return c.cluster.fabric.scale_out_bandwidth * c.cluster.fabric.scale_out_efficiency;
}

// EP ranks of one scale-up domain. Ranks are numbered with ETP inside EP, so a domain holds its size over
// ETP.
double ranks_per_domain(const Context& c) noexcept {
  return std::min(c.ep, std::max(1.0, static_cast<double>(c.cluster.fabric.scale_up_size) / c.etp));
}

// Expert kernels move data with the SMs they are given, whatever the link could do.
BytesPerSecond expert_scale_up_rate(const Context& c) noexcept {
  const BytesPerSecond link = scale_up_rate(c);
  const auto& fabric = c.cluster.fabric;
  if (c.software.dispatcher == Dispatcher::low_latency || fabric.bandwidth_per_multiprocessor.value() <= 0 ||
      fabric.communication_multiprocessors <= 0)
    return link;
  return std::min(link, fabric.bandwidth_per_multiprocessor * fabric.communication_multiprocessors);
}

// Expected distinct nodes a token visits. Node-limited routing first picks some of the groups, and a group's
// experts lie on the nodes that hold them.
double distinct_nodes(const MixtureOfExperts& moe, double nodes) noexcept {
  const double top_k = static_cast<double>(moe.top_k);
  if (moe.groups <= 1 || moe.top_groups <= 0 || moe.top_groups >= moe.groups)
    return expected_distinct(nodes, top_k);
  const double groups = static_cast<double>(moe.groups), top_groups = static_cast<double>(moe.top_groups);
  const double reachable =
      nodes >= groups ? top_groups * nodes / groups : expected_distinct(nodes, top_groups);
  return expected_distinct(std::max(1.0, reachable), top_k);
}

// fp8 with one fp32 scale per 128 elements.
constexpr double kFp8Bytes = 1 + 4.0 / 128;

// One direction by link rates; both links work at once.
Seconds by_links(const Context& c, const Copies& copies, double token_bytes) noexcept {
  const auto& fabric = c.cluster.fabric;
  const Seconds up = Bytes(c.tokens_local * copies.scale_up * token_bytes) / expert_scale_up_rate(c);
  if (copies.scale_out <= 0) return up + fabric.scale_up_latency;
  const Seconds out = Bytes(c.tokens_local * copies.scale_out * token_bytes) / scale_out_rate(c);
  return std::max(up, out) + fabric.scale_out_latency;
}

}  // namespace

Estimate ring_time(const Context& c, KernelTable::Collective kind, double bytes, double ranks,
                   double stride) noexcept {
  if (ranks <= 1 || bytes <= 0) return {};
  const auto& fabric = c.cluster.fabric;
  const double domain = static_cast<double>(fabric.scale_up_size);
  if (ranks * stride <= domain) {
    if (c.table != nullptr && fabric.has_tables)
      if (const auto measured = c.table->collective(c.gpu, kind, ranks, bytes)) return *measured;
    return {Bytes(bytes * (ranks - 1) / ranks) / scale_up_rate(c) + fabric.scale_up_latency,
            Provenance::roofline, kFabricError};
  }
  // Several rings cross the nodes side by side, one for each member a node has, until the inner links are
  // full.
  const double members = std::clamp(domain / stride, 1.0, ranks);
  const BytesPerSecond rate = std::min(scale_up_rate(c), scale_out_rate(c) * members);
  return {Bytes(bytes * (ranks - 1) / ranks) / rate + fabric.scale_out_latency, Provenance::roofline,
          kFabricError};
}

Estimate tensor_parallel_sum(const Context& c, double bytes) noexcept {
  return ring_time(c, KernelTable::Collective::reduce_scatter, bytes, c.tp, 1) +
         ring_time(c, KernelTable::Collective::all_gather, bytes, c.tp, 1);
}

double fullest_rank(const Context& c, const MixtureOfExperts& moe) noexcept {
  if (c.ep <= 1) return 1;
  const double all = c.tokens_local * c.ep * c.etp;
  const double mean = all * static_cast<double>(moe.top_k) / c.ep;
  if (mean <= 0) return 1;
  return std::max(1.0, expected_max_rank_tokens(all, moe.top_k, moe.experts, c.layout.ep) / mean);
}

double routed_rows(const Context& c, const MixtureOfExperts& moe) noexcept {
  return c.tokens_local * c.etp * static_cast<double>(moe.top_k) * fullest_rank(c, moe);
}

double routed_width(const Context& c, const MixtureOfExperts& moe) noexcept {
  return moe.latent > 0 ? static_cast<double>(moe.latent) : c.hidden;
}

Copies token_copies(const Context& c, const MixtureOfExperts& moe) noexcept {
  if (c.ep <= 1) return {};
  const double top_k = static_cast<double>(moe.top_k);
  const double domain = ranks_per_domain(c);
  const double nodes = std::max(1.0, c.ep / domain);
  if (c.software.dispatcher == Dispatcher::all_to_all)
    return {.scale_up = top_k * (domain - 1) / c.ep, .scale_out = top_k * (c.ep - domain) / c.ep};
  // A copy crosses once to each distinct node, lands on the rank of the same place, and goes on from there to
  // each distinct rank; the one that is already there costs nothing.
  return {.scale_up = expected_distinct(c.ep, top_k) * (domain - 1) / domain,
          .scale_out = nodes > 1 ? distinct_nodes(moe, nodes) * (nodes - 1) / nodes : 0};
}

AllToAll all_to_all(const Context& c, const MixtureOfExperts& moe) noexcept {
  AllToAll out;
  if (c.ep <= 1) return out;
  const double width = routed_width(c, moe);
  const double fullest = fullest_rank(c, moe);
  const Copies copies = token_copies(c, moe);
  const double dispatch_bytes = width * (c.software.fp8_dispatch ? kFp8Bytes : 2);
  const double combine_bytes = width * 2;
  const double moved = c.tokens_local * (copies.scale_up + copies.scale_out);
  out.dispatched = Bytes(moved * dispatch_bytes);
  out.combined = Bytes(moved * combine_bytes);

  // The measured kernels are those of a whole node of eight, one rank an expert group; their routing is
  // random, so its maximum is in them.
  const auto& fabric = c.cluster.fabric;
  if (c.table != nullptr && fabric.has_tables && fabric.scale_up_size == 8 && c.ep == 8 &&
      c.ep * c.etp <= fabric.scale_up_size && c.software.dispatcher == Dispatcher::deduplicated) {
    const double top_k = static_cast<double>(moe.top_k), experts = static_cast<double>(moe.experts);
    const double sms = fabric.communication_multiprocessors;
    const auto dispatch = c.table->expert_dispatch(c.gpu, width, top_k, experts, c.tokens_local, sms);
    const auto combine = c.table->expert_combine(c.gpu, width, top_k, experts, c.tokens_local, sms);
    if (dispatch && combine) {
      const double ratio = dispatch_bytes / (width * kFp8Bytes);
      out.dispatch = ratio == 1 ? *dispatch
                                : Estimate(dispatch->time * ratio, Provenance::scaled_table,
                                           dispatch->error / dispatch->time);
      out.combine = *combine;
    }
  }
  if (out.combine.time.value() == 0) {
    out.dispatch = {by_links(c, copies, dispatch_bytes) * fullest, Provenance::roofline, kFabricError};
    out.combine = {by_links(c, copies, combine_bytes) * fullest, Provenance::roofline, kFabricError};
  }
  if (c.software.expert_overlap) {
    out.dispatch *= 1 - c.constants.framework_overlap;
    out.combine *= 1 - c.constants.framework_overlap;
  }
  return out;
}

}  // namespace tessera::pricing
