#include <algorithm>

#include "families.h"
#include "list_scheduler.h"

namespace tessera::train {

std::int32_t default_most_live(Template schedule, std::int32_t pp) noexcept {
  switch (schedule) {
    case Template::zb_h1:
      return pp;
    case Template::zb_h2:
      return 2 * pp - 1;
    case Template::one_f_one_b_v:
      return std::min(2 * pp, 2 * (2 * pp / 3 + 1));
    case Template::v_half:
      return std::min(2 * pp, pp + 2);
    case Template::v_min:
      return std::min(2 * pp, 2 * ((pp + 4) / 3));
    default:
      return 2 * pp;
  }
}

ActionList zero_bubble(Template schedule, const TemplateSizes& sizes, const ScheduleCosts& costs) {
  ListProblem problem{.chunks = sizes.vp,
                      .ranks = sizes.pp,
                      .microbatches = sizes.microbatches,
                      .most_live = sizes.most_live,
                      .split = traits(schedule).split,
                      .costs = costs.stages,
                      .transfer = costs.transfer.value()};
  if (problem.costs.empty()) problem.costs.resize(static_cast<std::size_t>(sizes.pp * sizes.vp));
  ListScheduler scheduler(problem);
  scheduler.attempt({});
  return scheduler.best();
}

}  // namespace tessera::train
