#include "tessera/core/base/units.h"

tessera::Seconds total(tessera::Seconds time, tessera::Bytes size) {
#ifdef WRONG
  return time + size;
#else
  return time + size / tessera::BytesPerSecond(1e9);
#endif
}
