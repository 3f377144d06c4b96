#include "tessera/train/schedule/check_lowered.h"

#include <algorithm>

#include "lowered_rules.h"
#include "rendezvous.h"
#include "stage_links.h"
#include "tessera/train/schedule/eager.h"

namespace tessera::train {

Result<LoweredFacts> check_lowered(const LoweredList& list) {
  std::size_t cells = 0;
  for (const auto& row : list.ranks) cells += row.size();
  const auto microbatches = static_cast<std::size_t>(std::max(list.microbatches, 0));
  // Incomplete in its actions: the checker of those says it best.
  const auto refuse_actions = [&]() -> std::unexpected<Error> {
    const auto index = ActionIndex::build(without_communication(list));
    return index ? infeasible("the schedule is not complete") : std::unexpected(index.error());
  };
  if (!has_sound_frame(list) || list.stages() * microbatches > cells) return refuse_actions();

  const std::vector<StageLinks> links = stage_links(list);
  LoweredFacts facts;
  RowRules rules(list, links);
  for (std::size_t r = 0; r < list.ranks.size(); ++r) TESSERA_CHECK(rules.check_row(r, facts.compute));
  if (!rules.actions_complete()) return refuse_actions();
  TESSERA_CHECK(rules.check_messages_complete());
  TESSERA_CHECK(rules.check_sharding_complete());
  TESSERA_CHECK(run_rendezvous(list, links, facts));
  return facts;
}

}  // namespace tessera::train
