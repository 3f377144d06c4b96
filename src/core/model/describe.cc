#include <algorithm>

#include "tessera/core/model/model_spec.h"

namespace tessera {

namespace {

struct Name {
  std::string_view symbol;
  std::string_view words;
};

struct MixerName {
  Name operator()(const std::monostate&) const { return {}; }
  Name operator()(const SoftmaxAttention& a) const {
    if (a.window > 0) return {"W", "sliding window"};
    return {"A", a.indexer ? "sparse softmax" : "softmax"};
  }
  Name operator()(const LatentAttention& a) const { return {"A", a.indexer ? "sparse MLA" : "MLA"}; }
  Name operator()(const CompressedAttention& a) const {
    return {"A", a.ratio == 0 ? "latent sliding window" : "compressed attention"};
  }
  Name operator()(const GatedDeltaNet&) const { return {"G", "Gated DeltaNet"}; }
  Name operator()(const KimiDelta&) const { return {"K", "Kimi Delta Attention"}; }
  Name operator()(const Mamba1&) const { return {"M1", "Mamba-1"}; }
  Name operator()(const Mamba2&) const { return {"M2", "Mamba-2"}; }
  Name operator()(const LightningAttention&) const { return {"L", "lightning"}; }
  Name operator()(const ShortConvolution&) const { return {"C", "short convolution"}; }
};

Name feed_forward_name(const Layer& layer) {
  if (layer.moe) return {"E", layer.dense ? "dense and MoE" : "MoE"};
  if (layer.dense) return {"D", "dense"};
  return {};
}

std::int64_t count(const ModelSpec& model, BlockKind kind) {
  return std::ranges::count_if(model.blocks, [kind](const Block& block) { return block.kind == kind; });
}

}  // namespace

std::int64_t ModelSpec::layers() const noexcept {
  return count(*this, BlockKind::layer);
}
std::int64_t ModelSpec::mtp_blocks() const noexcept {
  return count(*this, BlockKind::mtp);
}

std::string symbol(const Layer& layer) {
  return std::string(std::visit(MixerName{}, layer.mixer).symbol) +
         std::string(feed_forward_name(layer).symbol);
}

std::string kind_name(const ModelSpec& model, const Block& block) {
  if (block.kind == BlockKind::embedding) return "embedding";
  if (block.kind == BlockKind::head) return "head";
  const std::string mine = symbol(model.layer_of(block));
  int same = 1;
  for (std::int32_t type = 0; type < block.type; ++type)
    if (symbol(model.layer_types[static_cast<std::size_t>(type)]) == mine) ++same;
  return (block.kind == BlockKind::mtp ? "mtp " : "") + mine + (same > 1 ? "." + std::to_string(same) : "");
}

std::string describe(const Layer& layer) {
  const std::string mixer(std::visit(MixerName{}, layer.mixer).words);
  const std::string feed_forward(feed_forward_name(layer).words);
  if (mixer.empty() && feed_forward.empty()) return "empty";
  if (mixer.empty() || feed_forward.empty()) return mixer + feed_forward;
  return mixer + " + " + feed_forward;
}

std::string layer_pattern(const ModelSpec& model) {
  std::string out;
  for (const Block& block : model.blocks) {
    if (block.kind != BlockKind::layer) continue;
    if (!out.empty()) out += ' ';
    out += symbol(model.layer_of(block));
  }
  return out;
}

}  // namespace tessera
