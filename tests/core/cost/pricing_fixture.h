// A run to price, with everything at hand and everything changeable.
#pragma once

#include <gtest/gtest.h>

#include "tessera/core/cost/block_cost.h"
#include "tessera/core/model/import.h"

namespace tessera {

struct PricedRun {
  ModelSpec model;
  Cluster cluster;
  Layout layout;
  SoftwareProfile software;
  CostConstants constants;
  const KernelTable* table = &KernelTable::builtin();

  PricedRun(const std::string& model_file, const std::string& preset, const Layout& l) : layout(l) {
    auto read = import_model_file(std::string(TESSERA_SOURCE) + "/data/models/" + model_file);
    EXPECT_TRUE(read) << read.error().text();
    if (read) model = *std::move(read);
    auto machine = cluster_preset(preset);
    EXPECT_TRUE(machine) << machine.error().text();
    if (machine) cluster = *std::move(machine);
    cluster.gpus = layout.world();
    software = default_software(cluster);
  }

  [[nodiscard]] CostInput input() const {
    return {.model = &model,
            .cluster = &cluster,
            .layout = &layout,
            .software = software,
            .constants = constants,
            .table = table};
  }
  [[nodiscard]] ModelCost price() const {
    const auto status = check_layout(layout, cluster.gpus, &model);
    EXPECT_TRUE(status) << status.error().text();
    auto cost = price_model(input());
    EXPECT_TRUE(cost) << cost.error().text();
    return cost.value_or(ModelCost{});
  }
  [[nodiscard]] BlockCost block(const std::string& name) const {
    const ModelCost cost = price();
    for (const BlockCost& kind : cost.kinds)
      if (kind.name == name) return kind;
    ADD_FAILURE() << "no block kind " << name;
    return {};
  }
};

inline double ms(const BlockCost& block, Pass pass, TaskKind kind) {
  return milliseconds(block.task(pass, kind).duration.time);
}
/// Forward, input gradient and weight gradient, nothing overlapped, in milliseconds.
inline double layer_ms(const BlockCost& block) {
  return milliseconds(block.serial(Pass::forward) + block.serial(Pass::backward) +
                      block.serial(Pass::weight));
}

}  // namespace tessera
