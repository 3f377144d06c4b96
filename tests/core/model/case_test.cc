// Situations from the field, each with the value that is right.
#include <gmock/gmock.h>

#include <algorithm>

#include "core/model/model_testing.h"
#include "tessera/core/model/count.h"

namespace tessera {
namespace {

using namespace testing_models;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int> layers_with(const ModelSpec& model, std::string_view wanted) {
  std::vector<int> out;
  for (const Block& block : model.blocks)
    if (block.kind == BlockKind::layer && symbol(model.layer_of(block)) == wanted) out.push_back(block.layer);
  return out;
}

const Layer& layer_at(const ModelSpec& model, std::size_t index) {
  return model.layer_of(model.blocks[index + 1]);
}

std::string handmade(const std::string& name) {
  return std::string(TESSERA_TEST_DATA) + "/handmade-configs/" + name + ".json";
}

// ------------------------------------------------------------------ no layer_types, but a rule

TEST(Case, HybridWithoutLayerList) {
  const ModelSpec next = import_config("Qwen3-Next-80B-A3B");
  EXPECT_THAT(layers_with(next, "AE"), ElementsAre(3, 7, 11, 15, 19, 23, 27, 31, 35, 39, 43, 47));
  EXPECT_EQ(layers_with(next, "GE").size(), 36U);
  for (std::size_t i = 0; i < 48; ++i) {
    const auto& moe = *layer_at(next, i).moe;
    EXPECT_EQ(moe.experts, 512);
    EXPECT_EQ(moe.top_k, 10);
    EXPECT_EQ(moe.shared_width, 512);
  }
}

TEST(Case, GemmaWindowPattern) {
  const auto gemma =
      import_text(R"({"model_type": "gemma3_text", "hidden_size": 1152, "intermediate_size": 6912,
    "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "num_hidden_layers": 26, "sliding_window": 512,
    "sliding_window_pattern": 6, "vocab_size": 262144})");
  ASSERT_TRUE(gemma) << gemma.error().text();
  EXPECT_THAT(layers_with(*gemma, "AD"), ElementsAre(5, 11, 17, 23));
  EXPECT_EQ(layers_with(*gemma, "WD").size(), 22U);
  EXPECT_EQ(count_parameters(*gemma).model.total(), 999'885'952);
}

TEST(Case, GemmaRuleUnderItsLaterNameAndAgainstTheList) {
  const std::string frame =
      R"({"model_type": "gemma3_text", "hidden_size": 64, "intermediate_size": 96, "vocab_size": 8,
    "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 16, "num_hidden_layers": 2, "sliding_window": 8,)";
  EXPECT_EQ(layer_pattern(*import_text(frame + R"("_sliding_window_pattern": 2})")), "WD AD");
  EXPECT_THAT(
      error_of(frame +
               R"("_sliding_window_pattern": 2, "layer_types": ["full_attention", "full_attention"]})"),
      HasSubstr("layer_types[0]: layer 0 is full here, but _sliding_window_pattern = 2 makes it sliding"));
  EXPECT_THAT(error_of(frame.substr(0, frame.size() - 1) + "}"),
              HasSubstr("neither layer_types nor sliding_window_pattern"));
}

TEST(Case, HybridWithoutListOrRuleIsRefused) {
  EXPECT_THAT(
      error_of(R"({"model_type": "qwen3_next", "hidden_size": 64, "vocab_size": 8, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "linear_num_key_heads": 2, "linear_num_value_heads": 2,
    "linear_key_head_dim": 16, "linear_value_head_dim": 16, "linear_conv_kernel_dim": 4})"),
      HasSubstr("neither layer_types nor full_attention_interval"));
}

// ------------------------------------------------------------------ lists with an MTP tail

std::string step_config(int entries) {
  std::string kinds;
  for (int i = 0; i < entries; ++i)
    kinds += std::string(i ? "," : "") + (i % 4 == 0 ? "\"full_attention\"" : "\"sliding_attention\"");
  return R"({"model_type": "step3p5", "hidden_size": 64, "vocab_size": 8, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 16, "num_hidden_layers": 45, "num_nextn_predict_layers": 3, "sliding_window": 8, "intermediate_size": 96,
    "first_k_dense_replace": 3, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "layer_types": [)" +
         kinds + "]}";
}

