// NVIDIA: Nemotron-H and Nemotron-3, one sublayer a block, and the Llama-Nemotron models found by
// architecture search (DeciLM), whose every block has its own shape.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "family.h"

namespace tessera::importing {

namespace {

enum Sublayer { mamba, attention, dense, moe };
constexpr std::array sublayer_names{Kind{"mamba", mamba}, Kind{"attention", attention}, Kind{"mlp", dense},
                                    Kind{"moe", moe}};

Result<std::vector<int>> from_pattern(Cursor text) {
  TESSERA_TRY(const auto pattern, text.string());
  std::vector<int> out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    switch (pattern[i]) {
      case 'M':
        out.push_back(mamba);
        break;
      case '*':
        out.push_back(attention);
        break;
      case '-':
        out.push_back(dense);
        break;
      case 'E':
        out.push_back(moe);
        break;
      default:
        return text.error(fmt::format("unknown symbol '{}' at place {} of the pattern", pattern[i], i + 1),
                          "Symbols are M (Mamba-2), * (attention), - (dense) and E (MoE).");
    }
  }
  return out;
}

Result<std::vector<int>> from_names(Cursor list) {
  if (!list.is_list())
    return list.error(fmt::format("expected a list of layer kinds, found {}", describe(list.kind())));
  if (list.size() > static_cast<std::size_t>(max_layers))
    return list.error(fmt::format("has {} entries; at most {} layers are read", list.size(), max_layers));
  std::vector<int> out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    TESSERA_TRY(const auto name, list.item(i).string());
    const auto found = std::ranges::find(sublayer_names, name, &Kind::name);
    if (found == sublayer_names.end())
      return list.item(i).error(fmt::format("unknown layer kind \"{}\"", name),
                                "This family knows mamba, attention, mlp and moe.");
    out.push_back(found->kind);
  }
  return out;
}

// The same sequence as a string of symbols, as a list of names, or as both, which must agree.
Result<std::vector<int>> read_sequence(Cursor keys, std::string_view pattern_key,
                                       std::string_view names_key) {
  const auto pattern = keys.present(pattern_key);
  const auto names = keys.present(names_key);
  if (!pattern && !names)
    return keys.error(fmt::format("neither {} nor {} is given", pattern_key, names_key));
  std::vector<int> out;
  if (pattern) {
    TESSERA_TRY(out, from_pattern(*pattern));
  }
  if (names) {
    TESSERA_TRY(const auto listed, from_names(*names));
    if (pattern && listed != out)
      return names->error(
          fmt::format("differs from {} ({} against {} layers)", pattern_key, listed.size(), out.size()),
          "Keep one of the two keys.");
    out = listed;
  }
  return out;
}

// Hugging Face's defaults for keys that a trimmed file may lack; said in a note.
Result<Mamba2> read_mamba(Draft& draft) {
  Mamba2 out;
  struct Field {
    std::string_view key;
    std::int64_t Mamba2::* member;
    std::int64_t by_default;
  };
  constexpr std::array fields{
      Field{"mamba_num_heads", &Mamba2::heads, 128}, Field{"mamba_head_dim", &Mamba2::head_dim, 64},
      Field{"ssm_state_size", &Mamba2::state, 128},  Field{"n_groups", &Mamba2::groups, 8},
      Field{"conv_kernel", &Mamba2::convolution, 4}, Field{"chunk_size", &Mamba2::chunk, 128}};
  for (const Field& field : fields) {
    TESSERA_TRY(out.*field.member, draft.keys.integer_or(field.key, 1, max_width, field.by_default));
    if (!draft.keys.present(field.key))
      draft.note(fmt::format("{} is absent; Hugging Face's default for this family, {}, is used.", field.key,
                             field.by_default));
  }
  if (out.heads % out.groups != 0)
    return draft.keys.error(
        fmt::format("n_groups = {} does not divide mamba_num_heads = {}", out.groups, out.heads));
  return out;
}

