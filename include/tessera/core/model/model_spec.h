// What a model is made of: an ordered list of blocks, each naming one of a few distinct layers.
//
// A layer is a token mixer and a feed-forward part; either may be absent (Nemotron-H has one sublayer per
// block). Widths are in elements, counts in units; nothing here is divided by a parallel layout.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/core/base/ids.h"

namespace tessera {

// ------------------------------------------------------------------------------------- token mixers

/// The lightning indexer of DeepSeek sparse attention: scores the context and keeps the best `top_k` tokens.
struct SparseIndexer {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t top_k = 0;
  bool shared = false;  ///< reuses the choice of an earlier layer: no weights and no scoring (GLM-5.2)
  bool operator==(const SparseIndexer&) const = default;
};

/// Multi-head, grouped-query or sliding-window softmax attention.
struct SoftmaxAttention {
  std::int64_t query_heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;   ///< of queries and keys
  std::int64_t value_dim = 0;  ///< of values, per head; usually head_dim
  std::int64_t window = 0;     ///< tokens a query sees at most; 0 = all before it
  std::int64_t chunk = 0;    ///< a query sees only its own block of this many tokens (Llama 4); 0 = no blocks
  bool output_gate = false;  ///< the query projection is twice as wide (Qwen3-Next, Qwen3.5)
  bool head_gate = false;    ///< one gate per head, from a hidden × heads projection (Step-3.5)
  bool bias = false;         ///< query, key and value projections carry biases (GLM-4.5, gpt-oss)
  bool output_bias = false;  ///< so does the output projection (gpt-oss)
  bool query_key_norm = false;  ///< norms of queries and keys, one weight vector for all heads
  bool query_key_norm_wide =
      false;                  ///< with `query_key_norm`: the norm runs over all heads at once (MiniMax-M2)
  bool sinks = false;         ///< one learned logit per head (gpt-oss)
  bool shared_value = false;  ///< keys serve as values too (gemma-4 full layers)
  std::optional<SparseIndexer> indexer;  ///< block-sparse attention (MiniMax-M3)
  bool operator==(const SoftmaxAttention&) const = default;
};

/// Multi-head latent attention (MLA), with the indexer of DSA where present.
struct LatentAttention {
  std::int64_t heads = 0;
  std::int64_t query_rank = 0;  ///< 0 = full-rank query projection
  std::int64_t kv_rank = 0;
  std::int64_t nope_dim = 0;
  std::int64_t rope_dim = 0;
  std::int64_t value_dim = 0;
  bool output_gate = false;  ///< a hidden × heads·value_dim gate on the output (Kimi-K3)
  std::optional<SparseIndexer> indexer;
  bool operator==(const LatentAttention&) const = default;
};

/// DeepSeek-V4: one shared latent key/value head, a sliding window, and a compressed view of the rest.
struct CompressedAttention {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t rope_dim = 0;
  std::int64_t query_rank = 0;
  std::int64_t output_rank = 0;
  std::int64_t output_groups = 0;
  std::int64_t window = 0;
  std::int64_t ratio = 0;  ///< tokens per compressed entry; 0 = sliding window only
  /// Present: entries overlap and the indexer keeps the best `top_k` of them; absent: all entries are seen.
  std::optional<SparseIndexer> indexer;
  bool operator==(const CompressedAttention&) const = default;
};

struct GatedDeltaNet {
  std::int64_t key_heads = 0;
  std::int64_t value_heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t convolution = 0;
  bool operator==(const GatedDeltaNet&) const = default;
};

struct KimiDelta {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t convolution = 0;
  bool full_rank_gate = false;  ///< output gate of hidden × heads·head_dim; else low rank, rank = head_dim
  bool operator==(const KimiDelta&) const = default;
};

struct Mamba1 {
  std::int64_t inner = 0;
  std::int64_t state = 0;
  std::int64_t convolution = 0;
  std::int64_t time_rank = 0;
  bool operator==(const Mamba1&) const = default;
};

struct Mamba2 {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t state = 0;
  std::int64_t groups = 0;
  std::int64_t convolution = 0;
  std::int64_t chunk = 0;
  bool operator==(const Mamba2&) const = default;
};

/// Linear attention with a fixed decay per head (MiniMax-01, Ring-linear).
struct LightningAttention {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  bool operator==(const LightningAttention&) const = default;
};

/// Gated short convolution (LFM2).
struct ShortConvolution {
  std::int64_t kernel = 0;
  bool operator==(const ShortConvolution&) const = default;
};

using Mixer = std::variant<std::monostate, SoftmaxAttention, LatentAttention, CompressedAttention,
                           GatedDeltaNet, KimiDelta, Mamba1, Mamba2, LightningAttention, ShortConvolution>;

// -------------------------------------------------------------------------------------- feed-forward

struct DenseFeedForward {
  std::int64_t width = 0;
  bool gated = true;  ///< three matrices (SwiGLU); false = two (ReLU²)
  bool operator==(const DenseFeedForward&) const = default;
};

struct MixtureOfExperts {
  std::int64_t experts = 0;  ///< routed experts of this layer
  std::int64_t top_k = 0;    ///< routed experts a token visits
  std::int64_t expert_width = 0;
  std::int64_t shared_width = 0;  ///< total width of the shared experts; 0 = none
  std::int64_t latent = 0;        ///< width the routed experts work in; 0 = hidden (no latent projection)
  bool gated = true;              ///< three matrices per expert; false = two (ReLU²)
  bool shared_gate = false;       ///< a sigmoid gate of `hidden` weights on the shared expert (Qwen)
  bool bias = false;              ///< expert and router biases (gpt-oss)
  bool score_correction = false;  ///< one balancing bias per expert (DeepSeek-V3 and after)
  std::int64_t groups = 0;        ///< node-limited routing: expert groups; 0 = none
  std::int64_t top_groups = 0;    ///< groups a token may visit
  bool operator==(const MixtureOfExperts&) const = default;
};

struct Layer {
  Mixer mixer;
  std::optional<DenseFeedForward> dense;  ///< beside `moe` it runs in parallel with it (gemma-4)
  std::optional<MixtureOfExperts> moe;
  bool operator==(const Layer&) const = default;
};

// --------------------------------------------------------------------------------------------- model

enum class BlockKind : std::uint8_t { embedding, layer, mtp, head };

struct Block {
  BlockKind kind = BlockKind::layer;
  std::int32_t layer = -1;  ///< 0 … L−1; MTP blocks count on from L; −1 for embedding and head
  std::int32_t type = -1;   ///< index into ModelSpec::layer_types; −1 for embedding and head
  bool operator==(const Block&) const = default;
};

struct ModelSpec {
  std::string name;    ///< from the file name, or `name:` in native YAML
  std::string family;  ///< the config's model_type; "native" for native YAML
  std::int64_t hidden = 0;
  std::int64_t vocabulary = 0;
  bool tied_embeddings = false;
  std::int64_t residual_streams = 1;  ///< hyper-connections widen the residual stream (DeepSeek-V4: hc_mult)
  std::int64_t norm_parameters_per_hidden = 1;  ///< 1 = RMSNorm weight; 2 = weight and bias
  std::int64_t norms_per_sublayer = 1;          ///< 1 = before it; 2 = before and after it (Gemma)
  std::vector<Layer> layer_types;               ///< distinct layers, in order of first appearance
  std::vector<Block> blocks;                    ///< embedding, layers, MTP blocks, head
  std::vector<std::string> notes;  ///< what the importer decided that a reader should know, one sentence each

  [[nodiscard]] std::int64_t layers() const noexcept;  ///< without MTP
  [[nodiscard]] std::int64_t mtp_blocks() const noexcept;
  [[nodiscard]] const Layer& layer_of(const Block& block) const {
    return layer_types[static_cast<std::size_t>(block.type)];
  }
};

/// "A" (any softmax attention without a sliding window), "W" (with one), "G", "K", "L", "M1", "M2", "C"
/// (short convolution) and "" for no mixer; then "E" for a MoE, also one beside a dense part, or "D": as in
/// "GE".
[[nodiscard]] std::string symbol(const Layer& layer);
/// "GE", "embedding", "head", "mtp AE"; where two distinct layers have one symbol, the later ones count on:
/// "AE", "AE.2". Blocks of equal names are alike.
[[nodiscard]] std::string kind_name(const ModelSpec& model, const Block& block);
/// In words: "Gated DeltaNet + MoE", "softmax + dense".
[[nodiscard]] std::string describe(const Layer& layer);
/// The symbols of all layers (no MTP), separated by blanks, written out in full: "GE GE GE AE …".
[[nodiscard]] std::string layer_pattern(const ModelSpec& model);

}  // namespace tessera
