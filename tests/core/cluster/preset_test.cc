#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/core/cluster/cluster.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

Result<Cluster> read(std::string_view yaml) {
  auto document = Document::parse(yaml, "job.yaml", DocumentFormat::yaml);
  if (!document) return std::unexpected(document.error());
  return read_cluster(document->root());
}

TEST(Preset, KnowsTheCommonDevices) {
  EXPECT_THAT(cluster_preset_names(), IsSupersetOf({"A100", "H100", "H800", "H200", "H20", "B200", "B300",
                                                    "GB200", "GB300", "MI300X", "Ascend910C"}));
}

TEST(Preset, HasThePublishedFigures) {
  const auto h100 = cluster_preset("H100");
  ASSERT_TRUE(h100) << h100.error().text();
  EXPECT_DOUBLE_EQ(h100->gpu.peak_of(Dtype::bf16).value(), 989e12);
  EXPECT_DOUBLE_EQ(h100->gpu.peak_of(Dtype::fp8).value(), 1978e12);
  EXPECT_DOUBLE_EQ(h100->gpu.peak_of(Dtype::nvfp4).value(), 0);
  EXPECT_DOUBLE_EQ(h100->gpu.memory.value(), 80e9);
  EXPECT_EQ(h100->gpu.multiprocessors, 132);
  EXPECT_DOUBLE_EQ(h100->fabric.scale_up_bandwidth.value(), 450e9);
  EXPECT_EQ(h100->fabric.communication_multiprocessors, 20);
  ASSERT_EQ(h100->gpu.relatives.size(), 1u);
  EXPECT_EQ(h100->gpu.relatives[0].device, "H200");
}

TEST(Preset, H800IsAnH100WithItsOwnFabric) {
  const auto h800 = cluster_preset("H800");
  ASSERT_TRUE(h800);
  EXPECT_DOUBLE_EQ(h800->fabric.scale_up_bandwidth.value() * h800->fabric.scale_up_efficiency, 160e9);
  ASSERT_EQ(h800->gpu.relatives.size(), 2u);
  EXPECT_EQ(h800->gpu.relatives[0].device, "H100");
  EXPECT_FALSE(h800->gpu.relatives[0].fabric);
}

TEST(Preset, ScalesGb300FromB200ByTheRatioOfPeaks) {
  const auto gb300 = cluster_preset("GB300");
  const auto b200 = cluster_preset("B200");
  ASSERT_TRUE(gb300 && b200);
  EXPECT_NEAR(gb300->gpu.relatives.back().time_factor,
              b200->gpu.peak_of(Dtype::bf16).value() / gb300->gpu.peak_of(Dtype::bf16).value(), 1e-3);
}

TEST(Preset, AnUnknownOneListsAll) {
  const auto unknown = read("preset: H1000\ngpus: 8\n");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().text(),
            "job.yaml:1: preset: no GPU preset is called H1000\n"
            "  Presets are A100, H100, H800, H200, H20, B200, B300, GB200, GB300, MI300X and Ascend910C.");
}

TEST(ReadCluster, OverridesAnyField) {
  const auto cluster =
      read("preset: H100\ngpus: 20\nscale_out_gb: 25\nmemory_gb: 96\nrank_speed: [1, 0.5]\n");
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_EQ(cluster->gpus, 20);
  EXPECT_EQ(cluster->nodes(), 3);
  EXPECT_DOUBLE_EQ(cluster->fabric.scale_out_bandwidth.value(), 25e9);
  EXPECT_DOUBLE_EQ(cluster->gpu.memory.value(), 96e9);
  EXPECT_THAT(cluster->rank_speed, ::testing::ElementsAre(1.0, 0.5));
  EXPECT_FALSE(cluster->fabric.has_tables);
  EXPECT_EQ(cluster->gpu.name, "H100") << "memory and links leave the compute tables valid";
}

TEST(ReadCluster, AFasterGpuIsNoLongerTheMeasuredOne) {
  const auto cluster = read("preset: H100\ngpus: 8\nbf16_tflops: 1200\n");
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->gpu.name, "modified H100");
  EXPECT_TRUE(cluster->gpu.relatives.empty());
}

TEST(ReadCluster, LeavesComputeAMultiprocessor) {
  EXPECT_EQ(
      read("preset: H100\ngpus: 8\ncommunication_multiprocessors: 132\n").error().text(),
      "job.yaml:3: communication_multiprocessors: communication takes 132 of the 132 multiprocessors of a "
      "H100\n  Compute needs at least one: communication_multiprocessors can be 0 to 131.");
  EXPECT_THAT(read("preset: H100\nmultiprocessors: 16\ngpus: 8\n").error().text(),
              HasSubstr("job.yaml:2: multiprocessors: communication takes 20 of the 16 multiprocessors"));
  EXPECT_TRUE(read("preset: H100\ngpus: 8\ncommunication_multiprocessors: 131\n"));
}

TEST(ReadCluster, RefusesBadValues) {
  EXPECT_THAT(read("preset: H100\n").error().text(), HasSubstr("key gpus is missing"));
  EXPECT_THAT(read("preset: H100\ngpus: 8\nscale_out: 3\n").error().text(), HasSubstr("unknown key"));
  EXPECT_THAT(read("preset: H100\ngpus: 8\nscale_out_gb: -3\n").error().text(),
              HasSubstr("job.yaml:3: scale_out_gb: -3 is outside"));
  EXPECT_THAT(read("preset: H100\ngpus: 8\nrank_speed: 2\n").error().text(), HasSubstr("expected a list"));
}

}  // namespace
}  // namespace tessera
