#include "instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

#include "../report.h"
#include "tessera/train/partition/rivals.h"

namespace tessera::bench {

using namespace train;

std::vector<InstanceSpec> paper_specs() {
  // Variables: Tessera paper, solver table. Its models are not published in full: M and L stand for them.
  return {{"M-PP8-C2", "partition/m-pp8.yaml", {{"layout.vp", "2"}}, 9'358},
          {"L-PP8-C2", "partition/l-pp8.yaml", {{"layout.vp", "2"}}, 23'180},
          {"M-PP8-C4", "partition/m-pp8.yaml", {{"layout.vp", "4"}}, 16'192},
          {"L-PP8-C4", "partition/l-pp8.yaml", {{"layout.vp", "4"}}, 35'904}};
}

std::vector<InstanceSpec> model_specs() {
  std::vector<InstanceSpec> out;
  for (const char* model : {"qwen3-next-80b", "qwen3-235b", "deepseek-v3", "nemotron-3-super", "glm-4.5",
                            "kimi-linear", "gpt-oss-120b", "minimax-m2"})
    out.push_back({.name = model, .file = fmt::format("plan/{}.yaml", model)});
  return out;
}

Result<std::unique_ptr<Instance>> Instance::open(const InstanceSpec& spec) {
  std::unique_ptr<Instance> out(new Instance);
  out->name = spec.name;
  TESSERA_TRY(out->job, read_job_file(fmt::format("{}/bench/{}", TESSERA_SOURCE, spec.file), spec.overrides));
  out->job.partition_rule = PartitionRule::overlap_aware;
  TESSERA_TRY(out->priced, price_job(out->job));
  TESSERA_TRY(PlanFrame frame, make_frame(out->job, out->priced, out->job.schedule));
  out->frame = std::make_unique<PlanFrame>(std::move(frame));
  out->costs = std::make_unique<ModelStageCosts>(stage_costs(out->job, out->priced, *out->frame));
  TESSERA_TRY(PartitionTask task, partition_task(out->job, out->priced, *out->frame, *out->costs));
  out->problem = std::move(task.problem);
  out->legal = std::move(task.legal);
  out->serial = std::move(task.serial);
  out->window = spec.window;
  out->problem = out->around(out->serial);
  while (count_variables(out->problem) < spec.variables) {
    if (++out->widened == out->problem.stages() - 1) ++out->window, out->widened = 0;
    out->problem = out->around(out->serial);
  }
  return out;
}

std::unique_ptr<ModelStageCosts> Instance::own_costs(unsigned threads) const {
  return std::make_unique<ModelStageCosts>(
      priced.input, priced.cost,
      ModelCostOptions{
          .interference = priced.interference, .stage_speed = stage_speeds(job), .threads = threads});
}

WindowResult Instance::sweep(std::int32_t keep) {
  return solve_in_window(
      problem, legal, *costs, serial,
      {.solve = {.keep = keep, .incumbent = serial}, .window = window, .widened = widened});
}

PartitionProblem Instance::around(const Partition& center) const {
  PartitionProblem out = problem;
  out.places = places_around(legal, center, window, widened);
  return out;
}

Seconds Instance::slowest(const Partition& partition) {
  PartitionProblem free = problem;
  std::vector<std::int32_t> anywhere(static_cast<std::size_t>(problem.blocks) + 1);
  std::iota(anywhere.begin(), anywhere.end(), 0);
  free.places.assign(partition.stages.size() - 1, anywhere);
  free.empty_stages = true;
  free.budget.clear();
  const auto value = evaluate(free, *costs, partition);
  verify(value.has_value(), name + ": a rival is no partition");
  return value->slowest;
}

bool Instance::places(const Partition& partition) const {
  for (std::size_t s = 1; s < partition.stages.size(); ++s)
    if (!std::ranges::binary_search(legal[s - 1], partition.stages[s].begin)) return false;
  return true;
}

Result<Simulated> Instance::simulated(const Partition& partition) {
  schedule_pairs(*frame, {&partition, 1});
  TESSERA_TRY(const ExecutionPlan plan, fill_frame(*frame, job, priced, partition));
  TESSERA_TRY(const SimulateResult result, simulate(plan));
  Bytes peak;
  for (const RankResult& rank : result.ranks) peak = std::max(peak, rank.peak_memory);
  return Simulated{result.iteration,
                   plan.memory_limit.value() <= 0 || peak <= plan.memory_limit * kUsableMemory};
}

Result<std::vector<Rival>> rivals(const Instance& instance) {
  const Job& job = instance.job;
  const std::int64_t stages = job.layout.stages();
  std::vector<Rival> out(5);
  out[0].name = "even";
  TESSERA_TRY(out[0].partition, even_partition(job.model, stages));
  out[1].name = "parameters";
  TESSERA_TRY(out[1].partition, parameter_balanced_partition(job.model, stages));
  out[2].name = "FLOPs";
  TESSERA_TRY(out[2].partition, flop_balanced_partition(job.model, stages, job.layout.sequence));
  out[3].name = "serial";
  out[3].partition = instance.serial;
  out[4].name = "Alpa";
  TESSERA_TRY(out[4].partition, alpa_partition(job.model, serial_times(job.model, instance.priced.cost),
                                               stages, job.layout.microbatches, stage_speeds(job)));
  return out;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void verify_result(const PartitionProblem& problem, StageCosts& costs, const PartitionResult& result,
                   const std::string& name) {
  constexpr double rounding = 1e-12;
  verify(!result.best.empty(), name + ": no partition found");
  for (const PartitionChoice& choice : result.best) {
    const auto value = evaluate(problem, costs, choice.partition);
    verify(value.has_value(), name + ": " + (value ? "" : value.error().text()));
    verify(value->slowest == choice.value.slowest && value->work == choice.value.work,
           name + ": a partition has another value than claimed");
    verify(value->slowest <= result.reach * (1 + rounding), name + ": a partition exceeds the reach");
  }
  verify(result.best.front().value.slowest >= result.bound * (1 - rounding), name + ": below its bound");
}

}  // namespace tessera::bench
