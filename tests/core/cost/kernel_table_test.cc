#include "tessera/core/cost/kernel_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

namespace tessera {
namespace {

using testing::HasSubstr;

Gpu gpu(std::string name, std::vector<TableRelative> relatives = {}) {
  Gpu out;
  out.name = std::move(name);
  out.relatives = std::move(relatives);
  return out;
}

const KernelTable& table() {
  return KernelTable::builtin();
}

bool only(const Estimate& estimate, Provenance source) {
  return estimate.by_source[static_cast<std::size_t>(source)] == estimate.time;
}

TEST(KernelTable, HoldsTheShippedRows) {
  EXPECT_EQ(table().rows(), 3873U);
}

TEST(KernelTable, GivesMeasuredPointsBack) {
  const auto at = [](const std::optional<Estimate>& estimate) {
    EXPECT_TRUE(estimate && only(*estimate, Provenance::table));
    return estimate ? microseconds(estimate->time) : 0;
  };
  EXPECT_NEAR(at(table().gemm(gpu("H200"), Dtype::bf16, 4096, 4096, 7168)), 365.66, 1e-6);
  EXPECT_NEAR(at(table().gemm(gpu("B200"), Dtype::fp8, 8192, 7168, 16384)), 927.95, 1e-6);
  EXPECT_NEAR(at(table().attention(gpu("H100"), 32, 4, 128, 4096, 1)), 243.92, 1e-6);
  EXPECT_NEAR(at(table().expert_dispatch(gpu("H100"), 7168, 8, 256, 4096, 20)), 492.16, 1e-6);
  EXPECT_NEAR(at(table().expert_combine(gpu("H100"), 7168, 8, 256, 4096, 20)), 982.68, 1e-6);
  EXPECT_NEAR(at(table().gated_delta_net(gpu("H100"), 16, 32, 128, 4096, 1)), 61.70 + 513.39, 1e-6);
  EXPECT_NEAR(at(table().kimi_delta(gpu("H100"), 96, 128, 8192, 1)), 684.42 + 996.16, 1e-6);
  // Measured twice: 2112.02 and 2111.43.
  EXPECT_NEAR(at(table().collective(gpu("H100"), KernelTable::Collective::all_reduce, 8, 2.0 * 268435456)),
              std::sqrt(2112.02 * 2111.43), 1e-6);
}

TEST(KernelTable, GrowsWithTokensWhereTheMeasurementsDo) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp8, Dtype::nvfp4}) {
    Seconds previous;
    for (double m = 512; m <= 32768; m *= 1.07) {
      const auto estimate = table().gemm(gpu("B200"), dtype, m, 6144, 4096);
      ASSERT_TRUE(estimate);
      EXPECT_GT(estimate->time, previous) << static_cast<int>(dtype) << " at " << m;
      previous = estimate->time;
    }
  }
  for (const char* device : {"H100", "B200"}) {
    Seconds previous;
    for (double s = 512; s <= 262144; s *= 1.07) {
      const auto estimate = table().attention(gpu(device), 40, 8, 128, s, 1);
      ASSERT_TRUE(estimate);
      EXPECT_GT(estimate->time, previous) << device << " at " << s;
      previous = estimate->time;
    }
  }
}

TEST(KernelTable, StaysBetweenNeighboursOfASmoothSeries) {
  const auto time = [](double s) {
    return table().gated_delta_net(gpu("B200"), 16, 64, 128, s, 1)->time.value();
  };
  for (const double s : {1024.0, 2048.0, 4096.0, 8192.0}) {
    const double middle = time(s * 1.5);
    EXPECT_GT(middle, time(s));
    EXPECT_LT(middle, time(2 * s));
    EXPECT_NEAR(middle / (0.5 * (time(s) + time(2 * s))), 1, 0.04) << "linear in tokens";
  }
}

