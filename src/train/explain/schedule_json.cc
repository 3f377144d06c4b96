#include <nlohmann/json.hpp>

#include "schedule_words.h"
#include "tessera/train/explain/schedules.h"

namespace tessera::train {
namespace {

using Json = nlohmann::ordered_json;

// File names may be in any encoding; JSON is UTF-8.
std::string to_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json head(std::string_view file, const TorchCsv& csv) {
  return {{"file", file},
          {"format", "torch-csv"},
          {"form", form_name(csv.form)},
          {"grammar", grammar_name(csv.grammar)},
          {"ranks", csv.list.ranks.size()},
          {"stages", csv.list.stages()},
          {"microbatches", csv.list.microbatches}};
}

}  // namespace

std::string schedule_json(std::string_view file, const TorchCsv& csv) {
  Json out = head(file, csv);
  const ScheduleCounts counts = count_cells(csv.list);
  out["stages_of_rank"] = stages_of_ranks(csv.list);
  out["idle_cells"] = csv.idle_cells;
  out["forwards"] = counts.forwards;
  out["whole_backwards"] = counts.whole_backwards;
  out["input_gradients"] = counts.input_gradients;
  out["weight_gradients"] = counts.weight_gradients;
  out["pairs"] = counts.pairs;
  out["messages"] = counts.messages;
  out["gathers"] = counts.gathers;
  out["reductions"] = counts.reductions;
  if (const auto times = time_schedule(without_communication(csv.list))) {
    Json busy = Json::array();
    for (const Seconds of : times->busy) busy.push_back(of.value());
    out["unit_times"] = {{"makespan", times->makespan.value()},
                         {"busy", std::move(busy)},
                         {"bubble", times->bubble()},
                         {"own_span_bubble", times->own_span_bubble()}};
  }
  return to_text(out);
}

std::string schedule_check_json(std::string_view file, const TorchCsv& csv, const LoweredFacts& facts) {
  Json out = head(file, csv);
  out["sound"] = true;
  out["actions"] = facts.compute.actions;
  out["messages"] = facts.messages;
  out["groups"] = facts.groups;
  out["largest_group"] = facts.largest_group;
  out["peak_live"] = facts.compute.peak_live;
  out["peak_until_weight"] = facts.compute.peak_until_weight;
  out["overtaking"] = facts.overtaking ? Json(overtaking_words(*facts.overtaking)) : Json();
  return to_text(out);
}

std::string torch_verdict_json(std::string_view file, const TorchVerdict& verdict) {
  return to_text({{"file", file},
                  {"as", "torch"},
                  {"accepted", verdict.accepted},
                  {"reason", verdict.accepted ? Json() : Json(verdict.reason)}});
}

std::string schedules_json(const SchedulesQuestion& question) {
  Json rows = Json::array();
  for (const TemplateFigures& row :
       compare_templates(question.sizes, question.chunk, question.transfer, question.pair_share)) {
    Json of = {{"template", name(row.schedule)}, {"chunks", row.chunks}, {"legal", row.legal}};
    if (row.legal) {
      of["group"] = row.group == 0 ? Json() : Json(row.group);
      of["makespan"] = row.makespan.value();
      of["over_work"] = row.over_work;
      of["bubble"] = row.bubble;
      of["own_span_bubble"] = row.own_span_bubble;
      of["peak_live"] = row.peak_live;
      of["peak_until_weight"] = row.peak_until_weight;
    } else {
      of["refusal"] = row.refusal.message;
    }
    rows.push_back(std::move(of));
  }
  return to_text({{"pp", question.sizes.pp},
                  {"vp", question.sizes.vp},
                  {"microbatches", question.sizes.microbatches},
                  {"templates", std::move(rows)}});
}

}  // namespace tessera::train
