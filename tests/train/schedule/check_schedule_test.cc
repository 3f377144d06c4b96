#include "tessera/train/schedule/check_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tessera/train/schedule/schedule_template.h"
#include "train/testing.h"

namespace tessera::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Random;
using testing::rounds;

ActionList list_of(std::int32_t microbatches, std::vector<int> rank_of_stage,
                   const std::vector<std::string>& ranks) {
  ActionList list{.microbatches = microbatches};
  for (const int r : rank_of_stage) list.rank_of_stage.emplace_back(r);
  for (const std::string& row : ranks) {
    list.ranks.emplace_back();
    std::string cell;
    for (const char c : row + " ") {
      if (c != ' ') {
        cell += c;
      } else if (!cell.empty()) {
        list.ranks.back().push_back(parse_action(cell).value());
        cell.clear();
      }
    }
  }
  return list;
}
std::string fault(const ActionList& list) {
  const auto facts = check_schedule(list);
  return facts ? "sound" : facts.error().text();
}

TEST(CheckSchedule, CountsPeaksAndActions) {
  const auto facts = check_schedule(list_of(2, {0, 1}, {"0F0 0F1 0B0 0B1", "1F0 1I0 1F1 1I1 1W0 1W1"}));
  ASSERT_TRUE(facts) << facts.error().text();
  EXPECT_THAT(facts->peak_live, ElementsAre(2, 1));
  EXPECT_THAT(facts->peak_until_weight, ElementsAre(2, 2));
  EXPECT_EQ(facts->actions, 10);
}

TEST(CheckSchedule, CountsAPairsForwardBeforeItsBackward) {
  const auto facts = check_schedule(list_of(2, {0}, {"0F0 (0F1;0B0)OVERLAP_F_B 0B1"}));
  ASSERT_TRUE(facts);
  EXPECT_THAT(facts->peak_live, ElementsAre(2));
  EXPECT_EQ(facts->actions, 4);
}

TEST(CheckSchedule, NamesWhatIsMissingDoubledOrMisplaced) {
  EXPECT_THAT(fault(list_of(2, {0}, {"0F0 0F1 0B0"})),
              HasSubstr("0B1 is missing: stage 0 never runs its backward for microbatch 1"));
  EXPECT_THAT(fault(list_of(1, {0}, {"0F0 0I0"})), HasSubstr("0W0 is missing"));
  EXPECT_THAT(fault(list_of(1, {0}, {"0F0 0F0 0B0"})),
              HasSubstr("0F0, action 1 of rank 0, is the second forward of stage 0"));
  EXPECT_THAT(fault(list_of(1, {0}, {"0F0 0B0 0W0"})), HasSubstr("is the second weight gradient"));
  EXPECT_THAT(fault(list_of(1, {0, 1}, {"0F0 1F0 0B0", "1B0"})),
              HasSubstr("runs on rank 0, but stage 1 is on rank 1"));
  EXPECT_THAT(fault(list_of(1, {0}, {"0F0 0F1 0B0"})),
              HasSubstr("names microbatch 1, but there are 1 microbatches"));
  EXPECT_THAT(fault(list_of(1, {0}, {"0F0 1F0 0B0"})), HasSubstr("names stage 1, but there are 1 stages"));
  EXPECT_THAT(fault(list_of(1, {0}, {"0B0 0F0"})),
              HasSubstr("0B0 is action 0 of rank 0, not after 0F0, action 1"));
  EXPECT_THAT(fault(list_of(1, {0}, {"0F0 0W0 0I0"})),
              HasSubstr("0W0 is action 1 of rank 0, not after 0I0, action 2"));
  EXPECT_THAT(fault(list_of(1, {0}, {"(0F0;0B0)OVERLAP_F_B"})), HasSubstr("not after 0F0"));
  EXPECT_THAT(fault(list_of(1, {3}, {"0F0 0B0"})), HasSubstr("stage 0 is on rank 3, but there are 1 ranks"));
}

