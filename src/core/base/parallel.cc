#include "tessera/core/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace tessera {

void parallel_for(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& item) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    // Only the number matters: joining the threads orders what the items wrote.
    for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) item(i);
  };
  std::vector<std::jthread> helpers;
  const std::size_t wanted = std::min<std::size_t>(threads, count);
  for (std::size_t t = 1; t < wanted; ++t) helpers.emplace_back(work);
  work();
}

}  // namespace tessera
