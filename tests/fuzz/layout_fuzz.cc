// Layout strings, hybrid patterns and module lists from any bytes: a message, or a value that means the same
// when it is written and read again.
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>

#include "fuzz/tally.h"
#include "tessera/train/schedule/hybrid_pattern.h"
#include "tessera/train/schedule/megatron_layout.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace tessera;
using namespace tessera::train;

fuzzing::Tally tally("layout");

void use_layout(std::string_view text) {
  const auto stages = expand_megatron_layout(text);
  if (!stages) {
    if (stages.error().message.empty()) std::abort();
    return;
  }
  ++tally.reached;
  std::string joined;
  MegatronSizes sizes{.pp = 4};
  for (std::size_t s = 0; s < stages->size(); ++s) {
    joined += (s == 0 ? "" : "|") + (*stages)[s];
    for (const char c : (*stages)[s]) {
      sizes.layers += c == 't' ? 1 : 0;
      sizes.mtp += c == 'm' ? 1 : 0;
    }
  }
  if (const auto again = expand_megatron_layout(joined); !again || *again != *stages) std::abort();
  for (const std::int64_t pp : {1, 2, 4, 8, 16}) {
    sizes.pp = pp;
    const auto checked = check_megatron_layout(*stages, sizes);
    if (checked)
      ++tally.accepted;
    else if (checked.error().message.empty())
      std::abort();
  }
}

void use_pattern(std::string_view text) {
  for (const MegatronRelease release : {MegatronRelease::v0_16_1, MegatronRelease::v0_19_2}) {
    const auto pattern = read_hybrid_pattern(text, release);
    if (!pattern) {
      if (pattern.error().message.empty()) std::abort();
      continue;
    }
    ++tally.reached;
    std::int64_t entries = 0;
    const auto count = static_cast<std::int64_t>(pattern->segments.size());
    for (std::int64_t s = 0; s < count; ++s) {
      const auto segment = hybrid_segment(*pattern, 1, count, 0, s);
      if (!segment || segment->first != entries) std::abort();
      entries += static_cast<std::int64_t>(segment->entries.size());
    }
    if (entries != pattern->entries()) std::abort();
    if (const auto layout = layout_of_hybrid_pattern(*pattern)) {
      const auto stages = expand_megatron_layout(*layout);
      if (!stages || stages->size() != pattern->segments.size()) std::abort();
    } else if (layout.error().message.empty()) {
      std::abort();
    }
  }
}

}  // namespace

// Of the letters of both notations, so that a mutant often is one.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  std::minstd_rand random(seed);
  constexpr std::string_view letters = "EttmL|(),*0123MGD+-/";
  if (size == 0 || random() % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::string text(reinterpret_cast<const char*>(data), size);
  // Mutants of mutants are soon neither notation.
  constexpr std::string_view fresh[] = {
      "Et*3|(tt|)*29,m|L",    "Et|(tt|)*30mL", "Ettt|ttt||ttmL", "E|t*3|(t|)*5mL",
      "GEGEGE*E|GEGEGE*E/*E", "M-M*|M-M-",     "*E*E|*E*E",      "MEM*/*E/*E"};
  if (random() % 4 != 0 && !expand_megatron_layout(text) && !read_hybrid_pattern(text))
    text = fresh[random() % 8];
  for (int changes = 1 + static_cast<int>(random() % 3); changes > 0 && !text.empty(); --changes) {
    const std::size_t at = random() % text.size();
    const char letter = letters[random() % letters.size()];
    switch (random() % 4) {
      case 0:
        text[at] = letter;
        break;
      case 1:
        text.insert(at, 1, letter);
        break;
      case 2:
        text.erase(at, 1 + random() % 3);
        break;
      default:
        text.insert(at, text.substr(random() % text.size(), 1 + random() % 8));
    }
  }
  if (text.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.ends_with('\n')) text.remove_suffix(1);
  ++tally.mutants;
  ++tally.parsed;
  use_layout(text);
  use_pattern(text);
  return 0;
}
