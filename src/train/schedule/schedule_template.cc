#include "tessera/train/schedule/schedule_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "tessera/core/base/text.h"
#include "tessera/train/schedule/check_schedule.h"

namespace tessera::train {
namespace {

// A plan holds every action; beyond this many it would not fit a file anyone can use.
constexpr std::int64_t kMostChunks = 1 << 26;

constexpr std::array<std::string_view, 3> kNames = {"1f1b", "interleaved", "interleaved-overlap"};

bool legal_group(std::int32_t pp, std::int32_t microbatches, std::int32_t group) noexcept {
  if (group < pp || group > microbatches) return false;
  const std::int32_t rest = microbatches % group;
  return rest == 0 || rest >= pp;
}

// "5", "5 and 9", "5, 6, 7, … and 13".
std::string some_of(const std::vector<std::int32_t>& groups) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> words;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups.size() > kShown && i == kShown - 2) {
      words.emplace_back("…");
      i = groups.size() - 1;
    }
    words.push_back(std::to_string(groups[i]));
  }
  return join_words(words);
}

Status check_group(const TemplateSizes& sizes, std::int32_t group) {
  const std::int32_t pp = sizes.pp, microbatches = sizes.microbatches;
  if (microbatches < pp)
    return bad_input(
        fmt::format("{} microbatches cannot fill an interleaved pipeline of {}", microbatches, pp),
        fmt::format("Use at least {} microbatches, or the 1f1b schedule.", pp));
  if (legal_group(pp, microbatches, group)) return {};
  const std::vector<std::int32_t> groups = legal_groups(pp, microbatches);
  const std::int32_t nearest =
      *std::ranges::min_element(groups, {}, [&](std::int32_t n) { return std::abs(n - group); });
  const std::string hint = fmt::format("The nearest legal group size is {}; legal {} {}.", nearest,
                                       groups.size() == 1 ? "is" : "are", some_of(groups));
  if (group < pp)
    return bad_input(
        fmt::format("a group of {} microbatches is smaller than the pipeline of {} ranks", group, pp), hint);
  if (group > microbatches)
    return bad_input(fmt::format("a group of {} is larger than the {} microbatches", group, microbatches),
                     hint);
  return bad_input(
      fmt::format("{} microbatches in groups of {} leave a last group of {}, fewer than the {} ranks",
                  microbatches, group, microbatches % group, pp),
      hint);
}

ActionList one_f_one_b(std::int32_t pp, std::int32_t microbatches) {
  ActionList list{.microbatches = microbatches};
  for (std::int32_t r = 0; r < pp; ++r) {
    const StageId stage(r);
    std::vector<Action>& actions = list.ranks.emplace_back();
    actions.reserve(2 * static_cast<std::size_t>(microbatches));
    const std::int32_t warmup = std::min(microbatches, pp - 1 - r);
    for (std::int32_t i = 0; i < warmup; ++i) actions.push_back(forward(stage, MicrobatchId(i)));
    for (std::int32_t i = warmup; i < microbatches; ++i) {
      actions.push_back(forward(stage, MicrobatchId(i)));
      actions.push_back(backward(stage, MicrobatchId(i - warmup)));
    }
    for (std::int32_t i = microbatches - warmup; i < microbatches; ++i)
      actions.push_back(backward(stage, MicrobatchId(i)));
  }
  return list;
}

struct Step {
  std::int32_t chunk;
  std::int32_t microbatch;
};

// Groups of N microbatches; all chunks of a group before the next group.
std::vector<Step> interleaved_steps(std::int32_t vp, std::int32_t microbatches, std::int32_t group) {
  std::vector<Step> steps;
  steps.reserve(static_cast<std::size_t>(vp) * static_cast<std::size_t>(microbatches));
  for (std::int32_t first = 0; first < microbatches; first += std::min(group, microbatches - first))
    for (std::int32_t chunk = 0; chunk < vp; ++chunk)
      for (std::int32_t m = first; m < first + std::min(group, microbatches - first); ++m)
        steps.push_back({chunk, m});
  return steps;
}

