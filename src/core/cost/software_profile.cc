#include "tessera/core/cost/software_profile.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "tessera/core/base/text.h"

namespace tessera {
namespace {

template <class Choice>
Status read_choice(Cursor section, std::string_view key,
                   std::span<const std::pair<std::string_view, Choice>> choices, Choice& out) {
  const auto value = section.present(key);
  if (!value) return {};
  TESSERA_TRY(const std::string text, value->string());
  std::vector<std::string> names;
  for (const auto& [name, choice] : choices) {
    if (text == name) {
      out = choice;
      return {};
    }
    names.emplace_back(name);
  }
  return value->error(fmt::format("{} is not one of the choices", text),
                      fmt::format("Choices are {}.", join_words(names)));
}

constexpr auto kGraphs = std::to_array<std::pair<std::string_view, CudaGraphs>>(
    {{"none", CudaGraphs::none}, {"layer", CudaGraphs::layer}, {"iteration", CudaGraphs::iteration}});
constexpr auto kDispatchers =
    std::to_array<std::pair<std::string_view, Dispatcher>>({{"deduplicated", Dispatcher::deduplicated},
                                                            {"all_to_all", Dispatcher::all_to_all},
                                                            {"low_latency", Dispatcher::low_latency}});

}  // namespace

SoftwareProfile default_software(const Cluster& cluster) {
  SoftwareProfile out;
  const std::string_view gpu = cluster.name;
  // Megatron-Bridge recipes: layer graphs on the NVL72 systems, eager elsewhere.
  if (gpu == "GB200" || gpu == "GB300") out.cuda_graphs = CudaGraphs::layer;
  // DeepEP and HybridEP run on Hopper and Blackwell only; elsewhere the collective library's all-to-all is
  // the default.
  if (gpu == "A100" || gpu == "MI300X" || gpu == "Ascend910C") out.dispatcher = Dispatcher::all_to_all;
  return out;
}

Result<SoftwareProfile> read_software(Cursor section, const Cluster& cluster) {
  TESSERA_CHECK(section.only_keys({"cuda_graphs", "dispatcher", "fused_grouped_mlp", "expert_overlap",
                                   "shared_beside_dispatch", "fp8_attention", "fp8_dispatch",
                                   "expert_bias_loop", "distributed_optimizer", "bf16_gradients",
                                   "bf16_moments", "low_precision_weights"}));
  SoftwareProfile out = default_software(cluster);
  TESSERA_CHECK(read_choice<CudaGraphs>(section, "cuda_graphs", kGraphs, out.cuda_graphs));
  TESSERA_CHECK(read_choice<Dispatcher>(section, "dispatcher", kDispatchers, out.dispatcher));
  constexpr auto kSwitches = std::to_array<std::pair<std::string_view, bool SoftwareProfile::*>>({
      {"fused_grouped_mlp", &SoftwareProfile::fused_grouped_mlp},
      {"expert_overlap", &SoftwareProfile::expert_overlap},
      {"shared_beside_dispatch", &SoftwareProfile::shared_beside_dispatch},
      {"fp8_attention", &SoftwareProfile::fp8_attention},
      {"fp8_dispatch", &SoftwareProfile::fp8_dispatch},
      {"expert_bias_loop", &SoftwareProfile::expert_bias_loop},
      {"distributed_optimizer", &SoftwareProfile::distributed_optimizer},
      {"bf16_gradients", &SoftwareProfile::bf16_gradients},
      {"bf16_moments", &SoftwareProfile::bf16_moments},
      {"low_precision_weights", &SoftwareProfile::low_precision_weights},
  });
  for (const auto& [key, member] : kSwitches) {
    TESSERA_TRY(out.*member, section.boolean_or(key, out.*member));
  }
  return out;
}

Result<CostConstants> read_constants(Cursor section) {
  TESSERA_CHECK(section.only_keys({"memory_traffic", "host_per_sublayer_ms", "host_per_expert_ms",
                                   "graphed_host", "framework_overlap", "fused_traffic", "quantised_bytes",
                                   "attention_backward", "linear_backward", "exposed_reduction",
                                   "host_link_efficiency", "optimizer_bytes", "context_gib"}));
  CostConstants out;
  struct Factor {
    std::string_view key;
    double CostConstants::* member;
    double low, high;
  };
  constexpr auto kFactors = std::to_array<Factor>({
      {"memory_traffic", &CostConstants::memory_traffic, 0, 100},
      {"graphed_host", &CostConstants::graphed_host, 0, 1},
      {"framework_overlap", &CostConstants::framework_overlap, 0, 1},
      {"fused_traffic", &CostConstants::fused_traffic, 0, 1},
      {"quantised_bytes", &CostConstants::quantised_bytes, 0, 10},
      {"attention_backward", &CostConstants::attention_backward, 0, 100},
      {"linear_backward", &CostConstants::linear_backward, 0, 100},
      {"exposed_reduction", &CostConstants::exposed_reduction, 0, 1},
      {"host_link_efficiency", &CostConstants::host_link_efficiency, 0.01, 1},
      {"optimizer_bytes", &CostConstants::optimizer_bytes, 0, 1000},
  });
  for (const Factor& factor : kFactors) {
    TESSERA_TRY(out.*factor.member,
                section.number_or(factor.key, factor.low, factor.high, out.*factor.member));
  }
  // In units of their own: only what is given is converted, so that the defaults stay exact.
  if (const auto value = section.present("host_per_sublayer_ms")) {
    TESSERA_TRY(const double given, value->number(0, 1e4));
    out.host_per_sublayer = Seconds(given * 1e-3);
  }
  if (const auto value = section.present("host_per_expert_ms")) {
    TESSERA_TRY(const double given, value->number(0, 1e4));
    out.host_per_expert = Seconds(given * 1e-3);
  }
  if (const auto value = section.present("context_gib")) {
    TESSERA_TRY(const double given, value->number(0, 1e4));
    out.context = Bytes(given * 1024 * 1024 * 1024);
  }
  return out;
}

}  // namespace tessera