TEST(CheckSchedule, ShowsTheCycleOfADeadlock) {
  // Rank 0 wants 1B1's gradient before it sends 0F2; rank 1 wants 0F2 before it runs 1B1.
  EXPECT_EQ(fault(list_of(3, {0, 1}, {"0F0 0F1 0B0 0B1 0F2 0B2", "1F0 1B0 1F1 1F2 1B1 1B2"})),
            "the schedule deadlocks: 2 actions wait for each other in a circle\n"
            "  rank 0 action 3, 0B1, waits for rank 1 action 4, 1B1\n"
            "  rank 1 action 3, 1F2, waits for rank 0 action 4, 0F2");
  EXPECT_THAT(fault(list_of(1, {0, 0}, {"1F0 0F0 1B0 0B0"})),
              HasSubstr("an action waits for a later one of its own rank\n  rank 0 action 0, 1F0, waits for "
                        "rank 0 action 1, 0F0"));
}

TEST(CheckSchedule, IsNotMisledByHugeCounts) {
  ActionList list = list_of(1, {0}, {"0F0 0B0"});
  list.microbatches = std::numeric_limits<std::int32_t>::max();
  EXPECT_THAT(fault(list), HasSubstr("0F1 is missing"));
  list.microbatches = -1;
  EXPECT_THAT(fault(list), HasSubstr("-1 microbatches"));
}

// The same question answered by brute force: step through the lists, one action at a time, and look at
// everything anew each time. Shares nothing with the checker.
bool runs_to_the_end(const ActionList& list) {
  struct Part {
    char pass;
    int stage, microbatch;
    auto operator<=>(const Part&) const = default;
  };
  const auto letter = [](ActionKind kind) {
    return kind == ActionKind::forward          ? 'F'
           : kind == ActionKind::full_backward  ? 'B'
           : kind == ActionKind::input_gradient ? 'I'
                                                : 'W';
  };
  const int stages = static_cast<int>(list.stages()), each = stages / list.pipelines;
  std::set<Part> done;
  std::vector<std::size_t> next(list.ranks.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < list.ranks.size(); ++r) {
      if (next[r] == list.ranks[r].size()) continue;
      const Action& a = list.ranks[r][next[r]];
      std::vector<Part> parts;
      if (a.kind == ActionKind::overlap) {
        parts.push_back({'F', a.stage.value(), a.microbatch.value()});
        parts.push_back({letter(a.backward_kind), a.backward_stage.value(), a.backward_microbatch.value()});
      } else {
        parts.push_back({letter(a.kind), a.stage.value(), a.microbatch.value()});
      }
      bool ready = true;
      for (const Part& p : parts) {
        if (p.stage < 0 || p.stage >= stages || p.microbatch < 0 || p.microbatch >= list.microbatches)
          return false;
        if (list.rank_of_stage[static_cast<std::size_t>(p.stage)].index() != r) return false;
        const auto has = [&](char pass, int stage) { return done.contains({pass, stage, p.microbatch}); };
        if (has(p.pass, p.stage)) return false;
        if (p.pass == 'B' && (has('I', p.stage) || has('W', p.stage))) return false;
        if ((p.pass == 'I' || p.pass == 'W') && has('B', p.stage)) return false;
        if (p.pass == 'F') ready = ready && (p.stage % each == 0 || has('F', p.stage - 1));
        if (p.pass == 'B' || p.pass == 'I')
          ready = ready && has('F', p.stage) &&
                  ((p.stage + 1) % each == 0 || has('B', p.stage + 1) || has('I', p.stage + 1));
        if (p.pass == 'W') ready = ready && has('I', p.stage);
      }
      if (!ready) continue;
      for (const Part& p : parts) done.insert(p);
      ++next[r];
      moved = true;
    }
  }
  for (std::size_t r = 0; r < list.ranks.size(); ++r)
    if (next[r] != list.ranks[r].size()) return false;
  for (int s = 0; s < stages; ++s)
    for (int m = 0; m < list.microbatches; ++m) {
      if (!done.contains({'F', s, m})) return false;
      if (!done.contains({'B', s, m}) && !(done.contains({'I', s, m}) && done.contains({'W', s, m})))
        return false;
    }
  return true;
}

