#include <algorithm>

#include "collective.h"
#include "elementwise.h"
#include "gemm_time.h"
#include "sublayer.h"

namespace tessera::pricing {
namespace {

double d(std::int64_t value) noexcept {
  return static_cast<double>(value);
}

// Two products: into the width (twice it when gated), and back.
ThreePass mlp(const Context& c, double rows, double in, double width, bool gated, double count, Dtype dtype) {
  ThreePass out =
      gemm_time(c, {.rows = rows, .in = in, .out = width * (gated ? 2 : 1), .count = count}, dtype);
  out.add(gemm_time(c, {.rows = rows, .in = width, .out = in, .count = count}, dtype));
  return out;
}

// Backward moves what forward moves, twice: for the gradient and for the values read again.
void add_traffic(const Context& c, double bytes, bool fused, TaskKind kind, Tasks& out) {
  out.at(Pass::forward, kind).add(traffic_time(c, bytes, fused), 0);
  out.at(Pass::backward, kind).add(traffic_time(c, 2 * bytes, fused), 0);
}

}  // namespace

Tasks dense_tasks(const Context& c, const DenseFeedForward& dense) {
  constexpr TaskKind kKind = TaskKind::mlp;
  Tasks out;
  mlp(c, c.tokens, c.hidden, d(dense.width) / c.tp, dense.gated, 1, c.dense_dtype).add_to(out, kKind);
  add_traffic(c, dense_traffic(c, dense) / c.tp * c.tokens, false, kKind, out);
  add_tensor_parallel(c, kKind, out);
  if (c.layout.recompute.full) out.at(Pass::backward, kKind).add(out.at(Pass::forward, kKind));
  add_host_time(c, 0, out);
  return out;
}

namespace {

// The shared expert sees every token; it is cut over TP like a dense part.
void add_shared(const Context& c, const MixtureOfExperts& moe, double bytes, Tasks& out) {
  if (moe.shared_width <= 0) return;
  const TaskKind kind = c.software.shared_beside_dispatch ? TaskKind::shared : TaskKind::mlp;
  const ThreePass shared =
      mlp(c, c.tokens, c.hidden, d(moe.shared_width) / c.tp, moe.gated, 1, c.dense_dtype);
  shared.add_to(out, kind);
  add_traffic(c, bytes * c.tokens_local, false, kind, out);
  add_tensor_parallel(c, kind, out);
  const Recompute& again = c.layout.recompute;
  if (again.shared_experts && !again.moe && !again.full) {
    out.at(Pass::backward, kind).add(shared.forward);
    out.at(Pass::backward, kind).add(traffic_time(c, bytes * c.tokens_local, false), 0);
  }
}

// Routed experts of the fullest rank, and the tokens' way through them.
void add_routed(const Context& c, const MixtureOfExperts& moe, const MoeTraffic& traffic, Tasks& out) {
  const double width = moe.latent > 0 ? d(moe.latent) : c.hidden;
  const double local = std::max(1.0, d(moe.experts) / c.ep);
  // Under ETP the ranks of one expert gather each other's tokens and share its width.
  const double rows = c.tokens_local * c.etp * d(moe.top_k) * fullest_rank(c, moe);
  mlp(c, rows / local, width, d(moe.expert_width) / c.etp, moe.gated, local, c.expert_dtype)
      .add_to(out, TaskKind::mlp);
  const double tokens = rows / d(moe.top_k);
  const bool fused = c.software.fused_grouped_mlp;
  add_traffic(c, traffic.experts * tokens, fused, TaskKind::mlp, out);
  if (c.etp > 1) {
    const double bytes = 2 * width * rows;
    const Estimate both = ring_time(c, KernelTable::Collective::all_gather, bytes, c.etp, 1) +
                          ring_time(c, KernelTable::Collective::reduce_scatter, bytes, c.etp, 1);
    out.at(Pass::forward, TaskKind::mlp).add(both, 0);
    out.at(Pass::backward, TaskKind::mlp).add(both, 0);
  }
  const Recompute& again = c.layout.recompute;
  if (again.moe_activation && !again.moe && !again.full)
    out.at(Pass::backward, TaskKind::mlp).add(traffic_time(c, traffic.activation * tokens, fused), 0);
}

void add_communication(const Context& c, const MixtureOfExperts& moe, Tasks& out) {
  const AllToAll wire = all_to_all(c, moe);
  const auto add = [&](Pass pass, TaskKind kind, const Estimate& time, Bytes bytes) {
    Work& work = out.at(pass, kind);
    work.add(time, 0);
    work.communicated += bytes;
  };
  add(Pass::forward, TaskKind::dispatch, wire.dispatch, wire.dispatched);
  add(Pass::forward, TaskKind::combine, wire.combine, wire.combined);
  // The gradient of a combine is sent like a dispatch, in bf16; the gradient of a dispatch is summed like a
  // combine.
  const double gradient_bytes = wire.dispatched.value() > 0 ? wire.combined / wire.dispatched : 1;
  add(Pass::backward, TaskKind::combine, wire.dispatch * gradient_bytes, wire.combined);
  add(Pass::backward, TaskKind::dispatch, wire.combine, wire.combined);
}

}  // namespace

Tasks moe_tasks(const Context& c, const MixtureOfExperts& moe, TaskKind before) {
  Tasks out;
  const MoeTraffic traffic = moe_traffic(c, moe);
  const Recompute& again = c.layout.recompute;

  // The router computes in fp32 on tensor cores, at half the rate of bf16.
  const Product router{.rows = c.tokens_local, .in = c.hidden, .out = d(moe.experts)};
  const ThreePass once = gemm_time(c, router, Dtype::bf16);
  once.add_to(out, before);
  once.add_to(out, before);
  add_traffic(c, traffic.router * c.tokens_local, c.software.fused_grouped_mlp, before, out);

  if (moe.latent > 0) {
    // Into the latent width before the dispatch and out of it after the combine; not cut over TP.
    gemm_time(c, {.rows = c.tokens_local, .in = c.hidden, .out = d(moe.latent)}, c.dense_dtype)
        .add_to(out, before);
    gemm_time(c, {.rows = c.tokens_local, .in = d(moe.latent), .out = c.hidden}, c.dense_dtype)
        .add_to(out, TaskKind::mlp);
  }
  add_routed(c, moe, traffic, out);
  add_shared(c, moe, traffic.shared, out);
  add_communication(c, moe, out);

  if (again.moe || again.full) {
    // Dispatch, experts and combine run again in front of the first gradient.
    Work& first = out.at(Pass::backward, TaskKind::combine);
    first.add(out.at(Pass::forward, TaskKind::dispatch));
    first.add(out.at(Pass::forward, TaskKind::combine));
    for (const TaskKind kind : {TaskKind::mlp, TaskKind::shared, TaskKind::attention})
      if (out.at(Pass::forward, kind).exists) out.at(Pass::backward, kind).add(out.at(Pass::forward, kind));
  }
  add_host_time(c, std::max(1.0, d(moe.experts) / c.ep), out);
  return out;
}

Tasks embedding_tasks(const Context& c) {
  Tasks out;
  // A row read and written forward; its gradient read, and the table's row read and written.
  const double bytes = 4 * c.hidden * c.tokens;
  out.at(Pass::forward, TaskKind::embedding).add(traffic_time(c, bytes, false), 0);
  out.at(Pass::weight, TaskKind::embedding).add(traffic_time(c, 2 * bytes, false), 0);
  return out;
}

Tasks head_tasks(const Context& c) {
  Tasks out;
  const double logits = d(c.model.vocabulary) / c.tp;
  gemm_time(c, {.rows = c.tokens, .in = c.hidden, .out = logits}, Dtype::bf16).add_to(out, TaskKind::head);
  // Cross-entropy reads the logits, writes and reads probabilities: twelve bytes a logit over both passes.
  const Estimate half = traffic_time(c, 6 * c.tokens * logits, false);
  out.at(Pass::forward, TaskKind::head).add(half, 0);
  out.at(Pass::backward, TaskKind::head).add(half, 0);
  return out;
}

Tasks mtp_projection_tasks(const Context& c, TaskKind kind) {
  Tasks out;
  gemm_time(c, {.rows = c.tokens_local, .in = 2 * c.hidden, .out = c.hidden}, c.dense_dtype)
      .add_to(out, kind);
  return out;
}

}  // namespace tessera::pricing
