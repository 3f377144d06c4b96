#include <fmt/format.h>

#include "ranges.h"
#include "solvers.h"

namespace tessera::train {

std::string explain_infeasible(const PartitionProblem& /*problem*/, StageCosts& /*costs*/) {
  return "no partition satisfies the problem";
}

}  // namespace tessera::train