Result<MixtureOfExperts> read_common_experts(Draft& draft) {
  MixtureOfExperts out{.gated = false, .score_correction = true};
  TESSERA_TRY(out.latent, width_or_zero(draft.keys, "moe_latent_size"));
  if (draft.keys.present("n_shared_experts") || draft.keys.present("moe_shared_expert_intermediate_size")) {
    TESSERA_TRY(const auto shared, draft.keys.integer_or("n_shared_experts", 0, 4096, 1));
    if (shared > 0) {
      TESSERA_TRY(const auto one, width(draft.keys, "moe_shared_expert_intermediate_size"));
      out.shared_width = shared * one;
    }
  } else {
    draft.note("n_shared_experts and moe_shared_expert_intermediate_size are absent: no shared expert.");
  }
  TESSERA_CHECK(read_groups(draft, "n_group", out));
  return out;
}

// What the sublayers of this model are made of; read only where they occur.
struct Sublayers {
  Mamba2 mamba;
  SoftmaxAttention attention;
  DenseFeedForward dense;
  MixtureOfExperts common;
  std::optional<Experts> experts;

  Status put(int kind, std::size_t index, Layer& layer) const {
    switch (kind) {
      case Sublayer::mamba:
        layer.mixer = mamba;
        return {};
      case Sublayer::attention:
        layer.mixer = attention;
        return {};
      case Sublayer::dense:
        layer.dense = dense;
        return {};
      default:
        break;
    }
    TESSERA_TRY(layer.moe, experts_of(*experts, index, common));
    return {};
  }
};

Result<Sublayers> read_sublayers(Draft& draft, const std::vector<int>& kinds, const std::vector<int>& mtp) {
  const auto has = [&](int kind) {
    return std::ranges::find(kinds, kind) != kinds.end() || std::ranges::find(mtp, kind) != mtp.end();
  };
  Sublayers out;
  if (has(mamba)) {
    TESSERA_TRY(out.mamba, read_mamba(draft));
  }
  if (has(attention)) {
    const bool older = !draft.keys.present("head_dim") && draft.keys.present("attention_head_dim");
    TESSERA_TRY(out.attention, read_softmax(draft, {.head_dim = older ? "attention_head_dim" : "head_dim"}));
    TESSERA_TRY(out.attention.bias, draft.keys.boolean_or("attention_bias", false));
    out.attention.output_bias = out.attention.bias;
  }
  if (has(dense)) {
    TESSERA_TRY(const auto wide, width(draft.keys, "intermediate_size"));
    out.dense = {.width = wide, .gated = false};
  }
  if (has(moe)) {
    TESSERA_TRY(out.common, read_common_experts(draft));
    TESSERA_TRY(out.experts, read_experts(draft));
  }
  return out;
}

}  // namespace

Status read_nemotron_h(Draft& draft) {
  TESSERA_CHECK(read_widths(draft, false));
  TESSERA_TRY(const auto kinds, read_sequence(draft.keys, "hybrid_override_pattern", "layers_block_type"));
  const Cursor at =
      *(draft.keys.present("hybrid_override_pattern") ? draft.keys.present("hybrid_override_pattern")
                                                      : draft.keys.present("layers_block_type"));
  if (kinds.empty() || kinds.size() > static_cast<std::size_t>(max_layers))
    return at.error(fmt::format("{} layers; expected 1 … {}", kinds.size(), max_layers));
  draft.layer_count = static_cast<std::int64_t>(kinds.size());
  if (draft.keys.present("num_hidden_layers")) {
    TESSERA_TRY(const auto stated, draft.keys.required_integer("num_hidden_layers", 1, max_layers));
    if (stated != draft.layer_count)
      return at.error(fmt::format("{} layers, but num_hidden_layers = {}", draft.layer_count, stated));
  }
  TESSERA_CHECK(read_mtp_count(draft, "num_nextn_predict_layers"));
  std::vector<int> mtp;
  if (draft.mtp_count > 0) {
    TESSERA_TRY(mtp, read_sequence(draft.keys, "mtp_hybrid_override_pattern", "mtp_layers_block_type"));
    const bool pair =
        mtp.size() == 2 && (mtp[0] == mamba || mtp[0] == attention) && (mtp[1] == dense || mtp[1] == moe);
    if (mtp.empty() || (mtp.size() != 1 && !pair))
      return draft.keys.error(
          fmt::format(
              "an MTP block of {} sublayers; expected a mixer, a feed-forward, or one of each in this order",
              mtp.size()),
          "Nemotron-3 has attention + MoE, \"*E\".");
  }
  TESSERA_TRY(const auto sublayers, read_sublayers(draft, kinds, mtp));
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    if (i < kinds.size()) return sublayers.put(kinds[i], i, layer);
    for (const int kind : mtp) TESSERA_CHECK(sublayers.put(kind, i, layer));
    return {};
  });
}

