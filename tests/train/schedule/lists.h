// Random action lists and what mutation does to them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tessera/core/base/text.h"
#include "tessera/train/schedule/lowered_list.h"
#include "tessera/train/schedule/schedule_template.h"
#include "train/random.h"

namespace tessera::train::testing {

inline std::string test_file(const std::string& name) {
  return read_file(std::string(TESSERA_TEST_DATA) + "/schedules/csv/" + name).value();
}

/// A row per rank: {"0F0 0SEND_F0", "1RECV_F0 …"}.
inline LoweredList lowered_of(std::int32_t microbatches, const std::vector<int>& rank_of_stage,
                              const std::vector<std::string>& ranks) {
  LoweredList list{.microbatches = microbatches};
  for (const int r : rank_of_stage) list.rank_of_stage.emplace_back(r);
  for (const std::string& row : ranks) {
    auto& cells = list.ranks.emplace_back();
    for (const std::string_view word : split(row, ' '))
      if (!word.empty()) cells.push_back(parse_cell(word).value());
  }
  return list;
}

inline int pick(Random& random, std::size_t size) {
  return random.below(static_cast<int>(size));
}

/// Splits some full backwards into I and a later W.
inline void split_some_backwards(ActionList& list, Random& random) {
  for (auto& rank : list.ranks)
    for (std::size_t i = 0; i < rank.size(); ++i) {
      Action& a = rank[i];
      const bool pair = a.kind == ActionKind::overlap;
      if ((pair ? a.backward_kind : a.kind) != ActionKind::full_backward || !random.chance(0.2)) continue;
      const Action w = pair ? weight_gradient(a.backward_stage, a.backward_microbatch)
                            : weight_gradient(a.stage, a.microbatch);
      (pair ? a.backward_kind : a.kind) = ActionKind::input_gradient;
      rank.insert(rank.begin() + random.between(static_cast<int>(i) + 1, static_cast<int>(rank.size())), w);
    }
}

/// A sound list of one pipeline; small.
inline ActionList random_list(Random& random) {
  while (true) {
    const auto schedule = static_cast<Template>(pick(random, kTemplates));
    if (schedule == Template::dual_pipe) continue;
    // Made by search, which costs far more than checking them.
    if (traits(schedule).durations && !random.chance(0.05)) continue;
    const int chunks = traits(schedule).chunks;
    const TemplateSizes sizes{.pp = random.between(1, 4),
                              .vp = chunks != 0 ? chunks : random.between(1, 3),
                              .microbatches = random.between(1, 8)};
    auto made = make_schedule(schedule, sizes);
    if (!made) continue;
    ActionList list = *std::move(made);
    if (random.chance(0.3)) split_some_backwards(list, random);
    return list;
  }
}
inline LoweredList random_lowered(Random& random) {
  return lower(random_list(random), {.shard = random.chance(0.3), .unsharded_stages = random.between(1, 4)})
      .value();
}

/// Swaps, drops, doubles or moves one cell.
inline void mutate(LoweredList& list, Random& random) {
  auto& row = list.ranks[static_cast<std::size_t>(pick(random, list.ranks.size()))];
  if (row.empty()) return;
  const auto at = [&] { return row.begin() + pick(random, row.size()); };
  const auto i = at();
  const Cell cell = *i;
  switch (random.below(8)) {
    case 0:
      std::iter_swap(i, at());
      break;
    case 1:
    case 2:
      if (i + 1 != row.end()) std::iter_swap(i, i + 1);
      break;
    case 3:
      row.erase(i);
      break;
    case 4:
      row.insert(at(), cell);
      break;
    case 5: {  // a little way, as when communication is hoisted by hand
      row.erase(i);
      const int from = static_cast<int>(i - row.begin());
      row.insert(
          row.begin() + std::max(0, std::min(static_cast<int>(row.size()), from + random.between(-4, 4))),
          cell);
      break;
    }
    case 6:
      row.erase(i);
      row.insert(row.begin() + random.between(0, static_cast<int>(row.size())), cell);
      break;
    default: {  // to another rank
      row.erase(i);
      auto& other = list.ranks[static_cast<std::size_t>(pick(random, list.ranks.size()))];
      other.insert(other.begin() + random.between(0, static_cast<int>(other.size())), cell);
    }
  }
}

}  // namespace tessera::train::testing
