// Small models for tests of the training rooms.
#pragma once

#include "tessera/core/model/model_spec.h"

namespace tessera {

/// Embedding, `layers` equal dense attention layers, `mtp` MTP blocks, head.
inline ModelSpec uniform_model(std::int64_t layers, std::int64_t mtp = 0) {
  ModelSpec model;
  model.name = "uniform";
  model.family = "test";
  model.hidden = 64;
  model.vocabulary = 128;
  model.layer_types.push_back(
      {.mixer = SoftmaxAttention{.query_heads = 4, .kv_heads = 4, .head_dim = 16, .value_dim = 16},
       .dense = DenseFeedForward{.width = 128}});
  model.blocks.push_back({.kind = BlockKind::embedding});
  for (std::int64_t l = 0; l < layers; ++l)
    model.blocks.push_back({.kind = BlockKind::layer, .layer = static_cast<std::int32_t>(l), .type = 0});
  for (std::int64_t m = 0; m < mtp; ++m)
    model.blocks.push_back(
        {.kind = BlockKind::mtp, .layer = static_cast<std::int32_t>(layers + m), .type = 0});
  model.blocks.push_back({.kind = BlockKind::head});
  return model;
}

}  // namespace tessera
