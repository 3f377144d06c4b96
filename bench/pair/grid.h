// The pairs of the benchmark: every window of 1 to 6 layers of eight models against every other, under nine
// layouts each.
//
// A window at the front of a model has the embedding with it, one at the back the MTP blocks and the head, as
// stages do. A pair counts once: windows with the same cost kinds in the same order are the same window.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/cluster/layout.h"
#include "tessera/core/cost/block_cost.h"
#include "tessera/core/model/model_spec.h"
#include "tessera/train/overlap/pair_table.h"
#include "tessera/train/planner/job.h"

namespace tessera::bench {

inline constexpr int kLargestWindow = 6;  ///< layers

/// A model and what varies of its layout.
struct Setting {
  std::string model;  ///< the stem of a job file in bench/plan
  std::int64_t sequence = 4096;
  std::int64_t ep = 8;
  bool shared_beside_dispatch = false;
  std::string device = "H100";  ///< a cluster preset
};

/// The settings of the grid: 8 models × 4K, 32K, 256K tokens × EP 8, 32, 64, without those whose
/// experts do not divide by EP, and each once more with its shared experts beside the dispatch where it has
/// any. Errors are those of the job files.
[[nodiscard]] Result<std::vector<Setting>> grid_settings();
/// "glm-4.5 EP64: …" for each setting left out, with the rule it breaks.
[[nodiscard]] std::vector<std::string> grid_omissions();

/// Cost kinds of a window's blocks, in model order.
using Signature = std::vector<std::int32_t>;

/// A setting, priced.
struct Cell {
  Setting setting;
  Layout layout;
  ModelSpec model;
  ModelCost cost;
  Interference interference;

  [[nodiscard]] Signature window(std::int64_t first_layer, std::int64_t layers) const;
  /// The distinct windows of so many layers, in the order they first appear.
  [[nodiscard]] std::vector<Signature> windows(std::int64_t layers) const;
};

/// `changes` go over the setting's own, as on the command line of `tessera plan`.
[[nodiscard]] Result<Cell> price_cell(const Setting& setting,
                                      const std::vector<train::JobOverride>& changes = {});

/// All settings of the grid, priced.
[[nodiscard]] Result<std::vector<Cell>> price_grid(std::string_view device = "H100");

/// All pairs of a cell's windows of 1 … kLargestWindow layers. Of a cell with shared experts beside the
/// dispatch only those that have one: the others are pairs of the cell without.
[[nodiscard]] std::vector<train::PairKey> pairs_of(const Cell& cell);

[[nodiscard]] std::string name(const Setting& setting);

}  // namespace tessera::bench
