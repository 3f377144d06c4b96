#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tessera/core/base/text.h"
#include "tessera/train/overlap/pair_schedule.h"

namespace tessera::train {
namespace {

std::string text(const TaskName& name) {
  return task_name(name.pass, name.kind, name.layer);
}

// Sorts like the task, finds it by its name.
using Key = std::uint64_t;
Key key_of(const TaskName& name) noexcept {
  return (static_cast<Key>(name.pass) << 40) | (static_cast<Key>(name.kind) << 32) |
         static_cast<std::uint32_t>(name.layer);
}

std::string hint_for(const TaskGraph& graph, std::string_view name) {
  std::vector<std::string> all;
  for (const Task& task : graph.tasks) all.push_back(text(task.name));
  const std::vector<std::string_view> views(all.begin(), all.end());
  const auto meant = nearest(name, views);
  return meant ? fmt::format("Did you mean {}?", *meant) : "";
}

}  // namespace

Result<std::vector<TaskId>> order_by_names(const TaskGraph& graph, std::span<const std::string> names) {
  std::vector<std::pair<Key, TaskId>> tasks;
  tasks.reserve(graph.tasks.size());
  for (std::size_t i = 0; i < graph.tasks.size(); ++i)
    tasks.emplace_back(key_of(graph.tasks[i].name), TaskId(static_cast<std::int64_t>(i)));
  std::ranges::sort(tasks);

  constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  std::vector<std::size_t> place(graph.tasks.size(), kNowhere);
  std::vector<TaskId> order;
  order.reserve(graph.tasks.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::optional<TaskName> name = parse_task_name(names[i]);
    const auto found =
        name ? std::ranges::lower_bound(tasks, key_of(*name), {}, &std::pair<Key, TaskId>::first)
             : tasks.end();
    if (found == tasks.end() || found->first != key_of(*name))
      return bad_input(fmt::format("task {} of the sequence, {}, is not one of the pair's {} tasks", i + 1,
                                   names[i], graph.tasks.size()),
                       hint_for(graph, names[i]));
    std::size_t& where = place[found->second.index()];
    if (where != kNowhere)
      return bad_input(
          fmt::format("{} stands twice in the sequence, as task {} and task {}", names[i], where + 1, i + 1),
          "Every task of the pair runs once.");
    where = i;
    order.push_back(found->second);
  }
  if (order.size() != graph.tasks.size()) {
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < graph.tasks.size(); ++i)
      if (place[i] == kNowhere) missing.push_back(text(graph.tasks[i].name));
    return bad_input(fmt::format("the sequence lacks {}", join_words(missing)),
                     "Every task of the pair runs once.");
  }
  for (std::size_t i = 0; i < graph.tasks.size(); ++i)
    for (const TaskId needed : graph.tasks[i].after)
      if (place[needed.index()] > place[i])
        return bad_input(fmt::format("{} is task {} of the sequence, before {}, task {}, which it needs",
                                     text(graph.tasks[i].name), place[i] + 1,
                                     text(graph.tasks[needed.index()].name), place[needed.index()] + 1));
  return order;
}

std::vector<std::string> names_of(const TaskGraph& graph, std::span<const TaskId> order) {
  std::vector<std::string> names;
  names.reserve(order.size());
  for (const TaskId id : order) names.push_back(text(graph.tasks[id.index()].name));
  return names;
}

}  // namespace tessera::train
