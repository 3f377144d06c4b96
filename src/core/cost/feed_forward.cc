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

void add_norm_again(const Context& c, Pass again, TaskKind kind, Tasks& out) {
  if (c.again.norm) out.at(again, kind).add(traffic_time(c, norm_traffic(c) * c.tokens_local, false), 0);
}

// The forward of all these tasks once more, in front of the first gradient: communication goes with the first
// communication, the combine's.
void run_again(Pass again, Tasks& tasks) {
  for (const TaskKind kind : {TaskKind::dispatch, TaskKind::combine})
    if (const Work& work = tasks.at(Pass::forward, kind); work.exists)
      tasks.at(Pass::backward, TaskKind::combine).add(work);
  for (const TaskKind kind : {TaskKind::mlp, TaskKind::shared, TaskKind::attention})
    if (const Work& work = tasks.at(Pass::forward, kind); work.exists) tasks.at(again, kind).add(work);
}

}  // namespace

Tasks dense_tasks(const Context& c, const DenseFeedForward& dense, Pass again) {
  constexpr TaskKind kKind = TaskKind::mlp;
  Tasks out;
  mlp(c, c.tokens, c.hidden, d(dense.width) / c.tp, dense.gated, 1, c.dense_dtype).add_to(out, kKind);
  add_traffic(c, dense_traffic(c, dense) / c.tp * c.tokens, false, kKind, out);
  add_norm_again(c, again, kKind, out);
  add_tensor_parallel(c, kKind, out);
  if (c.again.everything) run_again(again, out);
  add_host_time(c, 0, out);
  return out;
}

namespace {

// A task of its own, if the software runs it beside the dispatch.
TaskKind shared_kind(const Context& c, const MixtureOfExperts& moe) noexcept {
  return moe.shared_width > 0 && c.software.shared_beside_dispatch ? TaskKind::shared : TaskKind::mlp;
}

// The shared expert sees every token; it is cut over TP like a dense part.
Tasks shared_tasks(const Context& c, const MixtureOfExperts& moe, double bytes) {
  Tasks out;
  if (moe.shared_width <= 0) return out;
  const TaskKind kind = shared_kind(c, moe);
  mlp(c, c.tokens, c.hidden, d(moe.shared_width) / c.tp, moe.gated, 1, c.dense_dtype).add_to(out, kind);
  add_traffic(c, bytes * c.tokens_local, false, kind, out);
  add_tensor_parallel(c, kind, out);
  if (c.again.shared_expert) run_again(Pass::recompute, out);
  return out;
}

// Routed experts of the fullest rank, and the tokens' way through them.
void add_routed(const Context& c, const MixtureOfExperts& moe, const MoeTraffic& traffic, Tasks& out) {
  const double width = routed_width(c, moe);
  const double local = std::max(1.0, d(moe.experts) / c.ep);
  // The ranks of one expert under ETP share its width.
  const double rows = routed_rows(c, moe);
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
  if (c.again.moe_activation)
    out.at(Pass::recompute, TaskKind::mlp).add(traffic_time(c, traffic.activation * tokens, fused), 0);
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
  const bool fused = c.software.fused_grouped_mlp;

  // The router computes in fp32 on tensor cores, at half the rate of bf16.
  const Product router{.rows = c.tokens_local, .in = c.hidden, .out = d(moe.experts)};
  const ThreePass once = gemm_time(c, router, Dtype::bf16);
  once.add_to(out, before);
  once.add_to(out, before);
  add_traffic(c, traffic.router * c.tokens_local, fused, before, out);

  if (moe.latent > 0) {
    // Into the latent width before the dispatch and out of it after the combine; not cut over TP.
    gemm_time(c, {.rows = c.tokens_local, .in = c.hidden, .out = d(moe.latent)}, c.dense_dtype)
        .add_to(out, before);
    gemm_time(c, {.rows = c.tokens_local, .in = d(moe.latent), .out = c.hidden}, c.dense_dtype)
        .add_to(out, TaskKind::mlp);
  }
  add_routed(c, moe, traffic, out);
  out.add(shared_tasks(c, moe, traffic.shared));
  add_communication(c, moe, out);
  if (c.again.moe) run_again(Pass::backward, out);

  add_traffic(c, traffic.residual * c.tokens_local, fused, before, out);
  // What reads the normed input first: a dispatch done again, or the shared expert's weight gradient.
  if (c.again.moe) {
    add_norm_again(c, Pass::backward, before, out);
  } else {
    add_norm_again(c, Pass::recompute, shared_kind(c, moe), out);
  }
  if (c.again.everything) run_again(Pass::backward, out);
  add_host_time(c, std::max(1.0, d(moe.experts) / c.ep), out);
  return out;
}

Tasks embedding_tasks(const Context& c) {
  Tasks out;
  // A row read and written forward; its gradient read, and the table's row read and written.
  const double bytes = 4 * c.hidden * c.tokens;
  out.at(Pass::forward, TaskKind::embedding).add(traffic_time(c, bytes, false), 0);
  out.at(Pass::weight, TaskKind::embedding).add(traffic_time(c, 2 * bytes, false), 0);
  if (c.tp > 1) {
    // Each TP rank holds a part of the vocabulary: the rows are summed and scattered along the sequence, and
    // their gradient is gathered.
    const double rows = 2 * c.hidden * c.tokens;
    out.at(Pass::forward, TaskKind::embedding)
        .add(ring_time(c, KernelTable::Collective::reduce_scatter, rows, c.tp, 1), 0);
    out.at(Pass::weight, TaskKind::embedding)
        .add(ring_time(c, KernelTable::Collective::all_gather, rows, c.tp, 1), 0);
  }
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
  if (c.tp > 1) {
    // A head cut over the vocabulary gathers its input along the sequence, scatters that input's gradient and
    // gathers the input again for W. Its cross-entropy sums three fp32 numbers a token: largest logit, sum of
    // exponentials and the target's logit (Megatron-Core, vocab_parallel_cross_entropy).
    const double input = 2 * c.hidden * c.tokens;
    const Estimate gather = ring_time(c, KernelTable::Collective::all_gather, input, c.tp, 1);
    out.at(Pass::forward, TaskKind::head).add(gather + 3 * tensor_parallel_sum(c, 4 * c.tokens), 0);
    out.at(Pass::backward, TaskKind::head)
        .add(ring_time(c, KernelTable::Collective::reduce_scatter, input, c.tp, 1), 0);
    out.at(Pass::weight, TaskKind::head).add(gather, 0);
  }
  return out;
}

Tasks mtp_projection_tasks(const Context& c, TaskKind kind) {
  Tasks out;
  gemm_time(c, {.rows = c.tokens_local, .in = 2 * c.hidden, .out = c.hidden}, c.dense_dtype)
      .add_to(out, kind);
  return out;
}

}  // namespace tessera::pricing
