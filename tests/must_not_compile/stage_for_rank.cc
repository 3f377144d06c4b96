#include "tessera/core/base/ids.h"

bool is_first(tessera::RankId rank) {
  return rank == tessera::RankId(0);
}

bool check(tessera::StageId stage, tessera::RankId rank) {
#ifdef WRONG
  return is_first(stage);
#else
  return is_first(rank) && stage == tessera::StageId(0);
#endif
}
