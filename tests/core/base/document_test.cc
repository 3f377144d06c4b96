#include "tessera/core/base/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tessera {
namespace {

using testing::HasSubstr;

Document json(std::string_view text) {
  auto document = Document::parse(text, "x.json", DocumentFormat::json);
  EXPECT_TRUE(document.has_value()) << document.error().text();
  return *document;
}
Document yaml(std::string_view text) {
  auto document = Document::parse(text, "x.yaml", DocumentFormat::yaml);
  EXPECT_TRUE(document.has_value()) << document.error().text();
  return *document;
}

TEST(Document, KnowsLineColumnAndPathOfEveryValue) {
  const Document document = json("{\"a\": 1,\n \"b\": [true,\n  {\"c\": \"x\"}]}");
  const Cursor c = document.root().find("b")->item(1).find("c").value();
  EXPECT_EQ(c.line(), 3);
  EXPECT_EQ(c.column(), 9);
  EXPECT_EQ(c.path(), "b[1].c");
  EXPECT_EQ(c.string().value(), "x");
}

TEST(Document, TakesNonFiniteLiteralsAndRefusesThemOnlyWhereUsed) {
  const Document document = json(R"({"limit": [0.0, Infinity], "h": NaN, "note": "Infinity stays text"})");
  EXPECT_TRUE(
      std::isinf(document.root().find("limit")->item(1).number(0, 1e300).has_value() ? 0.0 : INFINITY));
  const auto h = document.root().required_integer("h", 1, 10);
  ASSERT_FALSE(h);
  EXPECT_EQ(h.error().text(), "x.json:1: h: expected an integer, found NaN");
  EXPECT_EQ(document.root().required_string("note").value(), "Infinity stays text");
}

TEST(Document, KeepsLargeIntegersExact) {
  EXPECT_EQ(json(R"({"n": 9007199254740993})").root().required_integer("n", 0, INT64_MAX).value(),
            9007199254740993);
}

TEST(Document, TypesPlainYamlScalars) {
  const Document document = yaml("a: 4\nb: 4.5\nc: yes\nd: '4'\ne: ~\nf: true\ng: 1e3\nh: +7\n");
  const Cursor root = document.root();
  EXPECT_EQ(root.find("a")->kind(), ValueKind::integer);
  EXPECT_EQ(root.find("b")->kind(), ValueKind::real);
  EXPECT_EQ(root.find("c")->kind(), ValueKind::string);
  EXPECT_EQ(root.find("d")->kind(), ValueKind::string);
  EXPECT_TRUE(root.find("e")->is_null());
  EXPECT_EQ(root.required_boolean("f").value(), true);
  EXPECT_EQ(root.required_integer("g", 0, 2000).value(), 1000);
  EXPECT_EQ(root.required_integer("h", 0, 10).value(), 7);
}

TEST(Document, RefusesDuplicateKeysInBothFormats) {
  const auto in_json = Document::parse("{\"a\": 1,\n\"a\": 2}", "x.json", DocumentFormat::json);
  ASSERT_FALSE(in_json);
  EXPECT_THAT(in_json.error().text(), HasSubstr("a"));
  const auto in_yaml = Document::parse("a: 1\na: 2\n", "x.yaml", DocumentFormat::yaml);
  ASSERT_FALSE(in_yaml);
  EXPECT_EQ(in_yaml.error().text(), "x.yaml:2: key a occurs twice\n  Keep one of the two.");
}

TEST(Document, BoundsDepthAndAliasExpansion) {
  EXPECT_FALSE(Document::parse(std::string(500, '['), "x.json", DocumentFormat::json));
  EXPECT_FALSE(
      Document::parse(std::string(500, '[') + std::string(500, ']'), "x.yaml", DocumentFormat::yaml));
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const auto name = "a" + std::to_string(i);
    const auto last = "*a" + std::to_string(i - 1);
    bomb += name + ": &" + name + " [" + last;
    for (int k = 0; k < 9; ++k) bomb += ", " + last;
    bomb += "]\n";
  }
  const auto refused = Document::parse(bomb, "x.yaml", DocumentFormat::yaml);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("more than 1000000 values"));
}

