// A stable 64-bit hash (FNV-1a) for fingerprints of plans and costs. The same bytes give the same value on
// every machine and in every release; it is no protection against malice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view bytes,
                                            std::uint64_t seed = 0xcbf29ce484222325ULL) noexcept {
  std::uint64_t hash = seed;
  for (const char c : bytes) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

/// Sixteen hexadecimal digits.
[[nodiscard]] std::string fingerprint(std::string_view bytes);

}  // namespace tessera
