// A loop over independent items on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace tessera {

/// Calls `item(i)` once for each i < count, on up to `threads` threads (0 = as many as the machine has), in
/// no particular order; returns when all are done. The caller's thread works too. `item` must not throw.
void parallel_for(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& item);

}  // namespace tessera