// Splits some full backwards into I and a later W.
void split_backwards(ActionList& list, Random& random) {
  for (auto& rank : list.ranks)
    for (std::size_t i = 0; i < rank.size(); ++i) {
      Action& a = rank[i];
      const bool pair = a.kind == ActionKind::overlap;
      if ((!pair && a.kind != ActionKind::full_backward) || !random.chance(0.3)) continue;
      const Action w{.kind = ActionKind::weight_gradient,
                     .stage = pair ? a.backward_stage : a.stage,
                     .microbatch = pair ? a.backward_microbatch : a.microbatch};
      (pair ? a.backward_kind : a.kind) = ActionKind::input_gradient;
      rank.insert(rank.begin() + random.between(static_cast<int>(i) + 1, static_cast<int>(rank.size())), w);
    }
}

void mutate(ActionList& list, Random& random) {
  auto& rank = list.ranks[static_cast<std::size_t>(random.below(static_cast<int>(list.ranks.size())))];
  if (rank.empty()) return;
  const auto pick = [&] { return static_cast<std::size_t>(random.below(static_cast<int>(rank.size()))); };
  const std::size_t i = pick();
  switch (random.below(6)) {
    case 0:
      std::swap(rank[i], rank[pick()]);
      break;
    case 1:
      if (i + 1 < rank.size()) std::swap(rank[i], rank[i + 1]);
      break;
    case 2:
      rank.erase(rank.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    case 3:
      rank.insert(rank.begin() + static_cast<std::ptrdiff_t>(pick()), Action(rank[i]));
      break;
    case 4: {  // move
      const Action a = rank[i];
      rank.erase(rank.begin() + static_cast<std::ptrdiff_t>(i));
      rank.insert(rank.begin() + random.between(0, static_cast<int>(rank.size())), a);
      break;
    }
    default: {  // to another rank
      const Action a = rank[i];
      rank.erase(rank.begin() + static_cast<std::ptrdiff_t>(i));
      auto& other = list.ranks[static_cast<std::size_t>(random.below(static_cast<int>(list.ranks.size())))];
      other.insert(other.begin() + random.between(0, static_cast<int>(other.size())), a);
    }
  }
}

TEST(CheckSchedule, AgreesWithAStepByStepExecutorOnMutatedLists) {
  Random random(20240611);
  std::map<bool, int> verdicts;
  const int lists = rounds(12'000, 200'000);
  for (int round = 0; round < lists; ++round) {
    TemplateSizes sizes{.pp = random.between(1, 4),
                        .vp = random.between(1, 3),
                        .microbatches = random.between(1, 7),
                        .any_group = true,
                        .effort = 0};
    const auto t = static_cast<Template>(random.below(static_cast<int>(kTemplates)));
    if (traits(t).chunks != 0) sizes.vp = traits(t).chunks;
    if (traits(t).pairs && traits(t).split) sizes.microbatches += 2 * sizes.pp;
    auto made = make_schedule(t, sizes);
    if (!made) continue;  // groups that deadlock, and what dualpipe refuses
    ActionList list = *std::move(made);
    if (random.chance(0.4)) split_backwards(list, random);
    for (int k = random.below(4); k > 0; --k) mutate(list, random);
    const auto facts = check_schedule(list);
    ASSERT_EQ(facts.has_value(), runs_to_the_end(list))
        << round << ": " << (facts ? "sound" : facts.error().text());
    ++verdicts[facts.has_value()];
  }
  // The comparison says something only if both verdicts are common.
  EXPECT_GT(verdicts[true], lists / 5);
  EXPECT_GT(verdicts[false], lists / 5);
}

}  // namespace
}  // namespace tessera::train
