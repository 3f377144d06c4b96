#include "block_words.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera::train {
namespace {

// "name(a=1,b=2)"; a zero or a false says nothing and is left out, so that a field that comes later does not
// change the keys of layers that do not have it.
class Words {
 public:
  explicit Words(std::string_view name) : text_(name) {}
  Words& add(std::string_view key, std::int64_t value) {
    if (value == 0) return *this;
    text_ += fmt::format("{}{}={}", first_ ? "(" : ",", key, value);
    first_ = false;
    return *this;
  }
  Words& add(const std::optional<SparseIndexer>& indexer) {
    if (!indexer) return *this;
    return add("indexer_heads", indexer->heads)
        .add("indexer_dim", indexer->head_dim)
        .add("indexer_top_k", indexer->top_k)
        .add("indexer_shared", indexer->shared ? 1 : 0);
  }
  [[nodiscard]] std::string take() const { return first_ ? text_ : text_ + ")"; }

 private:
  std::string text_;
  bool first_ = true;
};

struct MixerWords {
  std::string operator()(std::monostate) const { return {}; }
  std::string operator()(const SoftmaxAttention& a) const {
    return Words("softmax")
        .add("query_heads", a.query_heads)
        .add("kv_heads", a.kv_heads)
        .add("head_dim", a.head_dim)
        .add("value_dim", a.value_dim)
        .add("window", a.window)
        .add("chunk", a.chunk)
        .add("output_gate", a.output_gate)
        .add("head_gate", a.head_gate)
        .add("bias", a.bias)
        .add("output_bias", a.output_bias)
        .add("query_key_norm", a.query_key_norm)
        .add("query_key_norm_wide", a.query_key_norm_wide)
        .add("sinks", a.sinks)
        .add("shared_value", a.shared_value)
        .add(a.indexer)
        .take();
  }
  std::string operator()(const LatentAttention& a) const {
    return Words("mla")
        .add("heads", a.heads)
        .add("query_rank", a.query_rank)
        .add("kv_rank", a.kv_rank)
        .add("nope_dim", a.nope_dim)
        .add("rope_dim", a.rope_dim)
        .add("value_dim", a.value_dim)
        .add("output_gate", a.output_gate)
        .add(a.indexer)
        .take();
  }
  std::string operator()(const CompressedAttention& a) const {
    return Words("compressed")
        .add("heads", a.heads)
        .add("head_dim", a.head_dim)
        .add("rope_dim", a.rope_dim)
        .add("query_rank", a.query_rank)
        .add("output_rank", a.output_rank)
        .add("output_groups", a.output_groups)
        .add("window", a.window)
        .add("ratio", a.ratio)
        .add(a.indexer)
        .take();
  }
  std::string operator()(const GatedDeltaNet& a) const {
    return Words("gdn")
        .add("key_heads", a.key_heads)
        .add("value_heads", a.value_heads)
        .add("key_dim", a.key_dim)
        .add("value_dim", a.value_dim)
        .add("convolution", a.convolution)
        .take();
  }
  std::string operator()(const KimiDelta& a) const {
    return Words("kda")
        .add("heads", a.heads)
        .add("head_dim", a.head_dim)
        .add("convolution", a.convolution)
        .add("full_rank_gate", a.full_rank_gate)
        .take();
  }
  std::string operator()(const Mamba1& a) const {
    return Words("mamba1")
        .add("inner", a.inner)
        .add("state", a.state)
        .add("convolution", a.convolution)
        .add("time_rank", a.time_rank)
        .take();
  }
  std::string operator()(const Mamba2& a) const {
    return Words("mamba2")
        .add("heads", a.heads)
        .add("head_dim", a.head_dim)
        .add("state", a.state)
        .add("groups", a.groups)
        .add("convolution", a.convolution)
        .add("chunk", a.chunk)
        .take();
  }
  std::string operator()(const LightningAttention& a) const {
    return Words("lightning").add("heads", a.heads).add("head_dim", a.head_dim).take();
  }
  std::string operator()(const ShortConvolution& a) const {
    return Words("convolution").add("kernel", a.kernel).take();
  }
};

std::string words(const DenseFeedForward& dense) {
  return Words("dense").add("width", dense.width).add("gated", dense.gated).take();
}

// The routing's own numbers are in: they decide how many tokens an expert gets, and from where.
std::string words(const MixtureOfExperts& moe) {
  return Words("moe")
      .add("experts", moe.experts)
      .add("top_k", moe.top_k)
      .add("width", moe.expert_width)
      .add("shared", moe.shared_width)
      .add("latent", moe.latent)
      .add("gated", moe.gated)
      .add("shared_gate", moe.shared_gate)
      .add("bias", moe.bias)
      .add("score_correction", moe.score_correction)
      .add("groups", moe.groups)
      .add("top_groups", moe.top_groups)
      .take();
}

std::string words(const Layer& layer) {
  std::string out = std::visit(MixerWords{}, layer.mixer);
  if (layer.dense) out += (out.empty() ? "" : "+") + words(*layer.dense);
  if (layer.moe) out += (out.empty() ? "" : "+") + words(*layer.moe);
  return out.empty() ? "nothing" : out;
}

}  // namespace

std::string block_words(const ModelSpec& model, const Block& block) {
  switch (block.kind) {
    case BlockKind::embedding:
      return Words("embedding").add("vocabulary", model.vocabulary).take();
    case BlockKind::head:
      return Words("head").add("vocabulary", model.vocabulary).take();
    case BlockKind::mtp:
      // It has a head of its own.
      return Words("mtp").add("vocabulary", model.vocabulary).take() + "+" + words(model.layer_of(block));
    case BlockKind::layer:
      break;
  }
  return words(model.layer_of(block));
}

}  // namespace tessera::train