TEST(KernelTable, ScalesARelativesTable) {
  const auto own = table().attention(gpu("H100"), 32, 4, 128, 4096, 1);
  const auto same = table().attention(gpu("H800", {{"H100"}}), 32, 4, 128, 4096, 1);
  const auto slower = table().attention(gpu("X", {{"H100", 1.25}}), 32, 4, 128, 4096, 1);
  ASSERT_TRUE(own && same && slower);
  EXPECT_EQ(same->time, own->time);
  EXPECT_TRUE(only(*same, Provenance::scaled_table));
  EXPECT_GT(same->error, own->error);
  EXPECT_DOUBLE_EQ(slower->time / own->time, 1.25);
  // H100 has no GEMM rows: a second relative is asked when the first has none.
  const auto h200 = table().gemm(gpu("H200"), Dtype::bf16, 4096, 4096, 4096);
  const auto h800 = table().gemm(gpu("H800", {{"H100"}, {"H200"}}), Dtype::bf16, 4096, 4096, 4096);
  ASSERT_TRUE(h200 && h800);
  EXPECT_EQ(h800->time, h200->time);
  EXPECT_TRUE(only(*h800, Provenance::scaled_table));
  EXPECT_FALSE(table().gemm(gpu("H800", {{"H100"}}), Dtype::bf16, 4096, 4096, 4096));
  // A relative with another fabric lends its compute only.
  const Gpu compute_only = gpu("H800", {{"H100", 1.0, "", false}});
  EXPECT_TRUE(table().attention(compute_only, 32, 4, 128, 4096, 1));
  EXPECT_FALSE(table().expert_dispatch(compute_only, 7168, 8, 256, 4096, 20));
  EXPECT_FALSE(table().collective(compute_only, KernelTable::Collective::all_reduce, 8, 1e8));
  // Own rows come before a relative's.
  EXPECT_TRUE(only(*table().expert_dispatch(gpu("GB200", {{"B200", 0.9}}), 7168, 8, 256, 4096, 20),
                   Provenance::table));
}

TEST(KernelTable, ExtendsBeyondTheEndByTheEfficiencyThere) {
  // Far out a GEMM's time is proportional to its operations.
  const auto end = table().gemm(gpu("B200"), Dtype::bf16, 8192, 8192, 8192);
  const auto far = table().gemm(gpu("B200"), Dtype::bf16, 8192 * 16, 8192, 8192);
  ASSERT_TRUE(end && far);
  EXPECT_TRUE(only(*far, Provenance::extended_table));
  EXPECT_NEAR(far->time / end->time, 16, 0.6);
  EXPECT_GT(far->error / far->time, end->error / end->time);
  // Softmax attention is quadratic, the delta rule linear.
  const auto attention = [](double s) {
    return table().attention(gpu("H100"), 32, 4, 128, s, 1)->time.value();
  };
  EXPECT_NEAR(attention(131072) / attention(16384), 64, 3);
  const auto delta = [](double s) {
    return table().gated_delta_net(gpu("H100"), 16, 32, 128, s, 1)->time.value();
  };
  EXPECT_NEAR(delta(262144) / delta(32768), 8, 0.1);
}

TEST(KernelTable, HasNoAnswerWhereNoTableReaches) {
  EXPECT_FALSE(table().gemm(gpu("A100"), Dtype::bf16, 4096, 4096, 4096));
  EXPECT_FALSE(table().gemm(gpu("MI300X", {{"H900"}}), Dtype::bf16, 4096, 4096, 4096));
  EXPECT_FALSE(table().gemm(gpu("H200"), Dtype::nvfp4, 4096, 4096, 4096));
  EXPECT_FALSE(table().mamba2(gpu("H100"), 128, 64, 8, 128, 4096, 1)) << "no scan was measured there";
  EXPECT_TRUE(table().mamba2(gpu("B200"), 128, 64, 8, 128, 4096, 1));
  EXPECT_FALSE(table().gemm(gpu("H200"), Dtype::bf16, 0, 4096, 4096));
  EXPECT_FALSE(table().gemm(gpu("H200"), Dtype::bf16, NAN, 4096, 4096));
  EXPECT_FALSE(table().gemm(gpu("H200"), Dtype::bf16, 1e200, 1e200, 4096));
}

TEST(KernelTable, LeavesRowsOutWithinTheGoal) {
  std::vector<double> errors;
  std::size_t within = 0, training = 0;
  for (const auto& row : table().leave_one_out()) {
    if (!row.training) continue;
    ++training;
    const double error = std::abs(row.predicted / row.measured - 1);
    if (row.interior) errors.push_back(error);
    if (error <= row.bound) ++within;
  }
  std::ranges::sort(errors);
  EXPECT_GT(errors.size(), 1400U);
  EXPECT_LE(errors[errors.size() / 2], 0.05);
  EXPECT_LE(errors[errors.size() * 95 / 100], 0.18);
  EXPECT_GT(static_cast<double>(within) / static_cast<double>(training), 0.88)
      << "bounds hold for nine in ten";
}

