#include <nlohmann/json.hpp>

#include "tessera/core/cost/task.h"
#include "tessera/train/explain/explain.h"

namespace tessera::train {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name(Binding binding) {
  switch (binding) {
    case Binding::compute:
      return "compute";
    case Binding::communication:
      return "communication";
    case Binding::forward_chain:
      return "forward_chain";
    case Binding::backward_chain:
      return "backward_chain";
    case Binding::order:
      return "order";
  }
  return "unknown";
}

std::string name(const TaskGraph& graph, TaskId id) {
  const TaskName& task = graph.tasks[id.index()].name;
  return task_name(task.pass, task.kind, task.layer);
}

Json names(const TaskGraph& graph, const std::vector<TaskId>& ids) {
  Json out = Json::array();
  for (const TaskId id : ids) out.push_back(name(graph, id));
  return out;
}

Json name_or_null(const TaskGraph& graph, std::optional<TaskId> id) {
  return id ? Json(name(graph, *id)) : Json(nullptr);
}

Json stage_json(const PairStage& stage) {
  return {
      {"stage", stage.stage.value()}, {"rank", stage.rank}, {"layers", stage.layers}, {"holds", stage.holds}};
}

Json rows_json(const PairReport& report) {
  const double comm = report.bounds.communication.value();
  Json out = Json::array();
  for (const PairRow& row : report.rows)
    out.push_back({{"method", row.name},
                   {"reason", std::string(name(row.reason))},
                   {"makespan_seconds", row.makespan.value()},
                   {"above", row.above},
                   {"exposed_communication_seconds", row.exposed.value()},
                   {"exposed_communication", comm > 0 ? row.exposed.value() / comm : 0.0},
                   {"interference_makespan_seconds", row.slowed.value()},
                   {"bound_seconds", row.bound.value()},
                   {"work", row.work},
                   {"solve_seconds", row.solve_time.value()},
                   {"left_to_pool", names(report.graph, row.left)}});
  return out;
}

Json order_json(const PairReport& report) {
  Json tasks = Json::array();
  for (const TaskId id : report.nominal.order) {
    const Task& task = report.graph.tasks[id.index()];
    tasks.push_back({{"task", name(report.graph, id)},
                     {"resource", task.resource == Resource::comm ? "comm" : "comp"},
                     {"start_seconds", report.nominal.start[id.index()].value()},
                     {"end_seconds", report.nominal.end[id.index()].value()},
                     {"interference_start_seconds", report.slowed.start[id.index()].value()},
                     {"interference_end_seconds", report.slowed.end[id.index()].value()}});
  }
  return {{"makespan_seconds", report.nominal.makespan.value()},
          {"interference_makespan_seconds", report.slowed.makespan.value()},
          {"tasks", tasks},
          {"left_to_pool", names(report.graph, report.nominal.left)}};
}

Json path_json(const PairReport& report) {
  Json out = Json::array();
  for (std::size_t i = 0; i < report.path.size(); ++i) {
    const CriticalTask& at = report.path[i];
    out.push_back({{"task", name(report.graph, at.task)},
                   {"after", i == 0                 ? "start"
                             : at.waited_for_stream ? "stream"
                                                    : "task"}});
  }
  return out;
}

Json gaps_json(const PairReport& report) {
  Json out = Json::array();
  for (const ComputeGap& gap : report.gaps)
    out.push_back({{"begin_seconds", gap.begin.value()},
                   {"end_seconds", gap.end.value()},
                   {"next", name_or_null(report.graph, gap.next)},
                   {"awaited", name_or_null(report.graph, gap.awaited)},
                   {"queued_behind", name_or_null(report.graph, gap.queued_behind)}});
  return out;
}

}  // namespace

std::string pair_json(const PairReport& report) {
  const Json out{{"model", report.model},
                 {"device", report.device},
                 {"schedule", report.schedule},
                 {"forward", stage_json(report.forward)},
                 {"backward", stage_json(report.backward)},
                 {"overlapped", report.overlapped},
                 {"pool_credit_seconds", report.pool_credit.value()},
                 {"interference",
                  {{"compute_bound_rate", report.interference.compute_bound_rate},
                   {"memory_bound_rate", report.interference.memory_bound_rate}}},
                 {"optimum_seconds", report.optimum.value()},
                 {"proved", report.proved},
                 {"bound_seconds", report.bound.value()},
                 {"gap", report.bound > Seconds(0) ? report.optimum / report.bound - 1 : 0.0},
                 {"binding", std::string(name(report.binding))},
                 {"bounds",
                  {{"compute_seconds", report.bounds.compute.value()},
                   {"communication_seconds", report.bounds.communication.value()},
                   {"forward_chain_seconds", report.bounds.forward_chain.value()},
                   {"backward_chain_seconds", report.bounds.backward_chain.value()}}},
                 {"methods", rows_json(report)},
                 {"order", order_json(report)},
                 {"critical_path", path_json(report)},
                 {"compute_gaps", gaps_json(report)}};
  // Names may come from files in any encoding; JSON is UTF-8.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tessera::train
