// Parameter counts: exact where the exact number is published, to the printed digits where that is what there
// is.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/model/model_testing.h"
#include "tessera/core/model/count.h"

namespace tessera {
namespace {

using namespace testing_models;

std::string billions(std::int64_t parameters) {
  return fmt::format("{:.2f}", static_cast<double>(parameters) / 1e9);
}

TEST(Parameters, DeepSeekV3Exactly) {
  const ModelSpec model = import_config("DeepSeek-V3");
  const ModelParameters count = count_parameters(model);
  EXPECT_EQ(count.model.total(), 671'026'419'200);
  EXPECT_EQ(count.model.active(), 37'552'297'472);
  const ParameterCount dense = count_parameters(model, model.layer_types[0]);
  EXPECT_EQ(dense.mixer, 187'107'328);  // with the norms of the two latents
  EXPECT_EQ(dense.dense, 396'361'728);
  const ParameterCount moe = count_parameters(model, model.layer_types[1]);
  EXPECT_EQ(moe.routed, 256LL * 44'040'192);
  EXPECT_EQ(moe.shared, 44'040'192);
  EXPECT_EQ(moe.router, 256 * 7168 + 256);
  EXPECT_EQ(moe.routed + moe.shared + moe.router, 11'320'164'608);
  EXPECT_EQ(moe.routed_active, 8LL * 44'040'192);
  EXPECT_EQ(moe.norms, 2 * 7168);
  EXPECT_EQ(count.model.embedding, 129280LL * 7168);
  EXPECT_EQ(count.model.head, 129280LL * 7168);
  EXPECT_EQ(count.mtp.projection, 2LL * 7168 * 7168 + 3 * 7168);
}

TEST(Parameters, PublishedCheckpointsExactly) {
  EXPECT_EQ(count_parameters(import_config("Kimi-Linear-48B-A3B")).model.total(), 49'122'681'728);
  EXPECT_EQ(count_parameters(import_config("Kimi-Linear-48B-A3B")).model.matrices(), 49'122'459'648);
  EXPECT_EQ(count_parameters(import_config("Qwen3-30B-A3B")).model.total(), 30'532'122'624);
  EXPECT_EQ(count_parameters(import_config("Qwen3-235B-A22B")).model.total(), 235'093'634'560);
}

TEST(Parameters, Gemma3Exactly) {
  TESSERA_NEED_CONFIG("google--gemma-3-1b-it.reported-fields");
  EXPECT_EQ(count_parameters(import_config("google--gemma-3-1b-it.reported-fields")).model.total(),
            999'885'952);
}

TEST(Parameters, LlamaNemotronSuper) {
  TESSERA_NEED_CONFIG("nvidia--Llama-3_3-Nemotron-Super-49B-v1");
  const auto total = count_parameters(import_config("nvidia--Llama-3_3-Nemotron-Super-49B-v1")).model.total();
  EXPECT_EQ(total, 49'867'145'216);  // 49.9 B on the Hub
}

class PublishedTotal : public testing::TestWithParam<std::string> {};

TEST_P(PublishedTotal, MeetsTheGoldens) {
  const Document goldens = read_golden("goldens.yaml");
  const Cursor golden = *goldens.root().find("models")->find(GetParam());
  TESSERA_NEED_CONFIG(GetParam());
  const ModelParameters count = count_parameters(import_config(GetParam()));
  if (golden.find("matrices")) {
    EXPECT_EQ(billions(count.model.matrices()), *golden.required_string("matrices"));
    EXPECT_EQ(billions(count.model.active()), *golden.required_string("active"));
  }
  if (golden.find("mtp")) {
    EXPECT_EQ(billions(count.mtp.total()), *golden.required_string("mtp"));
  }
  ASSERT_TRUE(golden.required_string("source"))
      << "every model names the source of its total, or \"none found\"";
  if (const auto published = golden.find("published")) {
    const double stated = *published->number(0, 1e4) * 1e9;
    const bool with_mtp = GetParam() == "DeepSeek-V4-Pro";
    const auto ours = static_cast<double>(count.model.total() + (with_mtp ? count.mtp.total() : 0));
    EXPECT_NEAR(ours / stated, 1, 0.01) << *golden.required_string("source");
  } else {
    EXPECT_THAT(*golden.required_string("source"),
                testing::AnyOf(testing::StartsWith("none found"), "as Kimi-K2"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, PublishedTotal, testing::ValuesIn(published_names()), test_name);

// Every other printed golden is the same with or without vectors; gpt-oss has 40 M expert biases.
TEST(Parameters, GptOssTotalHoldsItsBiases) {
  const ModelParameters count = count_parameters(import_config("gpt-oss-120b"));
  EXPECT_EQ(billions(count.model.total()), "116.83");  // the model card's number, arXiv:2508.10925
  EXPECT_EQ(billions(count.model.matrices()), "116.79");
}

// A tiny model by hand: norms with bias, no gates, untied; router weights are counted (2·experts·hidden more
// than a count without them).
TEST(Parameters, TinyModelByHand) {
  constexpr std::string_view frame = R"(
hidden: 16
vocabulary: 32
norm_bias: true
kinds:
  D: {mixer: &a {kind: softmax, query_heads: 4}, dense: {width: 64, gated: false}}
  E: {mixer: *a, moe: {experts: 2, top_k: 1, expert_width: 32, gated: false}}
layers: )";
  const auto dense = import_text(std::string(frame) + "[{repeat: 8, layers: [D]}]\n", DocumentFormat::yaml);
  ASSERT_TRUE(dense) << dense.error().text();
  EXPECT_EQ(count_parameters(*dense, dense->layer_types[0]).total(),
            4 * 16 * 16 + 2 * 16 * 64 + 64);  // 3,136
  const ParameterCount head = count_parameters(*dense, dense->blocks.back());
  EXPECT_EQ(head.total(), 32 + 32 * 16);  // final norm and output matrix
  EXPECT_EQ(3 * 3136 + head.total(), 9952);

  const auto mixed = import_text(std::string(frame) + "[D, E, D, D, E, D, E, E]\n", DocumentFormat::yaml);
  ASSERT_TRUE(mixed) << mixed.error().text();
  const ParameterCount total = count_parameters(*mixed).model;
  EXPECT_EQ(total.routed, 4 * 2 * 2 * 16 * 32);  // 8,192: the frequency list is obeyed
  ParameterCount stage;                          // the last stage: layers 5, 6 and 7, and the head
  for (std::size_t i = 6; i < mixed->blocks.size(); ++i) stage += count_parameters(*mixed, mixed->blocks[i]);
  EXPECT_EQ(stage.routed, 4096);
  EXPECT_EQ(stage.total() - stage.routed - stage.router, 5856);
  EXPECT_EQ(stage.router, 2 * 32);
}

TEST(Parameters, ActiveIsTotalWithoutIdleExperts) {
  const ModelSpec model = import_config("Qwen3-Next-80B-A3B");
  const ParameterCount count = count_parameters(model).model;
  EXPECT_EQ(count.total() - count.active(), 48LL * (512 - 10) * 3 * 2048 * 512);
  EXPECT_EQ(count.embedding, 151936LL * 2048);
}

TEST(Parameters, SharedIndexersHaveNoWeights) {
  const ModelSpec model =
      *import_model_file(std::string(TESSERA_TEST_DATA) + "/handmade-configs/glm-dsa-shared-indexers.json");
  const auto own = count_parameters(model, model.layer_of(model.blocks[3])).mixer;
  const auto shared = count_parameters(model, model.layer_of(model.blocks[2])).mixer;
  EXPECT_EQ(own - shared, 24 * 2 * 8 + 64 * 8 + 64 * 2 + 2 * 8);
}

}  // namespace
}  // namespace tessera
