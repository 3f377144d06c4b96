// Can a set of devices hang in their communication? One graph over all communicators.
//
// The k-th launch of each member on a communicator is one instance: it ends when every member has launched
// it. Nodes are instances, edges are each device's launch order; launches that a device issues as one group
// have no order among themselves. The devices get through exactly when the graph has no cycle. Equal order on
// each communicator is not enough: three devices, each a member of two of three communicators, can wait in a
// circle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/core/base/result.h"
#include "tessera/train/schedule/lowered_list.h"

namespace tessera::train {

/// One communication that a device launches.
struct Launch {
  std::int32_t communicator = 0;
  std::int64_t operation = 0;  ///< what is launched, opaque: the members of an instance must agree
  bool grouped = false;        ///< issued as one group with the launch before it
};

struct Communicator {
  std::string name;
  std::vector<std::int32_t> members;  ///< devices
};

struct LaunchOrders {
  std::vector<Communicator> communicators;
  std::vector<std::vector<Launch>> devices;  ///< in launch order
};

struct LaunchFacts {
  std::int64_t instances = 0;
  std::int64_t launches = 0;
};

/// Proves that all devices get through. A failure is infeasible: members that launch different numbers of
/// times on a communicator or different operations, each by name, or the cycle of devices that wait for each
/// other. A communicator or member that does not exist is bad input. Linear in the launches.
[[nodiscard]] Result<LaunchFacts> check_launch_order(const LaunchOrders& orders);

/// What the devices of `replicas` equal data-parallel pipelines launch: device replica · ranks + rank. Every
/// ordered pair of ranks that exchange messages is a communicator per replica, and every stage one across the
/// replicas for its UNSHARD and REDUCE_GRAD.
[[nodiscard]] LaunchOrders launch_orders(const LoweredList& list, std::int32_t replicas = 1);

}  // namespace tessera::train
