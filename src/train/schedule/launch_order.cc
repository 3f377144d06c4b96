#include "tessera/train/schedule/launch_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "stage_links.h"

namespace tessera::train {
namespace {

constexpr std::size_t kShownWaits = 24;  // of a cycle; a longer one is cut

class LaunchExecution {
 public:
  explicit LaunchExecution(const LaunchOrders& orders) : orders_(orders), devices_(orders.devices.size()) {}

  Result<LaunchFacts> run() {
    TESSERA_CHECK(name_instances());
    std::vector<std::size_t> runnable;
    for (std::size_t d = devices_.size(); d-- > 0;) runnable.push_back(d);
    while (!runnable.empty()) {
      const std::size_t device = runnable.back();
      runnable.pop_back();
      while (post_group(device, runnable)) {
      }
    }
    for (std::size_t d = 0; d < devices_.size(); ++d)
      if (devices_[d].missing > 0) return deadlock(d);
    return facts_;
  }

 private:
  struct Device {
    std::size_t begin = 0, end = 0;  ///< of the posted group
    std::size_t missing = 0;         ///< its instances that not every member has posted
  };
  [[nodiscard]] const std::vector<std::int32_t>& members(const Launch& launch) const {
    return orders_.communicators[static_cast<std::size_t>(launch.communicator)].members;
  }

  // Instances are numbered communicator by communicator.
  Status name_instances() {
    const std::size_t communicators = orders_.communicators.size();
    for (const Communicator& communicator : orders_.communicators)
      for (const std::int32_t member : communicator.members)
        if (member < 0 || static_cast<std::size_t>(member) >= devices_.size())
          return bad_input(fmt::format("communicator {} has member {}, but there are {} devices",
                                       communicator.name, member, devices_.size()));
    std::vector<std::vector<std::int32_t>> of_device(devices_.size());
    for (std::size_t c = 0; c < communicators; ++c)
      for (const std::int32_t member : orders_.communicators[c].members)
        of_device[static_cast<std::size_t>(member)].push_back(static_cast<std::int32_t>(c));

    std::vector<std::vector<std::int64_t>> operations(communicators);
    std::vector<std::int32_t> first_member(communicators, -1);
    std::vector<std::size_t> counts(communicators, 0);
    ordinals_.resize(devices_.size());
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      for (const std::int32_t c : of_device[d]) counts[static_cast<std::size_t>(c)] = 0;
      for (const Launch& launch : orders_.devices[d]) {
        const auto c = static_cast<std::size_t>(launch.communicator);
        if (launch.communicator < 0 || c >= communicators ||
            std::ranges::find(of_device[d], launch.communicator) == of_device[d].end())
          return bad_input(fmt::format("device {} launches on communicator {}, of which it is no member", d,
                                       launch.communicator));
        const std::size_t k = counts[c]++;
        ordinals_[d].push_back(k);
        ++facts_.launches;
        if (first_member[c] < 0 || first_member[c] == static_cast<std::int32_t>(d)) {
          first_member[c] = static_cast<std::int32_t>(d);
          operations[c].push_back(launch.operation);
        } else if (k < operations[c].size() && operations[c][k] != launch.operation) {
          return infeasible(fmt::format("launch {} on {} is operation {} on device {} and {} on device {}", k,
                                        orders_.communicators[c].name, operations[c][k], first_member[c],
                                        launch.operation, d));
        }
      }
      for (const std::int32_t of : of_device[d]) {
        const auto c = static_cast<std::size_t>(of);
        if (first_member[c] < 0) first_member[c] = static_cast<std::int32_t>(d);
        if (counts[c] != operations[c].size())
          return infeasible(fmt::format("device {} launches {} times on {}, device {} {} times",
                                        first_member[c], operations[c].size(), orders_.communicators[c].name,
                                        d, counts[c]));
      }
    }
    first_instance_.assign(communicators + 1, 0);
    for (std::size_t c = 0; c < communicators; ++c)
      first_instance_[c + 1] = first_instance_[c] + operations[c].size();
    posted_.assign(first_instance_.back(), 0);
    facts_.instances = static_cast<std::int64_t>(posted_.size());
    return {};
  }
  [[nodiscard]] std::size_t instance(std::size_t device, std::size_t index) const {
    const Launch& launch = orders_.devices[device][index];
    return first_instance_[static_cast<std::size_t>(launch.communicator)] + ordinals_[device][index];
  }

  // Posts the next group of a device; true when it is done at once.
  bool post_group(std::size_t device, std::vector<std::size_t>& runnable) {
    const std::vector<Launch>& launches = orders_.devices[device];
    Device& state = devices_[device];
    state.begin = state.end;
    if (state.begin == launches.size()) return false;
    do {
      ++state.end;
    } while (state.end < launches.size() && launches[state.end].grouped);
    state.missing = state.end - state.begin;
    for (std::size_t i = state.begin; i < state.end; ++i) {
      const auto& all = members(launches[i]);
      if (++posted_[instance(device, i)] < all.size()) continue;
      for (const std::int32_t member : all) {
        const auto m = static_cast<std::size_t>(member);
        if (--devices_[m].missing == 0 && m != device) runnable.push_back(m);
      }
    }
    return state.missing == 0;
  }

