#include "tessera/train/schedule/schedule_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string>

#include "families.h"
#include "tessera/core/base/text.h"
#include "tessera/train/schedule/check_schedule.h"

namespace tessera::train {
namespace {

// A plan holds every action; beyond this many it would not fit a file anyone can use.
constexpr std::int64_t kMostChunks = 1 << 26;

constexpr std::int32_t kMostEffort = 1000;
constexpr std::int32_t kAny = 0;
using enum StagePlacement;
// In the order of Template.
constexpr std::array<TemplateTraits, kTemplates> kTraits = {{
    {.name = "1f1b", .chunks = 1},
    {.name = "interleaved", .chunks = kAny, .groups = true},
    {.name = "interleaved-overlap", .chunks = kAny, .groups = true, .pairs = true},
    {.name = "gpipe", .chunks = 1},
    {.name = "looped-bfs", .chunks = kAny},
    {.name = "1f1b-overlap", .chunks = 1, .pairs = true},
    {.name = "interleaved-zb", .chunks = kAny, .groups = true, .split = true},
    {.name = "zb-h1", .chunks = 1, .durations = true, .split = true},
    {.name = "zb-h2", .chunks = 1, .durations = true, .split = true},
    {.name = "zb-v", .chunks = 2, .placement = v_shape, .durations = true, .split = true},
    {.name = "zb-v-torch", .chunks = 2, .placement = v_shape, .split = true},
    {.name = "1f1b-v", .chunks = 2, .placement = v_shape, .durations = true},
    {.name = "v-half", .chunks = 2, .placement = v_shape, .durations = true, .split = true},
    {.name = "v-min", .chunks = 2, .placement = v_shape, .durations = true, .split = true},
    {.name = "dualpipe", .chunks = 2, .placement = two_ways, .split = true, .pairs = true},
    {.name = "dualpipe-v", .chunks = 2, .placement = v_shape, .split = true, .pairs = true},
}};

// "ZB_V" and "zbv" → "zbv".
std::string bare(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c != '-' && c != '_' && c != ' ') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

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

// Sizes that every template needs.
Status check_counts(const TemplateSizes& sizes) {
  if (sizes.pp < 1) return bad_input(fmt::format("a pipeline of {} ranks; expected at least 1", sizes.pp));
  if (sizes.vp < 1)
    return bad_input(fmt::format("{} virtual stages per rank; expected at least 1", sizes.vp));
  if (sizes.microbatches < 1)
    return bad_input(fmt::format("{} microbatches; expected at least 1", sizes.microbatches));
  if (sizes.group < 0)
    return bad_input(
        fmt::format("a group of {} microbatches; expected 0 (the default) or more", sizes.group));
  // Divided rather than multiplied: three large sizes would overflow.
  if (kMostChunks / sizes.pp / sizes.vp < sizes.microbatches)
    return bad_input(fmt::format("{} ranks × {} virtual stages × {} microbatches are more than {} chunks",
                                 sizes.pp, sizes.vp, sizes.microbatches, with_thousands(kMostChunks)));
  return {};
}

Status check_chunks(const TemplateTraits& template_, std::int32_t vp) {
  if (template_.chunks == kAny || template_.chunks == vp) return {};
  if (template_.chunks == 1)
    return bad_input(fmt::format("{} has one virtual stage per rank, not {}", template_.name, vp),
                     "Use interleaved or interleaved-overlap, or set vp to 1.");
  return bad_input(
      fmt::format("{} has {} virtual stages per rank, not {}", template_.name, template_.chunks, vp),
      fmt::format("Set vp to {}.", template_.chunks));
}

Status check_dual_pipe(Template schedule, const TemplateSizes& sizes) {
  const bool folded = schedule == Template::dual_pipe_v;
  if (!folded && sizes.pp % 2 != 0)
    return bad_input(fmt::format("dualpipe needs an even number of ranks, not {}", sizes.pp),
                     fmt::format("The nearest legal pp is {}; dualpipe-v takes any.", sizes.pp + 1));
  if (sizes.microbatches < 2 * sizes.pp)
    return bad_input(fmt::format("{} microbatches are too few for {} on {} ranks", sizes.microbatches,
                                 name(schedule), sizes.pp),
                     fmt::format("The nearest legal number is 2 · pp = {}.", 2 * sizes.pp));
  if (!folded && sizes.microbatches % 2 != 0)
    return bad_input(
        fmt::format("dualpipe sends half of the microbatches each way; {} cannot be halved",
                    sizes.microbatches),
        fmt::format("The nearest legal numbers are {} and {}; dualpipe-v takes any from 2 · pp on.",
                    sizes.microbatches - 1, sizes.microbatches + 1));
  return {};
}

Status check_costs(const TemplateSizes& sizes, const ScheduleCosts& costs) {
  const std::int64_t stages = std::int64_t{sizes.pp} * sizes.vp;
  if (!costs.stages.empty() && static_cast<std::int64_t>(costs.stages.size()) != stages)
    return bad_input(fmt::format("durations of {} stages, but there are {}", costs.stages.size(), stages));
  const auto amount = [](Seconds time) { return std::isfinite(time.value()) && time.value() >= 0; };
  for (std::size_t s = 0; s < costs.stages.size(); ++s)
    if (const StageCost& c = costs.stages[s];
        !amount(c.forward) || !amount(c.input_gradient) || !amount(c.weight_gradient))
      return bad_input(fmt::format("stage {} takes {}, {} and {} s; expected finite numbers ≥ 0", s,
                                   c.forward.value(), c.input_gradient.value(), c.weight_gradient.value()));
  if (!amount(costs.transfer))
    return bad_input(
        fmt::format("a transfer takes {} s; expected a finite number ≥ 0", costs.transfer.value()));
  if (sizes.effort < 0 || sizes.effort > kMostEffort)
    return bad_input(fmt::format("an effort of {}; expected 0 … {}", sizes.effort, kMostEffort));
  if (sizes.most_live != 0 && sizes.most_live < sizes.vp)
    return bad_input(fmt::format("a rank that may hold {} chunk activations cannot run {} virtual stages",
                                 sizes.most_live, sizes.vp),
                     fmt::format("The least is {}.", sizes.vp));
  return {};
}

std::int32_t default_group(Template schedule, const TemplateSizes& sizes) {
  if (schedule == Template::interleaved_zb && !sizes.any_group && sizes.vp > 1) {
    const std::vector<std::int32_t> legal = legal_groups(sizes.pp, sizes.microbatches);
    if (!legal.empty()) return legal.front();
  }
  return sizes.pp;
}

}  // namespace

const TemplateTraits& traits(Template schedule) noexcept {
  return kTraits[static_cast<std::size_t>(schedule)];
}

std::string_view name(Template schedule) noexcept {
  return traits(schedule).name;
}

Result<Template> template_by_name(std::string_view name) {
  const std::string wanted = bare(name);
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < kTemplates; ++i) {
    if (bare(kTraits[i].name) == wanted) return static_cast<Template>(i);
    names.push_back(kTraits[i].name);
  }
  const auto meant = nearest(name, names);
  const std::vector<std::string> words(names.begin(), names.end());
  return bad_input(fmt::format("there is no schedule {}", name),
                   fmt::format("{}The schedules are {}.",
                               meant ? fmt::format("Did you mean {}? ", *meant) : "", join_words(words)));
}

