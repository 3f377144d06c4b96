// Partitions that know nothing of overlap: what people use today, to be compared with.
//
// Embedding first, MTP and head last, every block once. `weights` are one number per block.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tessera/core/base/result.h"
#include "tessera/core/base/units.h"
#include "tessera/core/model/model_spec.h"
#include "tessera/train/schedule/partition.h"

namespace tessera::train {

/// Layers as equal in number as they go, larger stages in the middle; embedding first, MTP and head last.
[[nodiscard]] Result<Partition> even_partition(const ModelSpec& model, std::int64_t stages);

/// Minimises the largest stage of `weights` (one per block, seconds of F + B + W), exact; among those the
/// least sum of squares; among those the lighter early stages, whose activations live longest. Weights are
/// first rounded to a four-millionth of their sum, so that noise in a cost's last digits moves no boundary.
/// `speed`, one per stage or empty, divides a stage's time (at 0.5 it takes twice as long). Every stage holds
/// at least one block when there are enough.
[[nodiscard]] Result<Partition> serial_balanced_partition(const ModelSpec& model,
                                                          std::span<const Seconds> weights,
                                                          std::int64_t stages,
                                                          std::span<const double> speed = {});

/// Minimises the largest stage by parameters, what a framework sees without timing anything.
[[nodiscard]] Result<Partition> parameter_balanced_partition(const ModelSpec& model, std::int64_t stages);

/// Minimises the largest stage by training FLOPs at this sequence length.
[[nodiscard]] Result<Partition> flop_balanced_partition(const ModelSpec& model, std::int64_t stages,
                                                        std::int64_t sequence);

/// Minimises Alpa's objective: Σ of the stages' times + (microbatches − 1) · the slowest (Zheng et al.,
/// OSDI 2022, eq. 2). With one device group the sum is the same for every partition, unless stage speeds
/// differ.
[[nodiscard]] Result<Partition> alpa_partition(const ModelSpec& model, std::span<const Seconds> weights,
                                               std::int64_t stages, std::int64_t microbatches,
                                               std::span<const double> speed = {});

}  // namespace tessera::train
