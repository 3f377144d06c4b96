#include "tessera/core/report/trace.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/base/document.h"

namespace tessera {
namespace {

TEST(Trace, IsStrictJsonWithTheEventsPerfettoNeeds) {
  TraceWriter trace;
  trace.process(0, "rank \"0\"");
  trace.thread(0, 1, "comm");
  trace.slice({.process = 0, .thread = 1, .name = "F_DISP:L3", .category = "F", .arguments = "\"stage\":2"},
              Seconds(1e-3), Seconds(1.5e-3));
  trace.flow(7, {.process = 0, .thread = 1, .name = "activation", .category = "p2p"}, Seconds(1.4e-3),
             {.process = 1, .thread = 0}, Seconds(2e-3));
  trace.counter(0, "memory GiB", Seconds(0), 1.5);
  const auto document = Document::parse(std::move(trace).finish(), "trace.json", DocumentFormat::json);
  ASSERT_TRUE(document) << document.error().text();
  const Cursor events = document->root().find("traceEvents").value();
  ASSERT_EQ(events.size(), 8U);
  EXPECT_EQ(events.item(0).find("args")->required_string("name").value(), "rank \"0\"");
  const Cursor slice = events.item(4);
  EXPECT_EQ(slice.required_string("ph").value(), "X");
  EXPECT_EQ(slice.required_number("ts", 0, 1e9).value(), 1000);
  EXPECT_EQ(slice.required_number("dur", 0, 1e9).value(), 500);
  EXPECT_EQ(slice.find("args")->required_integer("stage", 0, 9).value(), 2);
  EXPECT_EQ(events.item(5).required_string("ph").value(), "s");
  EXPECT_EQ(events.item(6).required_string("bp").value(), "e");
  EXPECT_EQ(events.item(5).required_integer("id", 0, 9).value(),
            events.item(6).required_integer("id", 0, 9).value());
  EXPECT_EQ(events.item(7).find("args")->required_number("value", 0, 9).value(), 1.5);
}

// A child that ends with its parent must not stick out after rounding.
TEST(Trace, RoundedSlicesStillNest) {
  const Seconds start(0.1234567891);
  const Seconds middle(0.2000000004);
  const Seconds end(0.3333333337);
  TraceWriter trace;
  trace.slice({.name = "parent"}, start, end);
  trace.slice({.name = "child"}, middle, end);
  const auto document =
      Document::parse(std::move(trace).finish(), "trace.json", DocumentFormat::json).value();
  const Cursor events = document.root().find("traceEvents").value();
  const auto nanoseconds = [&](std::size_t i, const char* key) {
    return std::llround(events.item(i).required_number(key, 0, 1e9).value() * 1000);
  };
  EXPECT_EQ(nanoseconds(0, "ts") + nanoseconds(0, "dur"), nanoseconds(1, "ts") + nanoseconds(1, "dur"));
}

}  // namespace
}  // namespace tessera