ActionList interleaved(const TemplateSizes& sizes, std::int32_t group, bool in_pairs) {
  const std::vector<Step> steps = interleaved_steps(sizes.vp, sizes.microbatches, group);
  const auto total = static_cast<std::int64_t>(steps.size());
  ActionList list{.microbatches = sizes.microbatches};
  for (std::int32_t r = 0; r < sizes.pp; ++r) {
    const auto forward_at = [&](std::int64_t i) {
      const Step step = steps[static_cast<std::size_t>(i)];
      return forward(StageId(std::int64_t{step.chunk} * sizes.pp + r), MicrobatchId(step.microbatch));
    };
    // Backward visits the chunks the other way round.
    const auto backward_at = [&](std::int64_t i) {
      const Step step = steps[static_cast<std::size_t>(i)];
      return backward(StageId(std::int64_t{sizes.vp - 1 - step.chunk} * sizes.pp + r),
                      MicrobatchId(step.microbatch));
    };
    // With pairs one forward more, so that the two halves of a steady step do not depend on each other.
    const std::int64_t warmup = std::min(
        total, 2 * std::int64_t{sizes.pp - 1 - r} + std::int64_t{sizes.vp - 1} * group + (in_pairs ? 1 : 0));
    std::vector<Action>& actions = list.ranks.emplace_back();
    actions.reserve(static_cast<std::size_t>(2 * total));
    for (std::int64_t i = 0; i < warmup; ++i) actions.push_back(forward_at(i));
    for (std::int64_t i = warmup; i < total; ++i) {
      if (in_pairs) {
        actions.push_back(overlap(forward_at(i), backward_at(i - warmup)));
      } else {
        actions.push_back(forward_at(i));
        actions.push_back(backward_at(i - warmup));
      }
    }
    for (std::int64_t i = total - warmup; i < total; ++i) actions.push_back(backward_at(i));
  }
  return list;
}

}  // namespace

std::string_view name(Template schedule) noexcept {
  return kNames[static_cast<std::size_t>(schedule)];
}

Result<Template> template_by_name(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<Template>(i);
  const auto meant = nearest(name, kNames);
  return bad_input(fmt::format("there is no schedule {}", name),
                   fmt::format("{}The schedules are 1f1b, interleaved and interleaved-overlap.",
                               meant ? fmt::format("Did you mean {}? ", *meant) : ""));
}

std::vector<std::int32_t> legal_groups(std::int32_t pp, std::int32_t microbatches) {
  std::vector<std::int32_t> groups;
  for (std::int32_t n = std::max(pp, 1); n <= microbatches; ++n)
    if (legal_group(pp, microbatches, n)) groups.push_back(n);
  return groups;
}

Result<ActionList> make_schedule(Template schedule, const TemplateSizes& sizes) {
  if (sizes.pp < 1) return bad_input(fmt::format("a pipeline of {} ranks; expected at least 1", sizes.pp));
  if (sizes.vp < 1)
    return bad_input(fmt::format("{} virtual stages per rank; expected at least 1", sizes.vp));
  if (sizes.microbatches < 1)
    return bad_input(fmt::format("{} microbatches; expected at least 1", sizes.microbatches));
  if (sizes.group < 0)
    return bad_input(
        fmt::format("a group of {} microbatches; expected 0 (as many as ranks) or more", sizes.group));
  // Divided rather than multiplied: three large sizes would overflow.
  if (kMostChunks / sizes.pp / sizes.vp < sizes.microbatches)
    return bad_input(fmt::format("{} ranks × {} virtual stages × {} microbatches are more than {} chunks",
                                 sizes.pp, sizes.vp, sizes.microbatches, with_thousands(kMostChunks)));

  std::int32_t group = sizes.group == 0 ? sizes.pp : sizes.group;
  if (schedule == Template::one_f_one_b) {
    if (sizes.vp != 1)
      return bad_input(fmt::format("1f1b has one virtual stage per rank, not {}", sizes.vp),
                       "Use interleaved or interleaved-overlap, or set vp to 1.");
  } else if (sizes.vp > 1 && !sizes.any_group) {
    TESSERA_CHECK(check_group(sizes, group));
  }
  ActionList list = schedule == Template::one_f_one_b
                        ? one_f_one_b(sizes.pp, sizes.microbatches)
                        : interleaved(sizes, group, schedule == Template::interleaved_overlap);
  for (std::int32_t s = 0; s < sizes.pp * sizes.vp; ++s) list.rank_of_stage.emplace_back(s % sizes.pp);
  // The legal sizes always run; for the others it depends (pairs wait for more than single actions do).
  if (sizes.any_group) TESSERA_CHECK(check_schedule(list));
  return list;
}

}  // namespace tessera::train