std::vector<std::int32_t> legal_groups(std::int32_t pp, std::int32_t microbatches) {
  std::vector<std::int32_t> groups;
  for (std::int32_t n = std::max(pp, 1); n <= microbatches; ++n)
    if (legal_group(pp, microbatches, n)) groups.push_back(n);
  return groups;
}

RankId rank_of_stage(Template schedule, std::int32_t pp, StageId stage) noexcept {
  const std::int32_t rank = stage.value() % pp;
  // Both directions of dualpipe make a V, too: its second pipeline starts on the last rank.
  const bool back = traits(schedule).placement != StagePlacement::linear && stage.value() / pp % 2 == 1;
  return RankId(back ? pp - 1 - rank : rank);
}

ActionList empty_list(Template schedule, const TemplateSizes& sizes) {
  ActionList list{.microbatches = sizes.microbatches};
  if (traits(schedule).placement == StagePlacement::two_ways) {
    list.pipelines = 2;
    list.microbatches /= 2;
  }
  for (std::int32_t s = 0; s < sizes.pp * sizes.vp; ++s)
    list.rank_of_stage.push_back(rank_of_stage(schedule, sizes.pp, StageId(s)));
  list.ranks.resize(static_cast<std::size_t>(sizes.pp));
  return list;
}

Result<ActionList> make_schedule(Template schedule, const TemplateSizes& given, const ScheduleCosts& costs) {
  TESSERA_CHECK(check_counts(given));
  TESSERA_CHECK(check_chunks(traits(schedule), given.vp));
  TemplateSizes sizes = given;
  if (sizes.group == 0) sizes.group = default_group(schedule, sizes);
  if (traits(schedule).groups && sizes.vp > 1 && !sizes.any_group)
    TESSERA_CHECK(check_group(sizes, sizes.group));
  switch (schedule) {
    case Template::one_f_one_b:
      return one_f_one_b(sizes);
    case Template::gpipe:
      return gpipe(sizes);
    case Template::looped_bfs:
      return looped_bfs(sizes);
    case Template::interleaved:
    case Template::interleaved_overlap:
    case Template::one_f_one_b_overlap:
    case Template::interleaved_zb: {
      ActionList list =
          schedule == Template::interleaved_zb ? interleaved_zb(sizes) : interleaved(schedule, sizes);
      // The legal sizes always run; for the others it depends (pairs wait for more than single actions do).
      if (sizes.any_group) TESSERA_CHECK(check_schedule(list));
      return list;
    }
    case Template::zb_v_torch:
      return zb_v_torch(sizes);
    case Template::dual_pipe:
    case Template::dual_pipe_v:
      TESSERA_CHECK(check_dual_pipe(schedule, sizes));
      return dual_pipe(schedule, sizes);
    case Template::zb_h1:
    case Template::zb_h2:
    case Template::zb_v:
    case Template::one_f_one_b_v:
    case Template::v_half:
    case Template::v_min:
      TESSERA_CHECK(check_costs(sizes, costs));
      if (sizes.most_live == 0) sizes.most_live = default_most_live(schedule, sizes.pp);
      return zero_bubble(schedule, sizes, costs);
  }
  return bad_input("there is no such schedule");
}

}  // namespace tessera::train