TEST(Case, LayerListWithMtpTail) {
  const auto model = import_text(step_config(48));
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(model->layers(), 45);
  EXPECT_EQ(model->mtp_blocks(), 3);
  EXPECT_EQ(symbol(layer_at(*model, 44)), "AE");
  EXPECT_EQ(symbol(layer_at(*model, 45)), "WE");  // the tail speaks for the MTP blocks
  EXPECT_EQ(
      std::ranges::count(model->notes, "layer_types has 48 entries for 45 layers: the last 3 stand for MTP."),
      1);
}

TEST(Case, LayerListWithoutTailGivesMtpTheLastKind) {
  const auto model = import_text(step_config(45));
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(model->mtp_blocks(), 3);
  EXPECT_EQ(symbol(layer_at(*model, 45)), "AE");
}

TEST(Case, LayerListOfAnotherLengthIsRefused) {
  EXPECT_THAT(error_of(step_config(47)),
              HasSubstr("layer_types: has 47 entries; expected 45 (the layers) or 48 (with 3 MTP blocks)"));
}

TEST(Case, CompressRatiosWithMtpTail) {
  TESSERA_NEED_CONFIG("DeepSeek-V4-Flash");
  const ModelSpec model = import_config("DeepSeek-V4-Flash");
  EXPECT_EQ(model.layers(), 43);
  EXPECT_EQ(model.mtp_blocks(), 1);
  EXPECT_EQ(std::get<CompressedAttention>(layer_at(model, 43).mixer).ratio, 0);
  EXPECT_EQ(std::get<CompressedAttention>(layer_at(model, 2).mixer).ratio, 4);
  EXPECT_EQ(std::get<CompressedAttention>(layer_at(model, 3).mixer).ratio, 128);
  EXPECT_EQ(model.residual_streams, 4);
  EXPECT_THAT(model.notes, testing::Contains(
                               "compress_ratios has 44 entries for 43 layers: the last one stands for MTP."));
}

// ------------------------------------------------------------------ one sublayer a block

TEST(Case, NemotronBlocksHoldOneSublayer) {
  const auto model = import_model_file(std::string(TESSERA_SOURCE) + "/data/models/Nemotron-3-Super.yaml");
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(layers_with(*model, "M2").size(), 40U);
  EXPECT_EQ(layers_with(*model, "E").size(), 40U);
  EXPECT_EQ(layers_with(*model, "A").size(), 8U);
  EXPECT_EQ(symbol(layer_at(*model, 88)), "AE");  // the MTP block
}

TEST(Case, NemotronUltraHasNoLayerCount) {
  TESSERA_NEED_CONFIG("Nemotron-3-Ultra-550B-A55B");
  const ModelSpec model = import_config("Nemotron-3-Ultra-550B-A55B");
  EXPECT_EQ(layers_with(model, "M2").size(), 48U);
  EXPECT_EQ(layers_with(model, "E").size(), 48U);
  EXPECT_EQ(layers_with(model, "A").size(), 12U);
  EXPECT_EQ(symbol(layer_at(model, 108)), "AE");
}

TEST(Case, NemotronNanoPattern) {
  TESSERA_NEED_CONFIG("Nemotron-3-Nano-30B-A3B");
  const ModelSpec model = import_config("Nemotron-3-Nano-30B-A3B");
  EXPECT_EQ(layers_with(model, "M2").size(), 23U);
  EXPECT_EQ(layers_with(model, "E").size(), 23U);
  EXPECT_EQ(layers_with(model, "A").size(), 6U);
}

TEST(Case, SequenceGivenTwiceMustAgree) {
  const std::string frame =
      R"({"model_type": "nemotron_h", "hidden_size": 64, "vocab_size": 8, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96, "mamba_num_heads": 8,)";
  EXPECT_EQ(
      error_of(frame +
               R"("hybrid_override_pattern": "M*-", "layers_block_type": ["mamba", "attention", "mlp"]})"),
      "no error");
  EXPECT_THAT(error_of(frame + R"("hybrid_override_pattern": "M*-", "layers_block_type": ["mamba", "mlp"]})"),
              HasSubstr("layers_block_type: differs from hybrid_override_pattern (2 against 3 layers)"));
  EXPECT_THAT(error_of(frame + R"("hybrid_override_pattern": "M*-", "num_hidden_layers": 4})"),
              HasSubstr("hybrid_override_pattern: 3 layers, but num_hidden_layers = 4"));
  EXPECT_THAT(error_of(frame + R"("hybrid_override_pattern": "M*X"})"),
              HasSubstr("unknown symbol 'X' at place 3"));
}

