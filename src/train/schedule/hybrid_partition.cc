// Hybrid patterns and partitions of a model.
#include <fmt/format.h>

#include <algorithm>

#include "tessera/core/base/text.h"
#include "tessera/train/schedule/hybrid_pattern.h"

namespace tessera::train {
namespace {

// '?' = the notation has no letter for this mixer.
struct MixerSymbol {
  char operator()(std::monostate) const noexcept { return ' '; }
  char operator()(const SoftmaxAttention& mixer) const noexcept {
    return mixer.window > 0 || mixer.chunk > 0 || mixer.indexer ? '?' : '*';
  }
  char operator()(const LatentAttention& mixer) const noexcept { return mixer.indexer ? 'D' : '+'; }
  char operator()(const GatedDeltaNet&) const noexcept { return 'G'; }
  char operator()(const Mamba2&) const noexcept { return 'M'; }
  template <class Other>
  char operator()(const Other&) const noexcept {
    return '?';
  }
};

// The entries of one block: a mixer, a feed-forward part or both.
Result<std::string> entries_of(const Layer& layer, MegatronRelease release) {
  std::string out;
  const char mixer = std::visit(MixerSymbol{}, layer.mixer);
  if (mixer != ' ') out += mixer;
  if (layer.dense && layer.moe)
    return bad_input(fmt::format(
        "hybrid pattern: a layer of {} runs a dense part beside its experts, which a pattern cannot say",
        describe(layer)));
  if (layer.dense) out += '-';
  if (layer.moe) out += 'E';
  for (const char c : out)
    if (hybrid_letters(release).find(c) == std::string_view::npos)
      return bad_input(fmt::format("hybrid pattern: Megatron-Core {} has no letter for {}", name(release),
                                   describe(layer)));
  return out;
}

struct Entries {
  std::vector<std::string> of_block;  // empty for embedding and head
  std::string mtp;
  std::int64_t mtp_layers = 0;
};
Result<Entries> entries_of(const ModelSpec& model, MegatronRelease release) {
  Entries out;
  for (const Block& block : model.blocks) {
    out.of_block.emplace_back();
    if (block.kind != BlockKind::layer && block.kind != BlockKind::mtp) continue;
    TESSERA_TRY(std::string entries, entries_of(model.layer_of(block), release));
    if (block.kind == BlockKind::mtp) {
      if (out.mtp_layers++ > 0 && entries != out.mtp)
        return bad_input(
            fmt::format("hybrid pattern: MTP layers differ (\"{}\" and \"{}\"); a pattern needs equal ones",
                        out.mtp, entries));
      out.mtp = std::move(entries);
    } else {
      out.of_block.back() = std::move(entries);
    }
  }
  return out;
}

}  // namespace

Result<Partition> read_hybrid_partition(const HybridPattern& pattern, const ModelSpec& model,
                                        std::int64_t pp) {
  TESSERA_TRY(const Entries entries, entries_of(model, MegatronRelease::v0_19_2));
  std::string found, expected;
  for (const std::string& segment : pattern.segments) found += segment;
  for (const std::string& block : entries.of_block) expected += block;
  if (found != expected) {
    const auto at = std::ranges::mismatch(found, expected).in1 - found.begin();
    return bad_input(
        fmt::format("hybrid pattern: {} entries where the model has {}; they differ from entry {} on",
                    found.size(), expected.size(), at),
        fmt::format("The model is {}.", expected.substr(static_cast<std::size_t>(at), 60)));
  }
  if (pattern.mtp_layers != entries.mtp_layers || pattern.mtp != entries.mtp)
    return bad_input(fmt::format("hybrid pattern: {} MTP layers \"{}\" where the model has {} \"{}\"",
                                 pattern.mtp_layers, pattern.mtp, entries.mtp_layers, entries.mtp));
  const auto count = static_cast<std::int64_t>(pattern.segments.size());
  if (pp < 1 || (count > 1 && count % pp != 0))
    return bad_input(
        fmt::format("hybrid pattern: {} segments cannot be spread over pp = {} ranks", count, pp));

  const std::int64_t stages = count > 1 ? count : pp;
  Partition partition;
  std::size_t block = 0, entry = 0, end = 0;
  for (std::int64_t s = 0; s < stages; ++s) {
    TESSERA_TRY(const HybridSegment segment, hybrid_segment(pattern, pp, stages / pp, s % pp, s / pp));
    end += segment.entries.size();
    const std::size_t begin = block;
    while (block < model.blocks.size()) {
      const std::size_t size = entries.of_block[block].size();
      const BlockKind kind = model.blocks[block].kind;
      const bool belongs_last = kind == BlockKind::mtp || kind == BlockKind::head;
      if (belongs_last ? s + 1 < stages : kind == BlockKind::layer && entry == end) break;
      if (entry + size > end)
        return bad_input(
            fmt::format("hybrid pattern: the cut after stage {} splits layer {} (\"{}\"); a plan's stages "
                        "hold whole layers",
                        s, model.blocks[block].layer, entries.of_block[block]),
            "Move the cut by one entry.");
      entry += size;
      ++block;
    }
    partition.stages.push_back({static_cast<std::int32_t>(begin), static_cast<std::int32_t>(block)});
  }
  TESSERA_CHECK(check_partition(model, partition));
  return partition;
}

Result<std::string> write_hybrid_pattern(const ModelSpec& model, const Partition& partition, std::int64_t pp,
                                         MegatronRelease release) {
  TESSERA_CHECK(check_partition(model, partition));
  TESSERA_TRY(const Entries entries, entries_of(model, release));
  std::string out;
  std::vector<std::size_t> sizes;
  for (std::size_t s = 0; s < partition.stages.size(); ++s) {
    if (s > 0 && release != MegatronRelease::v0_16_1) out += '|';
    const std::size_t before = out.size();
    for (std::int32_t b = partition.stages[s].begin; b < partition.stages[s].end; ++b) {
      if (model.blocks[static_cast<std::size_t>(b)].kind == BlockKind::mtp && s + 1 < partition.stages.size())
        return bad_input(
            fmt::format("hybrid pattern: MTP layer {} is in stage {}; Megatron-Core puts MTP into the last",
                        model.blocks[static_cast<std::size_t>(b)].layer, s));
      out += entries.of_block[static_cast<std::size_t>(b)];
    }
    sizes.push_back(out.size() - before);
  }
  if (release == MegatronRelease::v0_16_1) {
    if (std::ranges::adjacent_find(sizes, std::ranges::not_equal_to{}) != sizes.end() ||
        static_cast<std::int64_t>(sizes.size()) != pp)
      return bad_input(
          fmt::format("hybrid pattern: Megatron-Core 0.16.1 gives each of {} ranks one equal share of the "
                      "entries; this partition has {} stages of {} to {} entries",
                      pp, sizes.size(), std::ranges::min(sizes), std::ranges::max(sizes)),
          "0.19.2 takes cuts (|).");
    if (entries.mtp_layers > 0) return bad_input("hybrid pattern: Megatron-Core 0.16.1 has no MTP part (/)");
  }
  if (static_cast<std::int64_t>(partition.stages.size()) % pp != 0)
    return bad_input(fmt::format("hybrid pattern: {} stages cannot be spread over pp = {} ranks",
                                 partition.stages.size(), pp));
  for (std::int64_t m = 0; m < entries.mtp_layers; ++m) out += "/" + entries.mtp;
  TESSERA_CHECK(read_hybrid_pattern(out, release));
  return out;
}

}  // namespace tessera::train
