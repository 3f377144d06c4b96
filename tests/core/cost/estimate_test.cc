#include "tessera/core/cost/estimate.h"

#include <gtest/gtest.h>

#include <set>

namespace tessera {
namespace {

TEST(Estimate, AddsTimesBoundsAndSources) {
  const Estimate a(Seconds(2), Provenance::table, 0.1);
  const Estimate b(Seconds(3), Provenance::roofline, 0.5);
  const Estimate sum = 2 * (a + b) + a;
  EXPECT_DOUBLE_EQ(sum.time.value(), 12);
  EXPECT_DOUBLE_EQ(sum.error.value(), 2 * (0.2 + 1.5) + 0.2);
  EXPECT_DOUBLE_EQ(sum.by_source[static_cast<std::size_t>(Provenance::table)].value(), 6);
  EXPECT_DOUBLE_EQ(sum.by_source[static_cast<std::size_t>(Provenance::roofline)].value(), 6);
  EXPECT_DOUBLE_EQ(sum.by_source[static_cast<std::size_t>(Provenance::given)].value(), 0);
}

TEST(Estimate, EverySourceHasItsName) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kProvenances; ++i) names.insert(name(static_cast<Provenance>(i)));
  EXPECT_EQ(names.size(), kProvenances);
  EXPECT_EQ(name(Provenance::extended_table), "extended table");
  EXPECT_FALSE(names.contains("unknown"));
}

}  // namespace
}  // namespace tessera