// ------------------------------------------------------------------ Infinity and NaN

TEST(Case, NonFiniteLiteralsOnlyHurtWhereUsed) {
  const auto model = import_model_file(handmade("nonfinite-literal"));
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(layer_pattern(*model), "M2 E A E");
  EXPECT_EQ(layer_at(*model, 1).moe->experts, 8);
  EXPECT_EQ(layer_at(*model, 1).moe->top_k, 2);

  const std::string frame =
      R"({"model_type": "llama", "vocab_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 96, "note": "Infinity", "unused": -Infinity, "hidden_size": )";
  EXPECT_EQ(error_of(frame + "64}"), "no error");
  EXPECT_EQ(error_of(frame + "NaN}"), "config.json:2: hidden_size: expected an integer, found NaN");
}

// ------------------------------------------------------------------ one number, many names

TEST(Case, ExpertNamesOfPublishedConfigs) {
  const auto moe = [](const std::string& name, std::size_t layer) {
    return *layer_at(import_config(name), layer).moe;
  };
  EXPECT_EQ(moe("DeepSeek-V3", 3).experts, 256);
  EXPECT_EQ(moe("DeepSeek-V3", 3).top_k, 8);
  EXPECT_EQ(moe("DeepSeek-V3", 3).shared_width, 2048);
  EXPECT_EQ(moe("gpt-oss-120b", 0).experts, 128);
  EXPECT_EQ(moe("gpt-oss-120b", 0).top_k, 4);
  TESSERA_NEED_CONFIG("gemma-4-26B-A4B");
  EXPECT_EQ(moe("gemma-4-26B-A4B", 0).experts, 128);
  EXPECT_EQ(moe("gemma-4-26B-A4B", 0).top_k, 8);
}

TEST(Case, SamplingTopKIsNoExpertCount) {
  const auto latent = import_model_file(handmade("kimi-latent"));  // has top_k: 50
  ASSERT_TRUE(latent) << latent.error().text();
  EXPECT_EQ(layer_at(*latent, 1).moe->top_k, 4);
  EXPECT_EQ(layer_at(*latent, 1).moe->shared_width, 2 * 32);
  EXPECT_EQ(layer_at(*latent, 1).moe->latent, 32);
  TESSERA_NEED_CONFIG("Kimi-K3");
  const ModelSpec model = import_config("Kimi-K3");
  EXPECT_EQ(layer_at(model, 1).moe->experts, 896);
  EXPECT_EQ(layer_at(model, 1).moe->top_k, 16);
  EXPECT_EQ(layer_at(model, 1).moe->shared_width, 2 * 3072);
}

TEST(Case, UnknownExpertSpellingListsLookAlikes) {
  const auto message =
      error_of(R"({"model_type": "mixtral", "hidden_size": 64, "vocab_size": 8, "num_hidden_layers": 2,
    "num_attention_heads": 4, "intermediate_size": 96, "nb_experts": 64, "experts_used": 4, "router_top_k": 4})");
  EXPECT_THAT(
      message,
      HasSubstr("no number of routed experts: none of num_experts, n_routed_experts, num_local_experts or "
                "moe_num_experts is given"));
  EXPECT_THAT(message, HasSubstr("Keys here that look like one: nb_experts = 64 and experts_used = 4."));
}

TEST(Case, TwoNamesWithTwoValuesAreRefused) {
  const std::string frame =
      R"({"model_type": "gpt_oss", "hidden_size": 64, "vocab_size": 8, "num_hidden_layers": 1,
    "num_attention_heads": 4, "intermediate_size": 96, "sliding_window": 8, "layer_types": ["full_attention"],)";
  EXPECT_THAT(error_of(frame + R"("num_local_experts": 8, "num_experts": 16, "num_experts_per_tok": 2})"),
              HasSubstr("num_local_experts: 8 here, but num_experts says 16"));
  EXPECT_THAT(
      error_of(frame + R"("num_local_experts": 8, "num_experts_per_tok": 2, "experts_per_token": 4})"),
      HasSubstr("experts_per_token: 4 here, but num_experts_per_tok says 2"));
}

