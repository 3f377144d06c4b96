// Launching kernels from Python takes time of its own. It runs ahead of the GPU where it can, so a sublayer
// takes about √(GPU² + host²): the longer of the two, with some of the other.

#include <cmath>

#include "sublayer.h"

namespace tessera::pricing {
namespace {

constexpr double kHostError = 0.5;  // published releases of one framework differ this much

// `host` seconds for these passes of a sublayer, shared out over their compute tasks.
void stretch(std::initializer_list<Pass> passes, Seconds host, Tasks& out) noexcept {
  double gpu = 0, compute = 0;
  Work* only = nullptr;
  for (const Pass pass : passes) {
    for (std::size_t k = 0; k < kTaskKinds; ++k) {
      const auto kind = static_cast<TaskKind>(k);
      Work& work = out.at(pass, kind);
      if (!work.exists) continue;
      gpu += work.time.time.value();
      if (resource_of(kind) != Resource::comp) continue;
      compute += work.time.time.value();
      if (only == nullptr) only = &work;
    }
  }
  if (only == nullptr || host.value() <= 0) return;
  const double excess = std::hypot(gpu, host.value()) - gpu;
  for (const Pass pass : passes) {
    for (std::size_t k = 0; k < kTaskKinds; ++k) {
      const auto kind = static_cast<TaskKind>(k);
      Work& work = out.at(pass, kind);
      if (!work.exists || resource_of(kind) != Resource::comp) continue;
      const double share = compute > 0 ? work.time.time.value() / compute : (&work == only ? 1.0 : 0.0);
      work.add(Estimate(Seconds(excess * share), Provenance::constant, kHostError), 0);
    }
  }
}

}  // namespace

void add_host_time(const Context& c, double local_experts, Tasks& out) noexcept {
  const CudaGraphs graphs = c.software.cuda_graphs;
  if (graphs == CudaGraphs::iteration) return;
  Seconds host = c.constants.host_per_sublayer * (graphs == CudaGraphs::layer ? c.constants.graphed_host : 1);
  // The experts' loop is not in a graph: its shapes follow the routing.
  if (!c.software.fused_grouped_mlp) host += c.constants.host_per_expert * local_experts;
  // A backward launches two kernels for each of the forward's.
  stretch({Pass::forward}, host * (1.0 / 3), out);
  stretch({Pass::backward, Pass::weight, Pass::recompute}, host * (2.0 / 3), out);
}

}  // namespace tessera::pricing
