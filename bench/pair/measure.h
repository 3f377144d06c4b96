// Solving one pair for the record: on one core, timed from outside, its answer held to account.
#pragma once

#include <array>
#include <string>

#include "tessera/train/overlap/pair_bounds.h"
#include "tessera/train/overlap/pair_schedule.h"
#include "tessera/train/overlap/task_graph.h"

namespace tessera::bench {

/// Keeps the calling thread on one core, the n-th from the last of those it may use, until destroyed.
class Pinned {
 public:
  explicit Pinned(int n = 0);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  std::array<std::uint64_t, 16> before_{};  ///< as many cores as the system's own set holds
};

struct Timed {
  train::PairResult result;
  double seconds = 0;      ///< wall clock
  double cpu_seconds = 0;  ///< of this thread: what a busy machine does not stretch
};
[[nodiscard]] Timed timed(const train::TaskGraph& graph, const train::PairOptions& options = {});

/// The list rules in the order of the tables.
inline constexpr std::array kRules{train::PairMethod::serial, train::PairMethod::fifo,
                                   train::PairMethod::align, train::PairMethod::defer_literal,
                                   train::PairMethod::defer};

/// The schedule is legal and as long as it says, and nothing is below its bounds. Any failure here and below
/// prints the instance and ends the benchmark.
void verify_answer(const train::TaskGraph& graph, const train::PairResult& result, const std::string& what);

/// What exact answered for one pair.
struct Outcome {
  bool proved = false;
  bool hard = false;  ///< above both loads and both chains. What is not proved may count as hard too often
  double gap = 0;     ///< left between the best found and the bound
  std::array<double, kRules.size()> rule_gap{};  ///< makespan / proved optimum − 1; unproved: / bound
};
/// verify_answer, of the list rules too, and none of these is shorter.
[[nodiscard]] Outcome judge(const train::TaskGraph& graph, const train::PairResult& exact,
                            const std::string& what);

void verify_pair(bool holds, const train::TaskGraph& graph, const std::string& what);

}  // namespace tessera::bench
