#include <algorithm>

#include "collective.h"
#include "elementwise.h"
#include "gemm_time.h"
#include "mixer_time.h"
#include "sublayer.h"

namespace tessera::pricing {

void add_tensor_parallel(const Context& c, TaskKind kind, Tasks& out) noexcept {
  if (c.tp <= 1) return;
  const double bytes = 2 * c.hidden * c.tokens;
  const Estimate gather = ring_time(c, KernelTable::Collective::all_gather, bytes, c.tp, 1);
  const Estimate scatter = ring_time(c, KernelTable::Collective::reduce_scatter, bytes, c.tp, 1);
  out.at(Pass::forward, kind).add(gather + scatter, 0);
  out.at(Pass::backward, kind).add(gather + scatter, 0);
  out.at(Pass::weight, kind).add(gather, 0);
}

namespace {

// Ring exchange of keys and values goes beside the core and shows where it is longer.
Estimate exposed_exchange(const Context& c, const Core& core) noexcept {
  if (c.cp <= 1) return {};
  const Estimate exchange = ring_time(c, KernelTable::Collective::all_gather,
                                      core.exchanged.value() * c.cp / (c.cp - 1), c.cp, c.tp);
  const Seconds hidden = std::min(core.forward.time, exchange.time);
  return exchange.time.value() > 0 ? exchange * (1 - hidden / exchange.time) : exchange;
}

}  // namespace

Tasks mixer_tasks(const Context& c, const Mixer& mixer, Pass again_pass) {
  constexpr TaskKind kKind = TaskKind::attention;
  Tasks out;
  if (std::holds_alternative<std::monostate>(mixer)) return out;
  Work& forward = out.at(Pass::forward, kKind);
  Work& backward = out.at(Pass::backward, kKind);
  Work& again = out.at(again_pass, kKind);

  for (const Projection& p : projections(c, mixer)) {
    const Product product{.rows = c.tokens, .in = p.in, .out = p.out};
    const ThreePass three = gemm_time(c, product, c.dense_dtype);
    three.add_to(out, kKind);
    if (p.up_projection && c.again.up_projection) again.add(three.forward);
  }

  const Core core = core_time(c, mixer);
  const Estimate exchange = exposed_exchange(c, core);
  forward.add(core.forward, core.compute_share);
  forward.add(exchange, 0);
  backward.add(core.forward * core.backward, core.compute_share);
  backward.add(exchange, 0);
  if (c.again.core) {
    again.add(core.forward, core.compute_share);
    again.add(exchange, 0);
  }

  // Norms and gates are cut over TP with the sequence or the heads.
  const double bytes = mixer_traffic(c, mixer) / c.tp * c.tokens;
  forward.add(traffic_time(c, bytes, false), 0);
  backward.add(traffic_time(c, 2 * bytes, false), 0);
  if (c.again.norm) again.add(traffic_time(c, norm_traffic(c) * c.tokens_local, false), 0);

  add_tensor_parallel(c, kKind, out);
  if (c.again.everything) again.add(forward);
  add_host_time(c, 0, out);
  return out;
}

}  // namespace tessera::pricing