// ------------------------------------------------------------------ layer lists from 1

std::string kimi_config(std::string_view full, std::string_view linear) {
  return std::string(
             R"({"model_type": "kimi_linear", "hidden_size": 64, "vocab_size": 8, "num_hidden_layers": 4,
    "num_attention_heads": 4, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8,
    "first_k_dense_replace": 4, "intermediate_size": 96, "linear_attn_config": {"num_heads": 4, "head_dim": 16,
    "short_conv_kernel_size": 4, "full_attn_layers": )") +
         std::string(full) + R"(, "kda_layers": )" + std::string(linear) + "}}";
}

TEST(Case, LayerListsMayCountFromOneOrZero) {
  EXPECT_EQ(layer_pattern(*import_text(kimi_config("[4]", "[1, 2, 3]"))), "KD KD KD AD");
  EXPECT_EQ(layer_pattern(*import_text(kimi_config("[3]", "[0, 1, 2]"))), "KD KD KD AD");
  EXPECT_EQ(layer_pattern(*import_text(kimi_config("[]", "[4, 3, 2, 1]"))), "KD KD KD KD");
  EXPECT_THAT(error_of(kimi_config("[4]", "[0, 1, 2, 3]")), HasSubstr("hold both 0 and 4"));
  EXPECT_THAT(error_of(kimi_config("[4]", "[1, 2]")),
              HasSubstr("layer 3 is in neither list; the two must name 1 … 4 once"));
  EXPECT_THAT(error_of(kimi_config("[3]", "[1, 2]")), HasSubstr("layer 4 is in neither list"));
  EXPECT_THAT(error_of(kimi_config("[3, 4]", "[1, 2, 3]")),
              HasSubstr("layer 3 stands in linear_attn_config.full_attn_layers too"));
  EXPECT_THAT(error_of(kimi_config("[4, 4]", "[1, 2, 3]")), HasSubstr("layer 4 is listed twice"));
  EXPECT_THAT(error_of(kimi_config("[5]", "[1, 2, 3]")), HasSubstr("5 is outside 0 … 4"));
}

TEST(Case, KimiK3LastTwoLayersAreFull) {
  TESSERA_NEED_CONFIG("Kimi-K3");
  const ModelSpec model = import_config("Kimi-K3");
  auto full = layers_with(model, "AE");
  EXPECT_EQ(full.size(), 24U);
  EXPECT_EQ(full.front(), 3);
  EXPECT_THAT(std::vector(full.end() - 3, full.end()), ElementsAre(87, 91, 92));
  EXPECT_THAT(layers_with(model, "KD"), ElementsAre(0));
  EXPECT_EQ(layers_with(model, "KE").size(), 68U);
}

// ------------------------------------------------------------------ nulls, 0/1 lists

TEST(Case, MimoNullSharedExpertsAndZeroOneLists) {
  const ModelSpec model = import_config("MiMo-V2-Flash");
  EXPECT_THAT(layers_with(model, "AD"), ElementsAre(0));
  EXPECT_THAT(layers_with(model, "AE"), ElementsAre(5, 11, 17, 23, 29, 35, 41, 47));
  EXPECT_EQ(layers_with(model, "WE").size(), 39U);
  EXPECT_EQ(layer_at(model, 1).moe->shared_width, 0);
}

TEST(Case, MimoPatternIsNoSymbolString) {
  EXPECT_THAT(
      error_of(R"({"model_type": "mimo_v2_flash", "hidden_size": 64, "vocab_size": 8, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "swa_num_attention_heads": 4, "swa_num_key_value_heads": 2,
    "sliding_window": 8, "hybrid_layer_pattern": "M*"})"),
      HasSubstr("hybrid_layer_pattern: expected a list of 0 (full) and 1 (sliding), found a string"));
}

