// The rules of a layout, each with an error that names rule and numbers.

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <vector>

#include "tessera/core/base/text.h"
#include "tessera/core/cluster/layout.h"

namespace tessera {
namespace {

std::unexpected<Error> refuse(std::string key, std::string message, std::string hint) {
  return std::unexpected(
      Error{.key = "layout." + std::move(key), .message = std::move(message), .hint = std::move(hint)});
}

std::string divisors(std::int64_t n) {
  std::vector<std::int64_t> low, high;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d != n / d) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  std::vector<std::string> words;
  for (const std::int64_t d : low) words.push_back(fmt::format("{}", d));
  return join_words(words, "or");
}

}  // namespace

Status check_layout_sizes(const Layout& l) {
  const std::pair<std::string_view, std::int64_t> sizes[] = {
      {"tp", l.tp},
      {"pp", l.pp},
      {"vp", l.vp},
      {"ep", l.ep},
      {"etp", l.etp},
      {"cp", l.cp},
      {"dp", l.dp},
      {"microbatches", l.microbatches},
      {"microbatch_size", l.microbatch_size},
      {"sequence", l.sequence},
  };
  for (const auto& [key, value] : sizes)
    if (value < 1)
      return refuse(std::string(key), fmt::format("{} is not a size", value), "Sizes count from 1.");
  // In double: the product of any four sizes is far inside its range, and the bounds are exact in it.
  const auto product = [](std::initializer_list<std::int64_t> factors) {
    double out = 1;
    for (const std::int64_t factor : factors) out *= static_cast<double>(factor);
    return out;
  };
  constexpr double kMostRanks = 0x1p24, kMostTokens = 0x1p50;
  constexpr std::int64_t kMostMicrobatches = 1 << 20;
  if (product({l.tp, l.pp, l.cp, l.dp}) > kMostRanks)
    return refuse("dp",
                  fmt::format("TP × PP × CP × DP = {} × {} × {} × {} is more than {} ranks", l.tp, l.pp, l.cp,
                              l.dp, kMostRanks),
                  "No machine is that large.");
  if (product({l.pp, l.ep, l.etp}) > kMostRanks)
    return refuse(
        "ep",
        fmt::format("PP × EP × ETP = {} × {} × {} is more than {} ranks", l.pp, l.ep, l.etp, kMostRanks),
        "No machine is that large.");
  if (product({l.pp, l.vp}) > kMostRanks)
    return refuse("vp", fmt::format("PP × VP = {} × {} is more than {} stages", l.pp, l.vp, kMostRanks),
                  "Every stage needs at least one block.");
  if (l.microbatches > kMostMicrobatches)
    return refuse("microbatches",
                  fmt::format("{} microbatches are more than {}", l.microbatches, kMostMicrobatches),
                  "Raise microbatch_size or dp, or lower global_batch.");
  if (product({l.microbatches, l.microbatch_size, l.sequence, l.dp}) > kMostTokens)
    return refuse(
        "microbatches",
        fmt::format("microbatches × microbatch_size × sequence × DP = {} × {} × {} × {} is more than {:.0f} "
                    "tokens a step",
                    l.microbatches, l.microbatch_size, l.sequence, l.dp, kMostTokens),
        "That is more text than there is.");
  return {};
}

