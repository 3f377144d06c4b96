#include "tessera/core/model/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "family.h"
#include "import_native.h"
#include "tessera/core/base/text.h"

namespace tessera {

namespace {

using namespace importing;

struct Family {
  std::string_view model_type;
  Reader read;
};

// Sorted. A wrapper's model_type stands beside its language model's, for configs that drop the inner one.
constexpr std::array families{
    Family{"bailing_moe_linear", read_bailing_linear},
    Family{"bamba", read_bamba},
    Family{"deepseek_v2", read_deepseek_v2},
    Family{"deepseek_v3", read_deepseek_v3},
    Family{"deepseek_v32", read_deepseek_v32},
    Family{"deepseek_v4", read_deepseek_v4},
    Family{"gemma3", read_gemma3},
    Family{"gemma3_text", read_gemma3},
    Family{"gemma4", read_gemma4},
    Family{"gemma4_text", read_gemma4},
    Family{"glm4_moe", read_glm4_moe},
    Family{"glm_moe_dsa", read_glm_moe_dsa},
    Family{"gpt_oss", read_gpt_oss},
    Family{"granitemoehybrid", read_granite_hybrid},
    Family{"jamba", read_jamba},
    Family{"kimi_k2", read_deepseek_v3},
    Family{"kimi_k25", read_deepseek_v3},
    Family{"kimi_k3", read_kimi_linear},
    Family{"kimi_linear", read_kimi_linear},
    Family{"lfm2_moe", read_lfm2_moe},
    Family{"llama", read_llama},
    Family{"llama4", read_llama4},
    Family{"llama4_text", read_llama4},
    Family{"mimo_v2_flash", read_mimo_v2},
    Family{"minimax", read_minimax_linear},
    Family{"minimax_m1", read_minimax_linear},
    Family{"minimax_m2", read_minimax_m2},
    Family{"minimax_m3", read_minimax_m3},
    Family{"minimax_text_01", read_minimax_linear},
    Family{"mistral", read_llama},
    Family{"mixtral", read_mixtral},
    Family{"nemotron-nas", read_nemotron_nas},
    Family{"nemotron_h", read_nemotron_h},
    Family{"qwen2", read_qwen_dense},
    Family{"qwen2_moe", read_qwen2_moe},
    Family{"qwen3", read_qwen_dense},
    Family{"qwen3_5", read_qwen3_5},
    Family{"qwen3_5_moe", read_qwen3_5_moe},
    Family{"qwen3_5_moe_text", read_qwen3_5_moe},
    Family{"qwen3_5_text", read_qwen3_5},
    Family{"qwen3_moe", read_qwen3_moe},
    Family{"qwen3_next", read_qwen3_next},
    Family{"qwen3_vl_moe", read_qwen3_moe},
    Family{"qwen3_vl_moe_text", read_qwen3_moe},
    Family{"step3p5", read_step},
    Family{"step3p7", read_step},
};
static_assert(std::ranges::is_sorted(families, {}, &Family::model_type));

constexpr auto names = [] {
  std::array<std::string_view, families.size()> out{};
  std::ranges::transform(families, out.begin(), &Family::model_type);
  return out;
}();

Result<ModelSpec> import_config(Cursor root, std::string name) {
  Draft draft{.keys = root};
  if (const auto text = root.present("text_config")) {
    if (!text->is_map()) return text->error(fmt::format("expected a map, found {}", describe(text->kind())));
    draft.keys = *text;
    draft.wrapper = root;
    draft.note(
        "Only the language model under text_config is read; encoders of other media are not part of the "
        "plan.");
  }
  const Cursor typed = draft.keys.present("model_type") ? draft.keys : root;
  TESSERA_TRY(const auto type, typed.required_string("model_type"));
  const auto family = std::ranges::find(families, type, &Family::model_type);
  if (family == families.end()) {
    const auto guess = nearest(type, names);
    const std::vector<std::string> known(names.begin(), names.end());
    return typed.find("model_type")
        ->error(
            fmt::format("unknown family \"{}\"", type),
            fmt::format("{}Known are {}.\nA model of another family can be described in the native format "
                        "(docs/model-file.md).",
                        guess ? fmt::format("Did you mean {}? ", *guess) : "", join_words(known)));
  }
  TESSERA_CHECK(family->read(draft));
  return assemble(std::move(draft), std::move(name), type);
}

}  // namespace

Result<ModelSpec> import_model(Cursor root, std::string name) {
  if (!root.is_map())
    return root.error(fmt::format("expected a model description (a map), found {}", describe(root.kind())));
  // Some configs of the Hub have a key `layers` of their own; none of them lacks model_type.
  if (root.find("layers") && !root.find("model_type")) return import_native(root, std::move(name));
  return import_config(root, std::move(name));
}

Result<ModelSpec> import_model_file(const std::string& path) {
  TESSERA_TRY(const Document document, Document::read(path));
  return import_model(document.root(), std::filesystem::path(path).stem().string());
}

std::span<const std::string_view> known_families() noexcept {
  return names;
}

}  // namespace tessera
