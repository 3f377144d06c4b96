// YAML by yaml-cpp's event parser: the library's own tree would take a kilobyte a value before it could be
// counted.
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "document_values.h"
#include "tessera/core/base/text.h"

namespace tessera::detail {

namespace {

// Carries an error of ours out through the library; caught in parse_yaml_tree.
struct Refused {
  Error error;
};

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& file, const Document::Limits& limits) : file_(file), limits_(limits) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { finish(leaf(mark), anchor, mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) refuse(mark, "an alias stands inside the value it names");
    count(found->second, mark);
    Tree copy = found->second;
    finish(std::move(copy), YAML::NullAnchor, mark);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    Tree tree = leaf(mark);
    tree.value.text = text;
    // "!" marks a quoted scalar.
    if (tag == "!") {
      tree.value.kind = ValueKind::string;
    } else {
      classify_plain(tree.value);
    }
    finish(std::move(tree), anchor, mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, anchor, ValueKind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, anchor, ValueKind::map);
  }
  void OnMapEnd() override { close(); }

  [[nodiscard]] Tree take() { return std::move(root_); }

 private:
  struct Open {
    Tree tree;
    YAML::anchor_t anchor = YAML::NullAnchor;
    YAML::Mark mark;
    bool has_key = false;
    std::string key;
    std::set<std::string> keys;
  };

  [[noreturn]] void refuse(const YAML::Mark& mark, std::string message, std::string hint = {}) const {
    throw Refused{error_at(file_, mark.line + 1, "", std::move(message), std::move(hint))};
  }

  void count(const Tree& tree, const YAML::Mark& mark) {
    if (++values_ > limits_.values) throw Refused{too_many_values(file_, mark.line + 1, limits_)};
    for (const Tree& child : tree.children) count(child, mark);
  }

  [[nodiscard]] static Tree leaf(const YAML::Mark& mark) {
    Tree tree;
    tree.value.line = mark.line + 1;
    tree.value.column = mark.column + 1;
    return tree;
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, ValueKind kind) {
    if (open_.size() >= limits_.depth) throw Refused{too_deep(file_, mark.line + 1, limits_)};
    if (!open_.empty() && open_.back().tree.value.kind == ValueKind::map && !open_.back().has_key)
      refuse(mark, "a key must be plain text");
    Open container{.tree = leaf(mark), .anchor = anchor, .mark = mark};
    container.tree.value.kind = kind;
    open_.push_back(std::move(container));
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    finish(std::move(done.tree), done.anchor, done.mark);
  }

  // A value is complete: it is a map's key, a container's child, or the root.
  void finish(Tree tree, YAML::anchor_t anchor, const YAML::Mark& mark) {
    if (tree.children.empty() && ++values_ > limits_.values)
      throw Refused{too_many_values(file_, mark.line + 1, limits_)};
    if (anchor != YAML::NullAnchor) {
      count(tree, mark);  // the copy takes memory too
      anchors_[anchor] = tree;
    }
    if (open_.empty()) {
      root_ = std::move(tree);
      return;
    }
    Open& container = open_.back();
    if (container.tree.value.kind == ValueKind::map) {
      if (!container.has_key) {
        const ValueKind kind = tree.value.kind;
        if (kind == ValueKind::list || kind == ValueKind::map) refuse(mark, "a key must be plain text");
        if (!container.keys.insert(tree.value.text).second)
          refuse(mark, fmt::format("key {} occurs twice", tree.value.text), "Keep one of the two.");
        container.key = std::move(tree.value.text);
        container.has_key = true;
        return;
      }
      tree.value.key = std::move(container.key);
      container.has_key = false;
    }
    container.tree.children.push_back(std::move(tree));
  }

  const std::string& file_;
  const Document::Limits& limits_;
  std::size_t values_ = 0;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Tree> anchors_;
  Tree root_;
};

}  // namespace

Result<Tree> parse_yaml_tree(std::string_view text, const std::string& file, const Document::Limits& limits) {
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    TreeBuilder builder(file, limits);
    if (!parser.HandleNextDocument(builder)) return Tree{};
    TreeBuilder second(file, limits);
    if (parser.HandleNextDocument(second))
      return std::unexpected(
          error_at(file, 0, "", "the file holds more than one YAML document", "Keep the first."));
    return builder.take();
  } catch (Refused& refused) {
    return std::unexpected(std::move(refused.error));
  } catch (const YAML::Exception& failure) {
    const auto lines = split(text, '\n');
    const auto line = static_cast<std::size_t>(std::max(0, failure.mark.line));
    const bool tab = line < lines.size() && lines[line].starts_with('\t');
    return std::unexpected(error_at(file, failure.mark.line + 1, "", "not valid YAML: " + failure.msg,
                                    tab ? "YAML is indented by blanks, not tabs." : ""));
  } catch (const std::exception& failure) {
    return std::unexpected(error_at(file, 0, "", fmt::format("not readable as YAML: {}", failure.what())));
  }
}

}  // namespace tessera::detail
