#include "pair_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace tessera::train {
namespace {

// Where the job names this profile; nullopt when a flag did.
std::optional<Cursor> named_at(const Job& job) {
  if (!job.document) return std::nullopt;
  const auto cost = job.document->root().present("cost");
  const auto node = cost ? cost->present("profile") : std::nullopt;
  if (!node) return std::nullopt;
  const auto name = node->string();
  const auto folder = std::filesystem::path(job.file).parent_path();
  return name && (folder / *name).lexically_normal() == job.profile_file ? node : std::nullopt;
}

Error in_job(const Job& job, Error error) {
  const auto node = named_at(job);
  if (!node) return error;
  if (!error.file.empty() && error.file != job.file)
    error.message = fmt::format("{}: {}", error.file, error.message);
  error.file = job.file;
  error.line = node->line();
  error.key = node->path();
  return error;
}

}  // namespace

Result<PairProfile> PairProfile::read(const Job& job, const ModelCost& cost) {
  if (!job.stage_durations.empty())
    return std::unexpected(in_job(
        job, {.file = job.file,
              .key = "cost.stages",
              .message = "a profile of measured pairs and durations by hand per stage exclude each other",
              .hint = "Remove cost.stages, or the profile."}));
  const auto opened = ProfileDatabase::open(job.profile_file, ProfileAccess::read);
  if (!opened) return std::unexpected(in_job(job, opened.error()));
  const ProfileDatabase& database = *opened;
  PairProfile out(ProfileKeys(job, cost));
  std::vector<double> speeds = job.cluster.rank_speed;
  if (speeds.empty()) speeds = {1.0};
  std::ranges::sort(speeds);
  const auto [first, last] = std::ranges::unique(speeds);
  speeds.erase(first, last);
  for (const double speed : speeds) {
    TESSERA_TRY(std::vector<ProfileCell> cells, database.cells(out.keys_.mesh(speed), out.keys_.software()));
    for (ProfileCell& cell : cells)
      if (cell.source == ProfileSource::chunk_pair)
        out.cells_[speed][std::move(cell.key.pair)].emplace(std::move(cell.key.schedule), cell.value);
  }
  return out;
}

const PairProfile::Orders* PairProfile::orders(double rank_speed, const PairKey& pair) const {
  const auto at_speed = cells_.find(rank_speed);
  if (at_speed == cells_.end()) return nullptr;
  const auto found = at_speed->second.find(keys_.pair(pair));
  return found == at_speed->second.end() ? nullptr : &found->second;
}

bool PairProfile::knows(double rank_speed, const PairKey& pair) const {
  return orders(rank_speed, pair) != nullptr;
}

std::optional<Seconds> PairProfile::fastest(double rank_speed, const PairKey& pair) const {
  const Orders* known = orders(rank_speed, pair);
  if (known == nullptr) return std::nullopt;
  return std::ranges::min_element(*known, {}, [](const auto& order) { return order.second.median; })
      ->second.median;
}

const ProfileValue* PairProfile::find(double rank_speed, const PairKey& pair,
                                      std::span<const std::string> launch_order) const {
  const Orders* known = orders(rank_speed, pair);
  if (known == nullptr) return nullptr;
  const auto found = known->find(schedule_hash(launch_order));
  return found == known->end() ? nullptr : &found->second;
}

std::optional<MeasuredPair> measured_pair(const PairProfile& profile, const ExecutionPlan& plan,
                                          const PairKey& key, const PairPlan& pair) {
  const std::size_t rank = plan.actions.rank_of_stage[pair.forward.index()].index();
  const double speed = plan.rank_speed.empty() ? 1.0 : plan.rank_speed[rank];
  if (!profile.knows(speed, key)) return std::nullopt;
  // The plan's names count the model's layers, the key's those of each chunk.
  const auto order = order_by_names(
      pair_graph(plan.forward_graph(pair.forward), plan.backward_graph(pair.backward)), pair.sequence);
  if (!order) return std::nullopt;
  const ProfileValue* value = profile.find(speed, key, names_of(pair_graph(plan.costs, key), *order));
  if (value == nullptr) return std::nullopt;
  return MeasuredPair{.makespan = value->median, .error = value->error};
}

std::string profile_note(const Job& job, const ExecutionPlan& plan) {
  if (job.profile_file.empty()) return {};
  const auto measured =
      std::ranges::count_if(plan.pairs, [](const PairPlan& pair) { return pair.measured.has_value(); });
  return fmt::format("{} of the {} overlapped pairs have a measured time in {}.", measured, plan.pairs.size(),
                     job.profile_file);
}

}  // namespace tessera::train
