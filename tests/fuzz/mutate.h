// Structure-aware mutation of JSON and YAML texts, for libFuzzer's custom mutator.
//
// A mutant of a valid file is most often valid JSON with one or two values changed, so that it reaches the
// checks of meaning; one in eight is mutated byte by byte, for the parser's sake. A target is one source that
// includes this: it defines the mutator.
#pragma once

#include <json/json.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace tessera::fuzzing {

using Random = std::minstd_rand;

inline std::size_t below(Random& random, std::size_t n) {
  return n == 0 ? 0 : random() % n;
}

inline bool read_json(std::string_view text, Json::Value& out) {
  Json::CharReaderBuilder options;
  options["allowSpecialFloats"] = true;
  options["stackLimit"] = 64;
  const std::unique_ptr<Json::CharReader> reader(options.newCharReader());
  try {
    return reader->parse(text.data(), text.data() + text.size(), &out, nullptr) &&
           (out.isObject() || out.isArray());
  } catch (const Json::Exception&) {
    return false;
  }
}

inline std::string write_json(const Json::Value& value) {
  Json::StreamWriterBuilder options;
  options["indentation"] = " ";
  options["useSpecialFloats"] = true;
  return Json::writeString(options, value);
}

/// All values of the tree, the root first.
inline void collect(Json::Value& value, std::vector<Json::Value*>& out) {
  out.push_back(&value);
  if (value.isObject() || value.isArray())
    for (Json::Value& child : value) collect(child, out);
}

inline Json::Value odd_number(Random& random, const Json::Value& old) {
  const double now = old.isNumeric() ? old.asDouble() : 1;
  const std::int64_t whole = now > -1e15 && now < 1e15 ? static_cast<std::int64_t>(now) : 1;
  switch (below(random, 14)) {
    case 0:
      return Json::Value(Json::Int64(whole + 1));
    case 1:
      return Json::Value(Json::Int64(whole - 1));
    case 2:
      return Json::Value(Json::Int64(whole * 2));
    case 3:
      return Json::Value(Json::Int64(whole / 2));
    case 4:
      return Json::Value(0);
    case 5:
      return Json::Value(1);
    case 6:
      return Json::Value(-1);
    case 7:
      return Json::Value(Json::Int64(1) << 24);
    case 8:
      return Json::Value(Json::Int64(1) << 62);
    case 9:
      return Json::Value(now + 0.5);
    case 10:
      return Json::Value(1e308);
    case 11:
      return Json::Value(4096);
    case 12:
      return Json::Value(65536);
    default:
      return Json::Value(Json::Int64(below(random, 16)));
  }
}

/// One change at one place of the tree.
inline void change(Json::Value& root, Random& random) {
  std::vector<Json::Value*> all;
  collect(root, all);
  Json::Value& at = *all[below(random, all.size())];
  const Json::Value& other = *all[below(random, all.size())];
  if (at.isObject() && !at.empty()) {
    const auto names = at.getMemberNames();
    const std::string name = names[below(random, names.size())];
    switch (below(random, 4)) {
      case 0:
        at.removeMember(name);
        return;
      case 1: {
        const Json::Value moved = at[name];
        at.removeMember(name);
        at[name + "_x"] = moved;
        return;
      }
      case 2:
        at[name] = Json::Value();
        return;
      default: {
        const Json::Value copy = at[names[below(random, names.size())]];
        at[name] = copy;
        return;
      }
    }
  }
  if (at.isArray() && !at.empty()) {
    const auto index = static_cast<Json::ArrayIndex>(below(random, at.size()));
    Json::Value removed;
    switch (below(random, 4)) {
      case 0:
        at.removeIndex(index, &removed);
        return;
      case 1:
        at.append(Json::Value(at[index]));
        return;
      case 2:
        at[index] = Json::Value(at[static_cast<Json::ArrayIndex>(below(random, at.size()))]);
        return;
      default:
        at.clear();
        return;
    }
  }
  if (at.isNumeric() && below(random, 4) != 0) {
    at = odd_number(random, at);
  } else if (at.isBool()) {
    at = !at.asBool();
  } else if (at.isString() && below(random, 2) == 0) {
    std::string text = at.asString();
    if (!text.empty()) text[below(random, text.size())] = static_cast<char>(' ' + below(random, 95));
    at = text;
  } else {
    const Json::Value copy = other;
    at = copy.isObject() || copy.isArray() ? Json::Value(Json::nullValue) : copy;
  }
}

/// Line and number changes of a YAML text.
inline std::string change_yaml(std::string text, Random& random) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  if (lines.empty()) return text;
  const auto index = below(random, lines.size());
  std::string& line = lines[index];
  switch (below(random, 5)) {
    case 0:
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(index));
      break;
    case 1:
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(index), line);
      break;
    case 2:
      if (!line.empty()) line[below(random, line.size())] = static_cast<char>(' ' + below(random, 95));
      break;
    default: {
      std::vector<std::size_t> digits;
      for (std::size_t i = 0; i < line.size(); ++i)
        if (line[i] >= '0' && line[i] <= '9') digits.push_back(i);
      if (!digits.empty())
        line[digits[below(random, digits.size())]] = static_cast<char>('0' + below(random, 10));
    }
  }
  std::string out;
  for (const std::string& one : lines) out += one + '\n';
  return out;
}

inline std::size_t mutate(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  Random random(seed);
  if (below(random, 8) == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string out;
  Json::Value root;
  if (read_json(text, root)) {
    for (std::size_t changes = 1 + below(random, 3); changes > 0; --changes) change(root, random);
    out = write_json(root);
  } else {
    out = change_yaml(std::string(text), random);
  }
  if (out.empty() || out.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, out.data(), out.size());
  return out.size();
}

}  // namespace tessera::fuzzing

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return tessera::fuzzing::mutate(data, size, max_size, seed);
}
