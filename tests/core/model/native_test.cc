// The native format: every mixer, groups and names, and the errors of a slip.
#include <gmock/gmock.h>

#include "core/model/model_testing.h"
#include "tessera/core/model/count.h"

namespace tessera {
namespace {

using namespace testing_models;
using testing::HasSubstr;

TEST(Native, EveryMixer) {
  const auto model = import_model_file(std::string(TESSERA_TEST_DATA) + "/native-models/everything.yaml");
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(model->name, "everything");
  EXPECT_EQ(model->family, "native");
  EXPECT_EQ(layer_pattern(*model), "WD AE A G K M1 M2 L C E");
  EXPECT_TRUE(model->tied_embeddings);
  EXPECT_EQ(count_parameters(*model).model.head, 0);
  const auto& softmax = std::get<SoftmaxAttention>(model->layer_types[0].mixer);
  EXPECT_EQ(softmax.value_dim, 16);
  EXPECT_TRUE(softmax.output_gate && softmax.bias && softmax.query_key_norm && softmax.sinks);
  EXPECT_EQ(std::get<LatentAttention>(model->layer_types[1].mixer).indexer->top_k, 4);
}

TEST(Native, GroupsRepeatAndKindsAreNamed) {
  const auto model = import_text(R"(
hidden: 64
vocabulary: 128
kinds:
  G: {mixer: {kind: gated_delta_net, key_heads: 2, value_heads: 4, key_dim: 16, value_dim: 16, convolution: 4}, dense: {width: 96}}
  A: {mixer: {kind: softmax, query_heads: 4}, dense: {width: 96}}
layers:
  - repeat: 2
    layers: [{repeat: 3, layers: [G]}, A]
  - {mixer: {kind: softmax, query_heads: 4, window: 8}, dense: {width: 96}, repeat: 2}
mtp: [A]
)",
                                 DocumentFormat::yaml);
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(layer_pattern(*model), "GD GD GD AD GD GD GD AD WD WD");
  EXPECT_EQ(model->mtp_blocks(), 1);
  EXPECT_EQ(model->blocks[11].kind, BlockKind::mtp);
  EXPECT_EQ(model->blocks[11].layer, 10);
}

std::string layers_error(std::string_view layers) {
  return error_of("hidden: 64\nvocabulary: 8\nlayers: " + std::string(layers) + "\n", DocumentFormat::yaml);
}

TEST(Native, ErrorsOfASlip) {
  EXPECT_EQ(layers_error("[{mixer: {kind: softmaks, query_heads: 4}}]"),
            "config.json:3: layers[0].mixer.kind: unknown mixer \"softmaks\"\n  Known are softmax, latent, "
            "compressed, "
            "gated_delta_net, kimi_delta, mamba1, mamba2, lightning and short_convolution.");
  EXPECT_EQ(layers_error("[{mixer: {kind: softmax, query_head: 4}}]"),
            "config.json:3: layers[0].mixer.query_head: unknown key\n  Did you mean query_heads?");
  EXPECT_EQ(layers_error("[{mixer: {kind: softmax, query_heads: 4, kv_heads: 3}}]"),
            "config.json:3: layers[0].mixer.kv_heads: 3 does not divide query_heads = 4");
  EXPECT_EQ(layers_error("[{}]"),
            "config.json:3: layers[0]: an empty layer; expected a mixer, a dense part, a moe part, or "
            "several of them");
  EXPECT_EQ(layers_error("[X]"),
            "config.json:3: layers[0]: no layer is named \"X\"\n  Named layers stand under the key kinds.");
  EXPECT_EQ(layers_error("[]"), "config.json:3: layers: a model has at least one layer");
  EXPECT_EQ(layers_error("[{dense: {width: 8}, repeat: 5000}]"),
            "config.json:3: layers[0].repeat: 5000 is outside 1 … 4096");
  EXPECT_EQ(layers_error("[{layers: [{dense: {width: 8}, repeat: 4096}], repeat: 4096}]"),
            "config.json:3: layers[0]: more than 4096 layers");
  EXPECT_EQ(layers_error("[{moe: {experts: 4, top_k: 5, expert_width: 8}}]"),
            "config.json:3: layers[0].moe.top_k: 5 experts per token, but experts = 4");
  EXPECT_EQ(layers_error("[{moe: {experts: 6, top_k: 2, expert_width: 8, groups: 4}}]"),
            "config.json:3: layers[0].moe.groups: 4 does not divide experts = 6");
}

}  // namespace
}  // namespace tessera