TEST(Document, CountsValuesWhileItReads) {
  const Document::Limits limits{.values = 1000};
  std::string list;
  for (int i = 0; i < 2000; ++i) list += "- a\n";
  const auto in_yaml = Document::parse(list, "x.yaml", DocumentFormat::yaml, limits);
  ASSERT_FALSE(in_yaml);
  EXPECT_EQ(in_yaml.error().text(), "x.yaml:1001: the file holds more than 1000 values");
  std::string array = "[0";
  for (int i = 0; i < 2000; ++i) array += ",0";
  EXPECT_FALSE(Document::parse(array + "]", "x.json", DocumentFormat::json, limits));
  EXPECT_TRUE(
      Document::parse("[\"" + std::string(5000, ',') + "\"]", "x.json", DocumentFormat::json, limits));
}

TEST(Document, RefusesASecondYamlDocumentAndASelfReference) {
  EXPECT_FALSE(Document::parse("a: 1\n---\nb: 2\n", "x.yaml", DocumentFormat::yaml));
  const auto self = Document::parse("a: &x [1, *x]\n", "x.yaml", DocumentFormat::yaml);
  ASSERT_FALSE(self);
  EXPECT_THAT(self.error().text(), HasSubstr("an alias stands inside the value it names"));
}

TEST(Document, MessagesAreBoundedAndHarmlessToATerminal) {
  EXPECT_LT(Error{.message = std::string(100000, 'k')}.text().size(), 2000U);
  EXPECT_EQ(Error{.message = "\x1b[31mred"}.text(), "?[31mred");
}

TEST(Document, OverridesMayBeLists) {
  const Document document = yaml("layout: {pp: 2}\n").with("layout.recompute", "[moe, norm]").value();
  const Cursor list = document.root().find("layout")->find("recompute").value();
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list.item(1).string().value(), "norm");
  EXPECT_EQ(list.item(1).error("no").error().text(), "command line: layout.recompute[1]: no");
}

TEST(Document, OverridesStandOverTheFile) {
  const Document document = yaml("layout:\n  pp: 2\n  ep: 4\n");
  const Document changed = document.with("layout.pp", "8").value().with("cluster.gpus", "16").value();
  EXPECT_EQ(changed.root().find("layout")->required_integer("pp", 1, 99).value(), 8);
  EXPECT_EQ(changed.root().find("layout")->required_integer("ep", 1, 99).value(), 4);
  EXPECT_EQ(changed.root().find("cluster")->required_integer("gpus", 1, 99).value(), 16);
  EXPECT_EQ(changed.root().find("cluster")->find("gpus")->path(), "cluster.gpus");
  EXPECT_EQ(document.root().find("layout")->required_integer("pp", 1, 99).value(), 2);
  EXPECT_FALSE(document.with("layout.pp.x", "1"));
}

TEST(Document, ErrorsNameTheNearestKey) {
  const Document document = yaml("layout:\n  pp: 2\n  mikrobatches: 4\n");
  const auto status = document.root().find("layout")->only_keys({"pp", "microbatches"});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(),
            "x.yaml:3: layout.mikrobatches: unknown key\n  Did you mean microbatches?");
}

TEST(Document, ReportsTheLineOfASyntaxError) {
  const auto broken = Document::parse("{\"a\": 1,\n \"b\": }", "x.json", DocumentFormat::json);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().line, 2);
  const auto yaml_broken = Document::parse("a: 1\nb: [1, 2\n", "x.yaml", DocumentFormat::yaml);
  ASSERT_FALSE(yaml_broken);
  EXPECT_EQ(yaml_broken.error().line, 3);
}

}  // namespace
}  // namespace tessera
