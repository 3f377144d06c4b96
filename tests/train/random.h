// Seeded randomness and round counts of the tests.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

namespace tessera::train::testing {

/// Rounds of a randomised test: `fast` in every run, `soak` when TESSERA_SOAK is set.
inline int rounds(int fast, int soak) {
  return std::getenv("TESSERA_SOAK") != nullptr ? soak : fast;
}

/// Small seeded generator of test data. The distributions are ours, so that every library draws the same.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  int below(int limit) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(limit)); }
  int between(int low, int high) { return low + below(high - low + 1); }
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  bool chance(double probability) { return unit() < probability; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace tessera::train::testing
