#include "families.h"

namespace tessera::train {

ActionList gpipe(const TemplateSizes& sizes) {
  ActionList list = empty_list(Template::gpipe, sizes);
  for (std::int32_t r = 0; r < sizes.pp; ++r) {
    std::vector<Action>& actions = list.ranks[static_cast<std::size_t>(r)];
    actions.reserve(2 * static_cast<std::size_t>(sizes.microbatches));
    for (std::int32_t m = 0; m < sizes.microbatches; ++m)
      actions.push_back(forward(StageId(r), MicrobatchId(m)));
    for (std::int32_t m = 0; m < sizes.microbatches; ++m)
      actions.push_back(backward(StageId(r), MicrobatchId(m)));
  }
  return list;
}

ActionList looped_bfs(const TemplateSizes& sizes) {
  ActionList list = empty_list(Template::looped_bfs, sizes);
  for (std::int32_t r = 0; r < sizes.pp; ++r) {
    std::vector<Action>& actions = list.ranks[static_cast<std::size_t>(r)];
    actions.reserve(2 * static_cast<std::size_t>(sizes.microbatches) * static_cast<std::size_t>(sizes.vp));
    for (std::int32_t chunk = 0; chunk < sizes.vp; ++chunk)
      for (std::int32_t m = 0; m < sizes.microbatches; ++m)
        actions.push_back(forward(StageId(chunk * sizes.pp + r), MicrobatchId(m)));
    for (std::int32_t chunk = sizes.vp - 1; chunk >= 0; --chunk)
      for (std::int32_t m = sizes.microbatches - 1; m >= 0; --m)
        actions.push_back(backward(StageId(chunk * sizes.pp + r), MicrobatchId(m)));
  }
  return list;
}

}  // namespace tessera::train