namespace {

Status check_sizes(const Layout& l, std::int64_t gpus) {
  TESSERA_CHECK(check_layout_sizes(l));
  if (l.world() != gpus)
    return refuse("dp",
                  fmt::format("TP × PP × CP × DP = {} × {} × {} × {} = {}, but there are {} GPUs", l.tp, l.pp,
                              l.cp, l.dp, l.world(), gpus),
                  "Leave dp out, and the number of GPUs decides it.");
  return {};
}

// The experts of one model, as far as the rules need them.
std::int64_t common_experts(const ModelSpec* model) {
  std::int64_t common = 0;
  if (model == nullptr) return common;
  for (const Layer& layer : model->layer_types)
    if (layer.moe) common = std::gcd(common, layer.moe->experts);
  return common;
}

Status check_fold(const Layout& l, const ModelSpec* model, bool folding) {
  const std::int64_t stage = l.world() / l.pp;
  if (stage % (l.ep * l.etp) == 0) {
    if (folding || (l.dp * l.cp) % l.ep == 0) return {};
    return refuse(
        "ep", fmt::format("{} does not divide DP × CP = {} × {} = {}", l.ep, l.dp, l.cp, l.dp * l.cp),
        fmt::format("The target does not fold experts over tensor parallel ranks: (DP × CP) % EP must be 0. "
                    "With folding this layout would be legal. EP can be {}.",
                    divisors(l.dp * l.cp)));
  }
  const std::int64_t fold = l.etp <= stage && stage % l.etp == 0 ? stage / l.etp : 0;
  const std::int64_t common = common_experts(model);
  const std::int64_t choices = common > 0 ? std::gcd(fold, common) : fold;
  const bool etp = l.etp > 1;
  return refuse(fold == 0 ? "etp" : "ep",
                etp ? fmt::format("EP × ETP = {} × {} = {} does not divide world/PP = {}", l.ep, l.etp,
                                  l.ep * l.etp, stage)
                    : fmt::format("{} does not divide world/PP = {}", l.ep, stage),
                "Experts fold over the ranks of one pipeline stage: (world/PP) % (EP × ETP) must be 0." +
                    (fold == 0 ? std::string() : fmt::format(" EP can be {}.", divisors(choices))));
}

// Layers whose experts do not fall on EP ranks in equal whole numbers: the first such count names its layers.
Status check_experts(const Layout& l, const ModelSpec& model) {
  for (const Layer& type : model.layer_types) {
    if (!type.moe || type.moe->experts % l.ep == 0) continue;
    const std::int64_t experts = type.moe->experts;
    std::vector<std::string> layers;
    for (const Block& block : model.blocks)
      if (block.type >= 0 && model.layer_of(block).moe && model.layer_of(block).moe->experts == experts)
        layers.push_back(fmt::format("{}", block.layer));
    const std::size_t count = layers.size();
    if (count > 8) layers = {layers[0], layers[1], layers[2], "…", layers.back()};
    return refuse(
        "ep",
        fmt::format("{} {} {} {} experts, which do not divide over EP = {}", count == 1 ? "layer" : "layers",
                    join_words(layers), count == 1 ? "has" : "have", experts, l.ep),
        fmt::format("Every EP rank needs the same whole number of experts of each MoE layer. EP can be {}.",
                    divisors(std::gcd(common_experts(&model), l.world() / l.pp / l.etp))));
  }
  return {};
}

struct Width {
  std::string what;
  std::int64_t value;
};

// What tensor parallelism cuts. Key and value heads may be fewer than TP: they are then repeated, so either
// number must divide the other.
std::vector<Width> cut_widths(const Mixer& mixer) {
  std::vector<Width> out;
  if (const auto* m = std::get_if<SoftmaxAttention>(&mixer)) out = {{"query heads", m->query_heads}};
  if (const auto* m = std::get_if<LatentAttention>(&mixer)) out = {{"attention heads", m->heads}};
  if (const auto* m = std::get_if<CompressedAttention>(&mixer)) out = {{"attention heads", m->heads}};
  if (const auto* m = std::get_if<GatedDeltaNet>(&mixer))
    out = {{"key heads", m->key_heads}, {"value heads", m->value_heads}};
  if (const auto* m = std::get_if<KimiDelta>(&mixer)) out = {{"heads", m->heads}};
  if (const auto* m = std::get_if<Mamba1>(&mixer)) out = {{"inner width", m->inner}};
  if (const auto* m = std::get_if<Mamba2>(&mixer)) out = {{"heads", m->heads}};
  if (const auto* m = std::get_if<LightningAttention>(&mixer)) out = {{"heads", m->heads}};
  return out;
}

Status check_divides(std::string_view size, std::int64_t parallel, const std::string& where,
                     const Width& width) {
  if (width.value % parallel == 0) return {};
  std::string upper(size);
  for (char& c : upper) c = static_cast<char>(c - 'a' + 'A');
  return refuse(std::string(size),
                fmt::format("{} does not divide the {} {} of {}", parallel, width.value, width.what, where),
                fmt::format("{} can be {}.", upper, divisors(width.value)));
}

Status check_widths(const Layout& l, const ModelSpec& model) {
  for (const Layer& layer : model.layer_types) {
    const std::string where = describe(layer);
    std::vector<Width> widths = cut_widths(layer.mixer);
    if (layer.dense) widths.push_back({"feed-forward width", layer.dense->width});
    if (layer.moe && layer.moe->shared_width > 0)
      widths.push_back({"shared expert width", layer.moe->shared_width});
    for (const Width& width : widths) TESSERA_CHECK(check_divides("tp", l.tp, where, width));
    if (const auto* softmax = std::get_if<SoftmaxAttention>(&layer.mixer))
      if (softmax->kv_heads > 0 && softmax->kv_heads % l.tp != 0 && l.tp % softmax->kv_heads != 0)
        return refuse("tp",
                      fmt::format("{} and the {} key/value heads of {} do not divide one another", l.tp,
                                  softmax->kv_heads, where),
                      "Key/value heads are cut over TP ranks, or repeated when they are fewer.");
    if (layer.moe)
      TESSERA_CHECK(check_divides("etp", l.etp, where, {"expert width", layer.moe->expert_width}));
  }
  return {};
}

Status check_sequence(const Layout& l) {
  // Causal attention is balanced by giving each CP rank one early and one late piece.
  const std::int64_t pieces = l.cp > 1 ? 2 * l.cp : 1;
  if (l.sequence % pieces != 0)
    return refuse("cp",
                  fmt::format("2 × CP = {} does not divide the sequence of {} tokens", pieces, l.sequence),
                  "Causal balance cuts each sequence into 2 × CP pieces.");
  if (l.sequence / l.cp % l.tp != 0)
    return refuse("tp", fmt::format("{} does not divide the {} tokens of a CP rank", l.tp, l.sequence / l.cp),
                  "Sequence parallelism cuts those tokens over the TP ranks.");
  return {};
}

Status check_layer_memory(const Layout& layout, const ModelSpec& model) {
  std::vector<std::string> kinds;
  for (const Block& block : model.blocks) {
    if (block.kind != BlockKind::layer && block.kind != BlockKind::mtp) continue;
    if (std::string kind = kind_name(model, block); std::ranges::find(kinds, kind) == kinds.end())
      kinds.push_back(std::move(kind));
  }
  for (const LayerMemory& entry : layout.layer_memory)
    if (std::ranges::find(kinds, entry.kind) == kinds.end())
      return refuse(entry.offload > 0 ? "offload" : "recompute",
                    fmt::format("the model has no layers of kind {}", entry.kind),
                    fmt::format("Its kinds of layers are {}.", join_words(kinds)));
  return {};
}

}  // namespace

Status check_layout(const Layout& layout, std::int64_t gpus, const ModelSpec* model, bool folding) {
  TESSERA_CHECK(check_sizes(layout, gpus));
  TESSERA_CHECK(check_fold(layout, model, folding));
  TESSERA_CHECK(check_sequence(layout));
  if (model == nullptr) return {};
  if (layout.ep > 1) TESSERA_CHECK(check_experts(layout, *model));
  TESSERA_CHECK(check_widths(layout, *model));
  TESSERA_CHECK(check_layer_memory(layout, *model));
  if (layout.stages() > model->layers() + model->mtp_blocks() + 2)
    return refuse("vp",
                  fmt::format("PP × VP = {} × {} = {} stages, but the model has {} blocks", layout.pp,
                              layout.vp, layout.stages(), model->layers() + model->mtp_blocks() + 2),
                  "Every stage needs at least one block.");
  return {};
}

}  // namespace tessera
