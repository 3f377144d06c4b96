// Chrome trace-event JSON, as Perfetto opens it. Knows lanes, slices, flows and counters, and no product.
//
//   TraceWriter trace;
//   trace.process(0, "rank 0");  trace.thread(0, 1, "comm");
//   trace.slice({.process = 0, .thread = 1, .name = "F_DISP:L3", .category = "F"}, start, end);
//   std::string json = std::move(trace).finish();
//
// Slices of one thread must nest. Times become microseconds. The text is strict JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/core/base/units.h"

namespace tessera {

class TraceWriter {
 public:
  TraceWriter();
  void process(std::int32_t process, std::string_view name);
  void thread(std::int32_t process, std::int32_t thread, std::string_view name);

  struct Event {
    std::int32_t process = 0;
    std::int32_t thread = 0;
    std::string_view name;
    std::string_view category;
    std::string_view arguments;  ///< the inside of a JSON object, already escaped; may be empty
  };
  void slice(const Event& event, Seconds start, Seconds end);
  /// An arrow between two slices: `from` must lie inside one of the first lane, `to` inside one of the
  /// second.
  void flow(std::int64_t id, const Event& source, Seconds from, const Event& target, Seconds to);
  void counter(std::int32_t process, std::string_view name, Seconds time, double value);

  [[nodiscard]] std::string finish() &&;

 private:
  void begin_event();
  std::string out_;
  bool first_ = true;
};

/// The text as the inside of a JSON string.
[[nodiscard]] std::string json_escape(std::string_view text);

}  // namespace tessera
