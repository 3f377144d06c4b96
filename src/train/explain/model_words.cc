#include "model_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "tessera/core/base/text.h"
#include "tessera/core/model/count.h"

namespace tessera::train {
namespace {

std::span<const Block> blocks_in(const ModelSpec& model, BlockRange range) {
  return std::span(model.blocks)
      .subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.end - range.begin));
}

std::string label(const ModelSpec& model, const Block& block) {
  switch (block.kind) {
    case BlockKind::embedding:
      return "embedding";
    case BlockKind::head:
      return "head";
    case BlockKind::mtp:
      return "mtp " + symbol(model.layer_of(block));
    case BlockKind::layer:
      return symbol(model.layer_of(block));
  }
  return {};
}

}  // namespace

std::vector<std::pair<std::string, std::int64_t>> layers_by_kind(const ModelSpec& model) {
  std::vector<std::pair<std::string, std::int64_t>> out;
  for (const Block& block : model.blocks) {
    if (block.kind != BlockKind::layer) continue;
    const std::string kind = describe(model.layer_of(block));
    const auto found = std::ranges::find(out, kind, &std::pair<std::string, std::int64_t>::first);
    if (found == out.end()) {
      out.emplace_back(kind, 1);
    } else {
      ++found->second;
    }
  }
  return out;
}

std::string billions(std::int64_t count) {
  return fmt::format("{:.2f} B", static_cast<double>(count) / 1e9);
}

std::string model_line(const ModelSpec& model) {
  const ParameterCount count = count_parameters(model).model;
  std::string kinds;
  for (const auto& [kind, number] : layers_by_kind(model))
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", number, kind);
  std::string mtp;
  if (model.mtp_blocks() > 0) mtp = fmt::format(" + {} MTP", model.mtp_blocks());
  return fmt::format("{}   {} layers{}: {}   {} parameters ({} routed), {} active", model.name,
                     model.layers(), mtp, kinds, billions(count.total()), billions(count.routed),
                     billions(count.active()));
}

std::string blocks_by_run(const ModelSpec& model, BlockRange range) {
  std::vector<std::pair<std::string, int>> runs;
  for (const Block& block : blocks_in(model, range)) {
    std::string mine = label(model, block);
    if (!runs.empty() && runs.back().first == mine) {
      ++runs.back().second;
    } else {
      runs.emplace_back(std::move(mine), 1);
    }
  }
  std::string out;
  for (const auto& [mine, count] : runs)
    out += (out.empty() ? "" : " ") + (count == 1 ? mine : fmt::format("{}×{}", mine, count));
  return out.empty() ? "(empty)" : out;
}

std::string blocks_by_number(const ModelSpec& model, BlockRange range) {
  std::vector<std::string> parts;
  std::int32_t first = -1, last = -1;
  for (const Block& block : blocks_in(model, range)) {
    if (block.kind == BlockKind::embedding) parts.emplace_back("the embedding");
    if (block.kind == BlockKind::head) parts.emplace_back("the head");
    if (block.kind == BlockKind::mtp) parts.push_back(fmt::format("MTP block {}", block.layer));
    if (block.kind != BlockKind::layer) continue;
    if (first < 0) first = block.layer;
    last = block.layer;
  }
  if (first >= 0) {
    const auto before = parts.begin() + (!parts.empty() && parts.front() == "the embedding" ? 1 : 0);
    parts.insert(before,
                 first == last ? fmt::format("layer {}", first) : fmt::format("layers {}–{}", first, last));
  }
  return join_words(parts);
}

}  // namespace tessera::train