TEST(Case, GemmaDenseAndParallelMoe) {
  const ModelSpec dense = *import_model_file(handmade("gemma4-dense"));  // num_experts: null
  EXPECT_EQ(layer_pattern(dense), "WD AD");
  const ModelSpec both = *import_model_file(handmade("gemma4-moe"));
  EXPECT_TRUE(layer_at(both, 0).dense && layer_at(both, 0).moe);
  TESSERA_NEED_CONFIG("nvidia--Gemma-4-31B-IT-NVFP4.trimmed");
  const ModelSpec large = import_config("nvidia--Gemma-4-31B-IT-NVFP4.trimmed");
  EXPECT_EQ(layers_with(large, "WD").size(), 50U);
  EXPECT_EQ(layers_with(large, "AD").size(), 10U);
  const ModelSpec sparse = import_config("gemma-4-26B-A4B");
  EXPECT_EQ(sparse.layers(), 30);
  for (std::size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(layer_at(sparse, i).dense->width, 2112);
    EXPECT_EQ(layer_at(sparse, i).moe->experts, 128);
    EXPECT_EQ(layer_at(sparse, i).moe->expert_width, 704);
  }
}

// ------------------------------------------------------------------ MoE on some layers

TEST(Case, FrequencyListIsObeyed) {
  const auto model = import_model_file(handmade("deepseek-freq-list"));
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(layer_pattern(*model), "AD AE AD AE");
}

TEST(Case, MaverickEverySecondLayer) {
  TESSERA_NEED_CONFIG("Llama-4-Maverick-17B-128E");
  const ModelSpec model = import_config("Llama-4-Maverick-17B-128E");
  const auto sparse = layers_with(model, "AE");
  ASSERT_EQ(sparse.size(), 24U);
  for (std::size_t i = 0; i < sparse.size(); ++i) EXPECT_EQ(sparse[i], static_cast<int>(2 * i + 1));
  EXPECT_EQ(layer_at(model, 1).moe->expert_width, 8192);
  EXPECT_EQ(layer_at(model, 1).moe->top_k, 1);
  EXPECT_EQ(layer_at(model, 0).dense->width, 16384);
}

// ------------------------------------------------------------------ experts differ from layer to layer

TEST(Case, ExpertCountsPerLayer) {
  const auto model = import_model_file(handmade("qwen3-per-layer-experts"));
  ASSERT_TRUE(model) << model.error().text();
  std::vector<std::int64_t> experts;
  for (std::size_t i = 0; i < 4; ++i) experts.push_back(layer_at(*model, i).moe->experts);
  EXPECT_THAT(experts, ElementsAre(8, 16, 8, 16));
  EXPECT_EQ(model->layer_types.size(), 2U);
  EXPECT_EQ(count_parameters(*model).model.routed, (8 + 16 + 8 + 16) * 3 * 64 * 32);
}

TEST(Case, ExpertsOfEveryLayerAreChecked) {
  const std::string frame =
      R"({"model_type": "qwen3_moe", "hidden_size": 64, "vocab_size": 8, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "moe_intermediate_size": 32, "num_experts_per_tok": 4, "num_experts": )";
  EXPECT_THAT(error_of(frame + "[8, 16]}"),
              HasSubstr("num_experts: has 2 entries, but the model has 3 layers"));
  EXPECT_THAT(error_of(frame + "[8, 0, 8]}"),
              HasSubstr("num_experts[1]: 0 experts, but layer 1 is a MoE layer"));
  EXPECT_THAT(error_of(frame + "[8, 2, 8]}"),
              HasSubstr("num_experts_per_tok: 4 experts per token, but layer 1 has 2"));
}

// ------------------------------------------------------------------ bounds

TEST(Case, HostileSizesAreRefused) {
  EXPECT_THAT(error_of(R"({"model_type": "llama", "hidden_size": 1e12})"),
              HasSubstr("is outside 1 … 16777216"));
  EXPECT_THAT(
      error_of(R"({"model_type": "llama", "hidden_size": 64, "vocab_size": 8, "num_hidden_layers": 5000})"),
      HasSubstr("5000 is outside 1 … 4096"));
  EXPECT_THAT(
      error_of(
          R"({"model_type": "mixtral", "hidden_size": 16777216, "vocab_size": 8, "num_hidden_layers": 4096,
    "num_attention_heads": 1, "num_local_experts": 65536, "num_experts_per_tok": 1, "intermediate_size": 16777216})"),
      HasSubstr("parameters; at most 1e+18 can be planned"));
}

}  // namespace
}  // namespace tessera
