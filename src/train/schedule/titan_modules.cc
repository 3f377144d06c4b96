#include "tessera/train/schedule/titan_modules.h"

#include <fmt/format.h>

#include "tessera/core/base/document.h"

namespace tessera::train {
namespace {

std::vector<std::string> modules_of(const Block& block) {
  switch (block.kind) {
    case BlockKind::embedding:
      return {"tok_embeddings"};
    case BlockKind::layer:
      return {fmt::format("layers.{}", block.layer)};
    case BlockKind::head:
      return {"norm", "lm_head"};
    case BlockKind::mtp:
      break;
  }
  return {};
}

std::unexpected<Error> no_mtp(const Block& block) {
  return bad_input(
      fmt::format("torchtitan has no module for multi-token prediction, and layer {} is an MTP block",
                  block.layer),
      "Plan the model without MTP, or use --to megatron.");
}

std::unexpected<Error> fault(Cursor at, std::string message, std::string hint = {}) {
  return std::unexpected(Error{.kind = ErrorKind::bad_input,
                               .file = at.file(),
                               .line = at.line(),
                               .key = at.path(),
                               .message = std::move(message),
                               .hint = std::move(hint)});
}

}  // namespace

Result<std::string> write_titan_modules(const ModelSpec& model, const Partition& partition) {
  TESSERA_CHECK(check_partition(model, partition));
  std::string out = "[";
  for (const BlockRange& range : partition.stages) {
    out += out.size() == 1 ? "[" : ", [";
    bool first = true;
    for (std::int32_t b = range.begin; b < range.end; ++b) {
      const Block& block = model.blocks[static_cast<std::size_t>(b)];
      if (block.kind == BlockKind::mtp) return no_mtp(block);
      for (const std::string& module : modules_of(block)) {
        out += fmt::format("{}\"{}\"", first ? "" : ", ", module);
        first = false;
      }
    }
    out += ']';
  }
  return out + ']';
}

Result<Partition> read_titan_modules(std::string_view text, const ModelSpec& model, std::string_view file) {
  TESSERA_TRY(const Document document, Document::parse(text, std::string(file), DocumentFormat::json));
  const Cursor root = document.root();
  if (!root.is_list()) return fault(root, "expected a list of lists of module names");
  struct Expected {
    std::string module;
    std::int32_t block;
  };
  std::vector<Expected> expected;
  for (std::size_t b = 0; b < model.blocks.size(); ++b) {
    if (model.blocks[b].kind == BlockKind::mtp) return no_mtp(model.blocks[b]);
    for (std::string& module : modules_of(model.blocks[b]))
      expected.push_back({std::move(module), static_cast<std::int32_t>(b)});
  }

  Partition partition;
  std::size_t next = 0;
  for (std::size_t s = 0; s < root.size(); ++s) {
    const Cursor stage = root.item(s);
    if (!stage.is_list()) return fault(stage, "expected a list of module names");
    const auto begin =
        next < expected.size() ? expected[next].block : static_cast<std::int32_t>(model.blocks.size());
    for (std::size_t i = 0; i < stage.size(); ++i, ++next) {
      TESSERA_TRY(std::string module, stage.item(i).string());
      if (module == "output") module = "lm_head";
      if (next == expected.size())
        return fault(stage.item(i), fmt::format("\"{}\" comes after the model's end", module));
      if (module != expected[next].module)
        return fault(stage.item(i),
                     fmt::format("expected \"{}\", found \"{}\"", expected[next].module, module),
                     "Modules stand in model order: tok_embeddings, layers.0, …, norm, lm_head.");
    }
    if (next > 0 && next < expected.size() && expected[next].block == expected[next - 1].block)
      return fault(stage, "the final norm and the head are in different stages; a plan keeps them together",
                   "Put \"norm\" beside \"lm_head\".");
    partition.stages.push_back({begin, next < expected.size()
                                           ? expected[next].block
                                           : static_cast<std::int32_t>(model.blocks.size())});
  }
  if (next < expected.size()) return fault(root, fmt::format("\"{}\" is in no stage", expected[next].module));
  TESSERA_CHECK(check_partition(model, partition));
  return partition;
}

}  // namespace tessera::train
