#include "tessera/train/schedule/placement.h"

#include <gtest/gtest.h>

namespace tessera::train {
namespace {

TEST(Placement, HoldsASchedulesStagesToTheRanksThatHaveThem) {
  const ActionList v = make_schedule(Template::zb_v, {.pp = 4, .vp = 2, .microbatches = 8}).value();
  EXPECT_TRUE(check_placement(v.rank_of_stage, 4, StagePlacement::v_shape));
  const auto loop = check_placement(v.rank_of_stage, 4, StagePlacement::linear);
  ASSERT_FALSE(loop);
  EXPECT_EQ(loop.error().text(),
            "the schedule does not fit stages placed in a loop: 4 of 4 ranks differ\n"
            "  rank 0 runs stages 0 and 7, but holds 0 and 4\n"
            "  rank 1 runs stages 1 and 6, but holds 1 and 5\n"
            "  rank 2 runs stages 2 and 5, but holds 2 and 6\n"
            "  rank 3 runs stages 3 and 4, but holds 3 and 7");
  const ActionList linear =
      make_schedule(Template::interleaved, {.pp = 4, .vp = 3, .microbatches = 8}).value();
  EXPECT_TRUE(check_placement(linear.rank_of_stage, 4, StagePlacement::linear));
  EXPECT_EQ(check_placement(linear.rank_of_stage, 4, StagePlacement::v_shape).error().text(),
            "a V has two stages a rank, 8 on 4 ranks; the schedule has 12");
}

}  // namespace
}  // namespace tessera::train
