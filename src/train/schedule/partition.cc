#include "tessera/train/schedule/partition.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/core/base/text.h"

namespace tessera::train {
namespace {

std::string block_text(const ModelSpec& model, std::size_t block) {
  const Block& b = model.blocks[block];
  switch (b.kind) {
    case BlockKind::embedding:
      return "the embedding";
    case BlockKind::head:
      return "the head";
    case BlockKind::layer:
      return fmt::format("layer {}", b.layer);
    case BlockKind::mtp:
      return fmt::format("MTP layer {}", b.layer);
  }
  return "a block";
}

// Blocks [begin, end) in words: "the embedding and layers 0 to 3 (5 blocks)".
std::string blocks_text(const ModelSpec& model, std::size_t begin, std::size_t end) {
  std::vector<std::string> words;
  for (std::size_t i = begin; i < end;) {
    std::size_t j = i + 1;
    const BlockKind kind = model.blocks[i].kind;
    if (kind == BlockKind::layer || kind == BlockKind::mtp)
      while (j < end && model.blocks[j].kind == kind) ++j;
    const std::string_view plural = kind == BlockKind::mtp ? "MTP layers" : "layers";
    if (j - i == 1)
      words.push_back(block_text(model, i));
    else if (j - i == 2)
      words.push_back(fmt::format("{} {} and {}", plural, model.blocks[i].layer, model.blocks[j - 1].layer));
    else
      words.push_back(fmt::format("{} {} to {} ({} of them)", plural, model.blocks[i].layer,
                                  model.blocks[j - 1].layer, j - i));
    i = j;
  }
  return join_words(words);
}

}  // namespace

Status check_partition(const ModelSpec& model, const Partition& partition) {
  const auto blocks = static_cast<std::int32_t>(model.blocks.size());
  if (partition.stages.empty()) return infeasible("the partition has no stages");
  for (std::size_t s = 0; s < partition.stages.size(); ++s) {
    const BlockRange range = partition.stages[s];
    if (range.begin < 0 || range.end < range.begin || range.end > blocks)
      return infeasible(fmt::format("stage {} holds blocks {} to {}; expected 0 ≤ begin ≤ end ≤ {}", s,
                                    range.begin, range.end, blocks));
  }

  std::vector<std::string> faults;
  std::int32_t covered = 0;
  for (std::size_t s = 0; s < partition.stages.size(); ++s) {
    const BlockRange range = partition.stages[s];
    if (range.begin == range.end) continue;  // holds nothing, wherever its bounds say it stands
    if (range.begin > covered)
      faults.push_back(fmt::format("no stage holds {}", blocks_text(model, static_cast<std::size_t>(covered),
                                                                    static_cast<std::size_t>(range.begin))));
    if (range.begin < covered)
      faults.push_back(fmt::format("stage {} and a stage before it both hold {}", s,
                                   blocks_text(model, static_cast<std::size_t>(range.begin),
                                               static_cast<std::size_t>(std::min(range.end, covered)))));
    covered = std::max(covered, range.end);
  }
  if (covered < blocks)
    faults.push_back(fmt::format("no stage holds {}",
                                 blocks_text(model, static_cast<std::size_t>(covered), model.blocks.size())));
  if (!faults.empty())
    return infeasible(
        fmt::format("the partition does not hold every block exactly once: {}", join_words(faults)));

  const BlockRange first = partition.stages.front(), last = partition.stages.back();
  if (blocks > 0 && model.blocks.front().kind == BlockKind::embedding && first.begin == first.end)
    return infeasible("the first stage is empty, but the embedding must be there");
  if (blocks > 0 && model.blocks.back().kind == BlockKind::head && last.begin == last.end)
    return infeasible("the last stage is empty, but the head must be there");
  return {};
}

}  // namespace tessera::train