namespace {

// DeciLM gives a feed-forward as a multiple of hidden: two thirds of it, up to the next multiple of 256.
std::int64_t width_of_multiple(double multiple, std::int64_t hidden) {
  const auto exact = static_cast<std::int64_t>(2 * multiple * static_cast<double>(hidden) / 3);
  return (exact + 255) / 256 * 256;
}

Status refuse_linear(Cursor part) {
  TESSERA_TRY(const bool linear, part.boolean_or("replace_with_linear", false));
  if (linear)
    return part.find("replace_with_linear")
        ->error("a sublayer replaced by a single linear layer is not modelled");
  return {};
}

}  // namespace

Status read_nemotron_nas(Draft& draft) {
  TESSERA_CHECK(read_frame(draft, false));
  TESSERA_TRY(const auto heads, width(draft.keys, "num_attention_heads"));
  if (draft.hidden % heads != 0)
    return draft.keys.find("num_attention_heads")
        ->error(fmt::format("{} does not divide hidden_size = {}", heads, draft.hidden));
  TESSERA_TRY(const bool bias, draft.keys.boolean_or("attention_bias", false));
  TESSERA_TRY(const Cursor blocks, draft.keys.required_list("block_configs"));
  TESSERA_CHECK(check_length(draft, blocks));
  return build_layers(draft, [&](std::size_t i, Layer& layer) -> Status {
    const Cursor block = blocks.item(std::min(i, blocks.size() - 1));
    TESSERA_TRY(const Cursor mixer, block.required_map("attention"));
    TESSERA_CHECK(refuse_linear(mixer));
    TESSERA_TRY(const bool no_mixer, mixer.boolean_or("no_op", false));
    if (!no_mixer) {
      TESSERA_TRY(const auto group, mixer.required_integer("n_heads_in_group", 1, max_width));
      if (heads % group != 0)
        return mixer.find("n_heads_in_group")
            ->error(fmt::format("{} does not divide num_attention_heads = {}", group, heads));
      SoftmaxAttention attention{.query_heads = heads,
                                 .kv_heads = heads / group,
                                 .head_dim = draft.hidden / heads,
                                 .value_dim = draft.hidden / heads,
                                 .bias = bias,
                                 .output_bias = bias};
      TESSERA_TRY(attention.window, width_or_zero(mixer, "window_length"));
      layer.mixer = attention;
    }
    TESSERA_TRY(const Cursor feed_forward, block.required_map("ffn"));
    TESSERA_CHECK(refuse_linear(feed_forward));
    TESSERA_TRY(const bool no_feed_forward, feed_forward.boolean_or("no_op", false));
    if (!no_feed_forward) {
      TESSERA_TRY(const auto multiple, feed_forward.required_number("ffn_mult", 1e-3, 256));
      layer.dense = DenseFeedForward{.width = width_of_multiple(multiple, draft.hidden)};
    }
    return {};
  });
}

}  // namespace tessera::importing
