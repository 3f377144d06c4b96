// What torch's own loader says of a file: the behaviour of PyTorch 2.13's _PipelineScheduleRuntime._load_csv
// (torch/distributed/pipelining/schedules.py), stated anew.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <expected>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "tessera/core/base/text.h"
#include "tessera/train/schedule/torch_csv.h"

namespace tessera::train {
namespace {

constexpr std::string_view kOverlap = "OVERLAP_F_B";
// In the order in which the loader tries them.
constexpr std::array<std::string_view, 11> kTypes = {
    "F", "I", "B", "W", "UNSHARD", "RESHARD", "REDUCE_GRAD", "SEND_F", "RECV_F", "SEND_B", "RECV_B"};

// Indices stay text: the loader takes any number of digits.
struct LooseAction {
  std::int64_t stage = -1;
  std::string_view type;
  std::int64_t microbatch = -1;  // −1 = none
  std::vector<LooseAction> parts;
};

struct Refusal {
  std::string reason;
};
template <class T>
using Loaded = std::expected<T, Refusal>;

std::unexpected<Refusal> refuse(std::string reason) {
  return std::unexpected(Refusal{std::move(reason)});
}

std::size_t digits(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}
// Larger numbers than any list has are all the same here.
std::int64_t number(std::string_view text) {
  return to_integer(text).value_or(std::numeric_limits<std::int64_t>::max());
}

Loaded<LooseAction> parse_single(std::string_view text) {
  const auto invalid = [&] { return refuse(fmt::format("RuntimeError: Invalid action string: {}", text)); };
  const std::size_t stage = digits(text);
  if (stage == 0) return invalid();
  const std::string_view rest = text.substr(stage);
  for (const std::string_view type : kTypes) {
    if (!rest.starts_with(type)) continue;
    // Whatever follows the digits is not looked at.
    const std::string_view tail = rest.substr(type.size());
    const std::size_t length = digits(tail);
    return LooseAction{.stage = number(text.substr(0, stage)),
                       .type = type,
                       .microbatch = length == 0 ? -1 : number(tail.substr(0, length))};
  }
  return invalid();
}

Loaded<std::optional<LooseAction>> parse(std::string_view cell) {
  const std::string_view text = trim(cell);
  if (text.empty()) return std::nullopt;
  const std::size_t close = text.find(')');
  if (!text.starts_with('(') || close == std::string_view::npos) {
    auto single = parse_single(text);
    if (!single) return std::unexpected(single.error());
    return *std::move(single);
  }
  LooseAction group;
  if (const std::string_view inside = trim(text.substr(1, close - 1)); !inside.empty())
    for (const std::string_view piece : split(inside, ';')) {
      if (trim(piece).empty()) continue;
      auto part = parse_single(trim(piece));
      if (!part) return std::unexpected(part.error());
      group.parts.push_back(*std::move(part));
    }
  const std::string_view type = text.substr(close + 1);
  if (type == kOverlap) {
    group.type = kOverlap;
  } else {
    const auto known = std::ranges::find(kTypes, type);
    if (known == kTypes.end()) return refuse(fmt::format("RuntimeError: Invalid computation type {}", type));
    group.type = *known;
  }
  return group;
}

using Row = std::vector<std::optional<LooseAction>>;

Loaded<std::vector<Row>> parse_rows(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  std::vector<Row> rows;
  if (text.empty()) return rows;
  for (std::string_view line : split(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    Row& row = rows.emplace_back();
    if (line.empty()) continue;  // a row of no cells, not of one empty cell
    for (const std::string_view cell : split(line, ',')) {
      auto action = parse(cell);
      if (!action) return std::unexpected(action.error());
      row.push_back(*std::move(action));
    }
  }
  return rows;
}

bool is_compute(std::string_view type) {
  return type == "F" || type == "B" || type == "I" || type == "W" || type == kOverlap;
}
std::vector<LooseAction> leaves(const LooseAction& action) {
  return action.parts.empty() ? std::vector{action} : action.parts;
}

// Counts sets per stage, so that a second equal action goes unseen.
class Validation {
 public:
  explicit Validation(std::int64_t stages) : stages_(stages) {}

  Loaded<void> add(const LooseAction& action, std::size_t rank, std::size_t step) {
    const auto where = [&] { return fmt::format("AssertionError: Rank {}, step {}: ", rank, step); };
    const std::string_view type = action.type;
    if (type == "F" || type == "B" || type == "I" || type == "W") {
      if (action.stage < 0 || action.stage >= stages_)
        return refuse(fmt::format("KeyError: {}", action.stage));
      auto& of = seen_[action.stage];
      if ((type == "B" || type == "I") && !of["F"].contains(action.microbatch))
        return refuse(where() +
                      fmt::format("Running {} for stage {}, microbatch {} without first running Forward",
                                  type == "B" ? "Full Backward" : "Backward Input", action.stage,
                                  action.microbatch));
      if (type == "W" && !of["I"].contains(action.microbatch))
        return refuse(where() +
                      fmt::format("Running Backward Weight for stage {}, microbatch {} without first "
                                  "running Backward Input",
                                  action.stage, action.microbatch));
      of[type].insert(action.microbatch);
    }
    const auto [home, fresh] = ranks_.try_emplace(action.stage, rank);
    if (!fresh && home->second != rank)
      return refuse(where() + fmt::format("Stage {} is assigned to both rank {} and rank {}", action.stage,
                                          rank, home->second));
    return {};
  }

  Loaded<void> counts(std::int64_t microbatches) {
    for (std::int64_t stage = 0; stage < stages_; ++stage) {
      // A stage that nothing names has the right counts when all are zero; there may be very many.
      if (microbatches == 0 && !seen_.contains(stage)) {
        const auto next = seen_.upper_bound(stage);
        if (next == seen_.end()) break;
        stage = next->first;
      }
      auto& of = seen_[stage];
      const auto count = [&](std::string_view type) { return static_cast<std::int64_t>(of[type].size()); };
      if (count("F") != microbatches)
        return refuse(fmt::format("AssertionError: Got {} F microbatches for stage {}, expected {}",
                                  count("F"), stage, microbatches));
      if (count("I") != count("W"))
        return refuse(
            fmt::format("AssertionError: Invalid backward microbatches for stage {}: I and W must have "
                        "equal counts, but got I={}, W={}",
                        stage, count("I"), count("W")));
      if (count("B") + count("I") != microbatches)
        return refuse(
            fmt::format("AssertionError: Invalid backward microbatches for stage {}: expected {} total "
                        "backwards, but got B={}, I={}, W={}",
                        stage, microbatches, count("B"), count("I"), count("W")));
    }
    return {};
  }
  [[nodiscard]] std::optional<std::size_t> rank_of(std::int64_t stage) const {
    const auto home = ranks_.find(stage);
    return home == ranks_.end() ? std::nullopt : std::optional(home->second);
  }

 private:
  std::int64_t stages_;
  std::map<std::int64_t, std::map<std::string_view, std::set<std::int64_t>>> seen_;
  std::map<std::int64_t, std::size_t> ranks_;
};

// Can sends and receives be put in? Data are known per rank, by stage and microbatch.
bool lowers(const std::vector<Row>& rows, const Validation& placed, std::int64_t stages) {
  using Datum = std::tuple<std::size_t, char, std::int64_t, std::int64_t>;
  std::set<Datum> known;
  const auto backward = [](const LooseAction& a) { return a.type == "B" || a.type == "I"; };
  const auto ready = [&](std::size_t rank, const LooseAction& a) {
    if (a.type == "F") return a.stage == 0 || known.contains({rank, 'F', a.stage - 1, a.microbatch});
    if (backward(a)) return a.stage == stages - 1 || known.contains({rank, 'B', a.stage + 1, a.microbatch});
    return true;
  };
  std::vector<std::size_t> at(rows.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (; at[r] < rows[r].size(); ++at[r], moved = true) {
        if (!rows[r][at[r]]) continue;
        const std::vector<LooseAction> all = leaves(*rows[r][at[r]]);
        if (!std::ranges::all_of(all, [&](const LooseAction& a) { return ready(r, a); })) break;
        for (const LooseAction& a : all) {
          if (a.type != "F" && !backward(a)) continue;
          const char pass = a.type == "F" ? 'F' : 'B';
          known.insert({r, pass, a.stage, a.microbatch});
          if (const auto peer = placed.rank_of(a.stage + (pass == 'F' ? 1 : -1)))
            known.insert({*peer, pass, a.stage, a.microbatch});
        }
      }
  }
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (at[r] < rows[r].size()) return false;
  return true;
}

Loaded<void> load(std::string_view text, const TorchRuntime& runtime) {
  auto parsed = parse_rows(text);
  if (!parsed) return std::unexpected(parsed.error());
  const std::vector<Row>& rows = *parsed;

  bool messages = false;
  std::int64_t most_stages = 0;
  std::set<std::int64_t> microbatches;  // of stage 0's forwards
  for (const Row& row : rows)
    for (const auto& action : row) {
      if (!action) continue;
      messages = messages || !is_compute(action->type);
      for (const LooseAction& leaf : leaves(*action)) {
        most_stages = std::max(most_stages,
                               leaf.stage == std::numeric_limits<std::int64_t>::max() ? 0 : leaf.stage + 1);
        if (leaf.type == "F" && leaf.stage == 0) microbatches.insert(leaf.microbatch);
      }
    }
  const auto ranks =
      runtime.ranks.value_or(std::max<std::int64_t>(1, static_cast<std::int64_t>(rows.size())));
  const std::int64_t stages = runtime.stages.value_or(most_stages);
  const CsvForm form = runtime.form.value_or(messages ? CsvForm::compute_comms : CsvForm::compute_only);

  if (ranks != static_cast<std::int64_t>(rows.size()))
    return refuse(
        fmt::format("AssertionError: Schedule has incorrect number of ranks - expected {}, actual {}", ranks,
                    rows.size()));
  Validation validation(stages);
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      if (!rows[r][i]) continue;
      for (const LooseAction& leaf : leaves(*rows[r][i]))
        if (auto added = validation.add(leaf, r, i); !added) return added;
    }
  if (auto counted =
          validation.counts(runtime.microbatches.value_or(static_cast<std::int64_t>(microbatches.size())));
      !counted)
    return counted;

  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      const auto& action = rows[r][i];
      if (form == CsvForm::compute_comms && !action)
        return refuse("AssertionError: Expected action to be not None, got <class 'NoneType'>");
      if (form == CsvForm::compute_only && action && !is_compute(action->type))
        return refuse(
            fmt::format("ValueError: Expected compute-only schedule but found communication action at "
                        "rank {}, position {}",
                        r, i));
    }
  if (form == CsvForm::compute_only)
    for (std::size_t r = 0; r < rows.size(); ++r)
      if (std::ranges::none_of(rows[r], [](const auto& action) { return action.has_value(); }))
        return refuse(fmt::format("AssertionError: rank={}, len(compute_actions[rank])=0", r));
  if (form == CsvForm::compute_only && !lowers(rows, validation, stages))
    return refuse("AssertionError: Malformed compute schedule, can't schedule sends/recvs");
  return {};
}

}  // namespace

TorchVerdict torch_loads(std::string_view text, const TorchRuntime& runtime) {
  const auto loaded = load(text, runtime);
  return loaded ? TorchVerdict{.accepted = true, .reason = {}}
                : TorchVerdict{.accepted = false, .reason = loaded.error().reason};
}

}  // namespace tessera::train
