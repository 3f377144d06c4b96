// What the family readers share: the draft they fill, and the checked ways of reading a config.json.
//
// A reader takes a Draft whose `keys` is the language model's map, reads its own family's keys and fills the
// layers. Whatever it had to decide goes to `notes`; whatever contradicts is an error with key and numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/core/base/document.h"
#include "tessera/core/base/result.h"
#include "tessera/core/model/model_spec.h"

namespace tessera::importing {

inline constexpr std::int64_t max_layers = 4096;
inline constexpr std::int64_t max_experts = 65536;
inline constexpr std::int64_t max_width = std::int64_t{1} << 24;

struct Draft {
  Cursor keys;                    // the language model's map
  std::optional<Cursor> wrapper;  // the map around it, when it stands under text_config
  std::int64_t hidden = 0;
  std::int64_t vocabulary = 0;
  bool tied = false;
  std::int64_t residual_streams = 1;
  std::int64_t norm_parameters_per_hidden = 1;
  std::int64_t norms_per_sublayer = 1;
  std::int64_t layer_count = 0;
  std::int64_t mtp_count = 0;
  std::vector<Layer> layers;  // layer_count layers, then one for each MTP block
  std::vector<std::string> notes;

  [[nodiscard]] std::int64_t all() const noexcept { return layer_count + mtp_count; }
  void note(std::string sentence);  // kept once
};

/// Turns the draft into a model: distinct layers, blocks in order. Refuses one too large to be counted.
[[nodiscard]] Result<ModelSpec> assemble(Draft draft, std::string name, std::string family);

// ------------------------------------------------------------------------------------ single keys

[[nodiscard]] Result<std::int64_t> width(Cursor keys, std::string_view key);
/// 0 when absent or null.
[[nodiscard]] Result<std::int64_t> width_or_zero(Cursor keys, std::string_view key);

/// One number under several names: the first that is present. Two of them with different values are refused.
[[nodiscard]] Result<std::optional<Cursor>> one_of(Cursor keys, std::span<const std::string_view> names);

/// hidden_size, vocab_size and tie_word_embeddings; the last also from the wrapper.
[[nodiscard]] Status read_widths(Draft& draft, bool tied_by_default);
/// num_hidden_layers.
[[nodiscard]] Status read_layer_count(Draft& draft);
/// The number of MTP blocks under `key`; 0 when absent.
[[nodiscard]] Status read_mtp_count(Draft& draft, std::string_view key);
/// The three above, which most families share.
[[nodiscard]] Status read_frame(Draft& draft, bool tied_by_default,
                                std::string_view mtp_key = "num_nextn_predict_layers");

// ------------------------------------------------------------------------------- one value a layer

/// Checks that a list has an entry for each layer, or for each layer and MTP block (noted once).
[[nodiscard]] Status check_length(Draft& draft, Cursor list);

/// A number for all layers, or a list with one for each. The result covers MTP blocks too: from the list's
/// tail, else as the last layer.
[[nodiscard]] Result<std::vector<std::int64_t>> per_layer(Draft& draft, Cursor value, std::int64_t low,
                                                          std::int64_t high);

struct Kind {
  std::string_view name;  // as the config spells it
  int kind;               // as the reader calls it
};
/// A list of names, one a layer; the result covers MTP blocks as in per_layer.
[[nodiscard]] Result<std::vector<int>> per_layer_kinds(Draft& draft, Cursor list,
                                                       std::span<const Kind> known);

/// Two lists of layer indices that together name every layer once: 1 … L or 0 … L−1. True = in `first`.
[[nodiscard]] Result<std::vector<bool>> two_index_lists(Draft& draft, Cursor first, Cursor second);

/// A list of 0-based layer indices without repeats.
[[nodiscard]] Result<std::vector<bool>> index_list(Draft& draft, Cursor list);

/// Fills draft.layers by calling `make` for every layer and MTP block.
[[nodiscard]] Status build_layers(Draft& draft, const std::function<Status(std::size_t, Layer&)>& make);

// ------------------------------------------------------------------------------------ parts of layers

struct SoftmaxKeys {
  std::string_view heads = "num_attention_heads";
  std::string_view kv_heads = "num_key_value_heads";
  std::string_view head_dim = "head_dim";
  std::string_view value_dim = {};  // no key: as head_dim
};
[[nodiscard]] Result<SoftmaxAttention> read_softmax(Draft& draft, const SoftmaxKeys& names = {});
[[nodiscard]] Result<SoftmaxAttention> read_softmax(Draft& draft, Cursor keys, const SoftmaxKeys& names);

/// Multi-head latent attention under DeepSeek's keys; head_dim and num_key_value_heads mean nothing there.
[[nodiscard]] Result<LatentAttention> read_latent(Draft& draft);

/// The experts of every layer, under whichever known name the config gives them.
struct Experts {
  Cursor count_at, top_k_at;                      // for messages
  std::vector<std::int64_t> count, top_k, width;  // one a layer and MTP block
};
[[nodiscard]] Result<Experts> read_experts(Draft& draft,
                                           std::string_view width_key = "moe_intermediate_size");

/// `common` with the layer's own experts; checks them against each other.
[[nodiscard]] Result<MixtureOfExperts> experts_of(const Experts& experts, std::size_t layer,
                                                  MixtureOfExperts common);

/// Gives layer `index` its experts where `sparse` says so, else a dense part of the width under `dense_key`.
[[nodiscard]] Status feed_forward(Draft& draft, std::size_t index, const std::vector<bool>& sparse,
                                  const std::optional<Experts>& experts, const MixtureOfExperts& common,
                                  std::string_view dense_key, Layer& layer);

/// n_shared_experts × the width under `width_key`; 0 when the number is absent or null.
[[nodiscard]] Result<std::int64_t> shared_width(Draft& draft, std::string_view count_key,
                                                std::string_view width_key);

/// The experts under DeepSeek's keys, its shared experts and expert groups into `common`; nothing is read
/// where no layer is sparse.
[[nodiscard]] Result<std::optional<Experts>> read_deepseek_experts(Draft& draft,
                                                                   const std::vector<bool>& sparse,
                                                                   MixtureOfExperts& common);

/// n_group and topk_group into `moe`; one group is none.
[[nodiscard]] Status read_groups(Draft& draft, std::string_view groups_key, MixtureOfExperts& moe);

/// Which layers are MoE by first_k_dense_replace and moe_layer_freq (a number or a list of 0 and 1). MTP
/// blocks are as the last layer unless the list has a tail.
[[nodiscard]] Result<std::vector<bool>> moe_layers_by_frequency(Draft& draft);

/// True when any entry is.
[[nodiscard]] bool any(const std::vector<bool>& flags);

}  // namespace tessera::importing