  std::unexpected<Error> deadlock(std::size_t device) const {
    std::vector<std::int32_t> visited(devices_.size(), -1);
    std::vector<std::size_t> path;
    std::vector<std::string> lines;
    while (visited[device] < 0) {
      visited[device] = static_cast<std::int32_t>(path.size());
      path.push_back(device);
      std::size_t i = devices_[device].begin;
      while (posted_[instance(device, i)] == members(orders_.devices[device][i]).size()) ++i;
      const std::size_t wanted = instance(device, i);
      // A member that has not posted it stands before it.
      const auto [peer, at] = late_member(orders_.devices[device][i], wanted);
      const Launch& launch = orders_.devices[device][i];
      lines.push_back(fmt::format("device {} launch {}, on {}, waits for device {} launch {}", device, i,
                                  orders_.communicators[static_cast<std::size_t>(launch.communicator)].name,
                                  peer, at));
      device = peer;
    }
    const auto first = static_cast<std::size_t>(visited[device]);
    const std::size_t length = path.size() - first;
    std::string text;
    for (std::size_t i = first; i < path.size() && i < first + kShownWaits; ++i)
      text += (i == first ? "" : "\n") + lines[i];
    if (length > kShownWaits) text += fmt::format("\n… and {} more", length - kShownWaits);
    return infeasible(
        fmt::format("the communicators deadlock: {} launches wait for each other in a circle", length), text);
  }
  [[nodiscard]] std::pair<std::size_t, std::size_t> late_member(const Launch& launch,
                                                                std::size_t wanted) const {
    for (const std::int32_t member : members(launch)) {
      const auto m = static_cast<std::size_t>(member);
      for (std::size_t k = devices_[m].end; k < orders_.devices[m].size(); ++k)
        if (instance(m, k) == wanted) return {m, k};
    }
    return {0, 0};
  }

  const LaunchOrders& orders_;
  std::vector<Device> devices_;
  std::vector<std::vector<std::size_t>> ordinals_;  ///< per device and launch, on its communicator
  std::vector<std::size_t> first_instance_;         ///< per communicator
  std::vector<std::size_t> posted_;                 ///< per instance, by how many members
  LaunchFacts facts_;
};

}  // namespace

Result<LaunchFacts> check_launch_order(const LaunchOrders& orders) {
  return LaunchExecution(orders).run();
}

LaunchOrders launch_orders(const LoweredList& list, std::int32_t replicas) {
  LaunchOrders out;
  const auto ranks = static_cast<std::int32_t>(list.ranks.size());
  const std::vector<StageLinks> links = stage_links(list);
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> channels;  // of devices
  const auto stages = static_cast<std::int32_t>(links.size());
  for (std::int32_t s = 0; s < stages; ++s) {
    Communicator& of = out.communicators.emplace_back();
    of.name = fmt::format("the replicas of stage {}", s);
    for (std::int32_t r = 0; r < replicas; ++r)
      of.members.push_back(r * ranks + links[static_cast<std::size_t>(s)].rank);
  }
  for (std::int32_t replica = 0; replica < replicas; ++replica)
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      const std::int32_t device = replica * ranks + rank;
      auto& launches = out.devices.emplace_back();
      bool in_group = false;
      for (const Cell& cell : list.ranks[static_cast<std::size_t>(rank)]) {
        if (!is_message(cell.kind)) {
          in_group = false;
          if (cell.kind == CellKind::unshard || cell.kind == CellKind::reduce_gradient)
            launches.push_back({.communicator = cell.action.stage.value(),
                                .operation = static_cast<std::int64_t>(cell.kind)});
          continue;
        }
        const bool to_next = cell.kind == CellKind::send_forward || cell.kind == CellKind::receive_backward;
        const StageLinks& link = links[cell.action.stage.index()];
        const std::int32_t peer = replica * ranks + (to_next ? link.next : link.previous);
        const std::pair channel = is_send(cell.kind) ? std::pair{device, peer} : std::pair{peer, device};
        const auto [at, fresh] =
            channels.try_emplace(channel, static_cast<std::int32_t>(out.communicators.size()));
        if (fresh)
          out.communicators.push_back(
              {.name = fmt::format("the channel from {} to {}", channel.first, channel.second),
               .members = {channel.first, channel.second}});
        const std::int64_t sender = cell.action.stage.value() + (is_send(cell.kind) ? 0 : to_next ? 1 : -1);
        launches.push_back({.communicator = at->second,
                            .operation = 2 * (sender * list.microbatches + cell.action.microbatch.value()) +
                                         (is_forward(cell.kind) ? 0 : 1),
                            .grouped = in_group});
        in_group = true;
      }
    }
  return out;
}

}  // namespace tessera::train