constexpr const char* kHeader = "op,device,dtype,shape,latency_us,source\n";

TEST(KernelTable, LeavesRepeatsOutTogether) {
  // With its repeat left in, the middle point would be predicted as itself.
  const auto parsed = KernelTable::parse(std::string(kHeader) +
                                             "nccl_alltoall,D,half,gpus=8;elems=1000,10,x\n"
                                             "nccl_alltoall,D,half,gpus=8;elems=2000,99,x\n"
                                             "nccl_alltoall,D,half,gpus=8;elems=2000,99,x\n"
                                             "nccl_alltoall,D,half,gpus=8;elems=4000,40,x\n",
                                         "x.csv");
  ASSERT_TRUE(parsed.has_value()) << parsed.error().text();
  const auto rows = parsed->leave_one_out();
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_TRUE(rows[1].interior);
  EXPECT_FALSE(rows[0].interior);
  EXPECT_NEAR(microseconds(rows[1].predicted), 20, 0.5);
  EXPECT_EQ(rows[1].predicted, rows[2].predicted);
}

TEST(KernelTable, RefusesBadRowsWithTheirLine) {
  const auto error = [](std::string row) {
    const auto parsed =
        KernelTable::parse(kHeader + std::string("gemm,D,fp8,m=1;n=2;k=3,4.5,x\n") + row, "x.csv");
    return parsed ? std::string("accepted") : parsed.error().text();
  };
  EXPECT_EQ(error("gem,D,fp8,m=1;n=2;k=3,4.5,x"), "x.csv:3: op: unknown op gem\n  Did you mean gemm?");
  EXPECT_EQ(error("gemm,D,fp8,m=1;n=2,4.5,x"), "x.csv:3: shape: gemm lacks axis k");
  EXPECT_EQ(error("gemm,D,fp8,m=1;n=2;k=3;q=7,4.5,x"),
            "x.csv:3: shape: gemm has no axis 'q'; its axes are m, n and k");
  EXPECT_EQ(error("gemm,D,fp8,m=1;m=2;k=3,4.5,x"), "x.csv:3: shape: m is given twice");
  EXPECT_EQ(error("gemm,D,fp8,m=-1;n=2;k=3,4.5,x"), "x.csv:3: shape: m is '-1', expected a positive number");
  EXPECT_EQ(error("gemm,D,fp8,m=1;n=2;k=3,0,x"),
            "x.csv:3: latency_us: '0' is not a positive number of microseconds");
  EXPECT_EQ(error("gemm,D,fp8,m=1;n=2;k=3,nan,x"),
            "x.csv:3: latency_us: 'nan' is not a positive number of microseconds");
  EXPECT_EQ(error("gemm,,fp8,m=1;n=2;k=3,1,x"), "x.csv:3: device: is empty");
  EXPECT_THAT(error("gemm,D,fp8,m=1;n=2;k=3,4.5"), HasSubstr("x.csv:3: 5 columns, expected 6"));
  std::string many;
  for (int i = 1; i <= 1000; ++i) many += "gemm,D,fp8,m=" + std::to_string(i) + ";n=2;k=3,4.5,x\n";
  EXPECT_THAT(error(many), HasSubstr("x.csv:1002: more than 1000 rows of gemm on D in fp8 from x"));
  EXPECT_THAT(KernelTable::parse("op,device\n", "x.csv").error().text(),
              HasSubstr("x.csv:1: the first line"));
  EXPECT_THAT(KernelTable::parse(kHeader, "x.csv").error().text(), HasSubstr("the table holds no row"));
}

TEST(KernelTable, AnswersFromManyThreads) {
  std::vector<std::jthread> threads;
  std::vector<double> sums(4);
  for (std::size_t t = 0; t < sums.size(); ++t)
    threads.emplace_back([&sums, t] {
      for (double m = 512; m < 8192; m += 64)
        sums[t] += KernelTable::builtin().gemm(gpu("H200"), Dtype::bf16, m, 4096, 4096)->time.value();
    });
  threads.clear();
  EXPECT_EQ(std::ranges::count(sums, sums[0]), 4);
}

}  // namespace
}  // namespace tessera
