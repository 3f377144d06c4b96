#include "tessera/core/base/units.h"

tessera::Seconds wait() {
#ifdef WRONG
  return 0.5;
#else
  return tessera::Seconds(0.5);
#endif
}
