// Keys: equal where the measurement is the same, different where it is not, and readable.
#include "tessera/train/planner/profile_keys.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "tessera/core/model/import.h"

namespace tessera::train {
namespace {

Job job_with(const std::string& layout = "", const std::string& more = "",
             const std::string& cluster = "preset: H100, gpus: 64",
             const std::string& model = "Qwen3-Next-80B-A3B") {
  const std::string text = "model: ../data/models/" + model + ".json\ncluster: {" + cluster +
                           "}\nlayout: {pp: 4, vp: 2, ep: 16, microbatches: 16, sequence: 4096" + layout +
                           "}\n" + more;
  const auto document = Document::parse(text, "job.yaml", DocumentFormat::yaml);
  auto job = read_job(*document, TESSERA_SOURCE "/examples");
  EXPECT_TRUE(job) << job.error().text();
  return *std::move(job);
}

// Blocks 1 … 4 of Qwen3-Next are three Gated DeltaNet layers and a softmax one.
ProfileKey key_of(const Job& job, double speed = 1, PairKey pair = {{0, 1, 1}, {1, 2}}) {
  const auto cost = price_model({.model = &job.model,
                                 .cluster = &job.cluster,
                                 .layout = &job.layout,
                                 .software = job.software,
                                 .constants = job.constants});
  EXPECT_TRUE(cost);
  const ProfileKeys keys(job, *cost);
  return {keys.mesh(speed), keys.pair(pair),
          schedule_hash(std::vector<std::string>{"F_ATTN:L0", "B_ATTN:L0"}), keys.software()};
}

TEST(ProfileKeys, SayWhatTheyAreOf) {
  const ProfileKey key = key_of(job_with());
  EXPECT_EQ(
      key.mesh,
      "gpu=H100 bf16=989e12 hbm=3350e9 sms=132 domain=8 up=450e9 out=50e9 tp=1 cp=1 ep=16 etp=1 nodes=2 "
      "speed=1");
  EXPECT_EQ(key.pair,
            "F[embedding(vocabulary=151936), "
            "2*gdn(key_heads=16,value_heads=32,key_dim=128,value_dim=128,convolution=4)+"
            "moe(experts=512,top_k=10,width=512,shared=512,gated=1,shared_gate=1)] "
            "B[gdn(key_heads=16,value_heads=32,key_dim=128,value_dim=128,convolution=4)+"
            "moe(experts=512,top_k=10,width=512,shared=512,gated=1,shared_gate=1), "
            "softmax(query_heads=16,kv_heads=2,head_dim=256,value_dim=256,output_gate=1,query_key_norm=1)+"
            "moe(experts=512,top_k=10,width=512,shared=512,gated=1,shared_gate=1)] "
            "hidden=2048 sequences=1 sequence=4096 dtype=bf16");
  EXPECT_EQ(key.schedule, schedule_hash(std::vector<std::string>{"F_ATTN:L0", "B_ATTN:L0"}));
  EXPECT_EQ(key.schedule.size(), 16U);
  EXPECT_EQ(key.software,
            "graphs=none dispatcher=deduplicated ep_sms=20 fused_mlp=0 expert_overlap=0 "
            "shared_beside_dispatch=0 fp8_attention=0 fp8_dispatch=0 expert_bias_loop=0 bf16_gradients=0 "
            "low_precision_weights=0");
}

TEST(ProfileKeys, DoNotDependOnCopiesPipelineOrConstants) {
  const ProfileKey key = key_of(job_with());
  EXPECT_EQ(key_of(job_with("", "", "preset: H100, gpus: 512")), key);
  Job pipeline = job_with();
  pipeline.layout.pp = 8;
  pipeline.layout.vp = 1;
  pipeline.layout.microbatches = 64;
  EXPECT_EQ(key_of(pipeline), key);
  EXPECT_EQ(key_of(job_with("", "cost: {constants: {memory_traffic: 2}, tables: false}\n")), key);
  EXPECT_EQ(key_of(job_with("", "software: {distributed_optimizer: false, bf16_moments: true}\n")), key);
}

TEST(ProfileKeys, TellOtherMeasurementsApart) {
  std::set<ProfileKey> keys{key_of(job_with())};
  const auto expect_new = [&](const ProfileKey& key) { EXPECT_TRUE(keys.insert(key).second) << key.mesh; };
  expect_new(key_of(job_with("", "", "preset: H800, gpus: 64")));
  expect_new(key_of(job_with("", "", "preset: H100, gpus: 64, scale_out_gb: 25")));
  expect_new(key_of(job_with("", "", "preset: H100, gpus: 64, memory_bandwidth_tb: 3")));
  expect_new(key_of(job_with(", tp: 2")));
  expect_new(key_of(job_with(", cp: 2")));
  expect_new(key_of(job_with(", etp: 1, recompute: [norm]")));
  expect_new(key_of(job_with(", microbatch_size: 2")));
  expect_new(key_of(job_with(", dtype: fp8")));
  expect_new(key_of(job_with("", "software: {cuda_graphs: layer}\n")));
  expect_new(key_of(job_with("", "software: {dispatcher: all_to_all}\n")));
  expect_new(key_of(job_with("", "software: {bf16_gradients: true}\n")));
  expect_new(key_of(job_with(), 0.5));
  expect_new(key_of(job_with(), 1, {{1, 2}, {0, 1, 1}}));
  expect_new(key_of(job_with(), 1, {{}, {1, 2}}));
  expect_new(key_of(job_with(), 1, {{0, 1, 1}, {2, 1}}));
  expect_new(key_of(job_with(", recompute: {GE: norm}")));
  expect_new(key_of(job_with(", recompute: {GE: [norm, moe]}")));
  expect_new(key_of(job_with(", offload: {GE: 0.5}")));
  Job longer = job_with();
  longer.layout.sequence = 8192;
  expect_new(key_of(longer));
  Job wider = job_with();
  std::get<GatedDeltaNet>(wider.model.layer_types[0].mixer).value_heads = 64;
  expect_new(key_of(wider));
}

// No two blocks of different types in one model share their words, so no two of its pairs share a key.
TEST(ProfileKeys, EveryLayerTypeHasWordsOfItsOwn) {
  const std::filesystem::path folder = TESSERA_SOURCE "/data/models";
  int models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().filename());
    Job job = job_with();
    const auto model = import_model_file(entry.path().string());
    ASSERT_TRUE(model) << model.error().text();
    job.model = *model;
    // Prices are of no interest here, only which blocks are of one kind.
    ModelCost cost;
    std::map<std::pair<BlockKind, std::int32_t>, std::int32_t> kinds;
    for (const Block& block : job.model.blocks)
      cost.kind_of_block.push_back(
          kinds.try_emplace({block.kind, block.type}, static_cast<std::int32_t>(kinds.size())).first->second);
    cost.kinds.resize(kinds.size());
    const ProfileKeys keys(job, cost);
    std::set<std::string> words;
    for (const auto& [type, kind] : kinds) words.insert(keys.pair({{kind}, {}}));
    EXPECT_EQ(words.size(), kinds.size());
    ++models;
  }
  EXPECT_GE(models, 8);
}

}  // namespace
}  // namespace tessera::train
