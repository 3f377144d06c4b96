// Counts what became of the mutants of a fuzz target and prints it when the program ends.
#pragma once

#include <cstdint>
#include <cstdio>

namespace tessera::fuzzing {

/// One static object a target:  static Tally tally("config");
class Tally {
 public:
  explicit Tally(const char* name) noexcept : name_(name) {}
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;
  ~Tally() {
    const auto share = [this](std::uint64_t part) {
      return mutants == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(mutants);
    };
    std::printf("%s: %llu mutants, %.1f %% parsed, %.1f %% reached the checks, %.1f %% accepted\n", name_,
                static_cast<unsigned long long>(mutants), share(parsed), share(reached), share(accepted));
    std::fflush(stdout);
  }

  std::uint64_t mutants = 0;
  std::uint64_t parsed = 0;   ///< well-formed JSON or YAML
  std::uint64_t reached = 0;  ///< past the frame: the checks of meaning were run
  std::uint64_t accepted = 0;

 private:
  const char* name_;
};

}  // namespace tessera::fuzzing
