#include "tessera/core/report/trace.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <iterator>

namespace tessera {

namespace {

// Whole nanoseconds: far below what any duration here means, and a slice's end, rounded like its parent's,
// still nests.
std::int64_t nanoseconds(Seconds time) {
  return std::llround(time.value() * 1e9);
}

void append_microseconds(std::string& out, std::int64_t nanoseconds) {
  const std::int64_t magnitude = std::abs(nanoseconds);
  fmt::format_to(std::back_inserter(out), "{}{}.{:03}", nanoseconds < 0 ? "-" : "", magnitude / 1000,
                 magnitude % 1000);
}
void append_time(std::string& out, Seconds time) {
  append_microseconds(out, nanoseconds(time));
}

}  // namespace

std::string json_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        } else {
          out += c;
        }
    }
  }
  return out;
}

TraceWriter::TraceWriter() : out_("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n") {}

void TraceWriter::begin_event() {
  if (!first_) out_ += ",\n";
  first_ = false;
}

void TraceWriter::process(std::int32_t process, std::string_view name) {
  begin_event();
  fmt::format_to(std::back_inserter(out_),
                 R"({{"ph":"M","pid":{0},"tid":0,"name":"process_name","args":{{"name":"{1}"}}}},)"
                 "\n"
                 R"({{"ph":"M","pid":{0},"tid":0,"name":"process_sort_index","args":{{"sort_index":{0}}}}})",
                 process, json_escape(name));
}

void TraceWriter::thread(std::int32_t process, std::int32_t thread, std::string_view name) {
  begin_event();
  fmt::format_to(std::back_inserter(out_),
                 R"({{"ph":"M","pid":{0},"tid":{1},"name":"thread_name","args":{{"name":"{2}"}}}},)"
                 "\n"
                 R"({{"ph":"M","pid":{0},"tid":{1},"name":"thread_sort_index","args":{{"sort_index":{1}}}}})",
                 process, thread, json_escape(name));
}

void TraceWriter::slice(const Event& event, Seconds start, Seconds end) {
  begin_event();
  fmt::format_to(std::back_inserter(out_), R"({{"ph":"X","pid":{},"tid":{},"name":"{}","cat":"{}","ts":)",
                 event.process, event.thread, json_escape(event.name), json_escape(event.category));
  append_time(out_, start);
  out_ += ",\"dur\":";
  append_microseconds(out_, nanoseconds(end) - nanoseconds(start));
  if (!event.arguments.empty()) {
    out_ += ",\"args\":{";
    out_ += event.arguments;
    out_ += '}';
  }
  out_ += '}';
}

void TraceWriter::flow(std::int64_t id, const Event& source, Seconds from, const Event& target, Seconds to) {
  begin_event();
  fmt::format_to(std::back_inserter(out_),
                 R"({{"ph":"s","pid":{},"tid":{},"name":"{}","cat":"{}","id":{},"ts":)", source.process,
                 source.thread, json_escape(source.name), json_escape(source.category), id);
  append_time(out_, from);
  fmt::format_to(std::back_inserter(out_),
                 "}},\n{{\"ph\":\"f\",\"bp\":\"e\",\"pid\":{},\"tid\":{},\"name\":\"{}\",\"cat\":\"{}\","
                 "\"id\":{},\"ts\":",
                 target.process, target.thread, json_escape(source.name), json_escape(source.category), id);
  append_time(out_, to);
  out_ += '}';
}

void TraceWriter::counter(std::int32_t process, std::string_view name, Seconds time, double value) {
  begin_event();
  fmt::format_to(std::back_inserter(out_), R"({{"ph":"C","pid":{},"name":"{}","ts":)", process,
                 json_escape(name));
  append_time(out_, time);
  fmt::format_to(std::back_inserter(out_), ",\"args\":{{\"value\":{:.6g}}}}}", value);
}

std::string TraceWriter::finish() && {
  out_ += "\n]}\n";
  return std::move(out_);
}

}  // namespace tessera
