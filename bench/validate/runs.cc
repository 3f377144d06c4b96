#include "runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tessera/core/base/text.h"

namespace tessera::bench {
namespace {

// A header line and rows of plain fields; none of them is quoted.
class CsvRow {
 public:
  CsvRow(std::string file, int line, const std::vector<std::string_view>& names, std::string_view text)
      : file_(std::move(file)), line_(line) {
    const auto fields = split(text, ',');
    for (std::size_t i = 0; i < names.size() && i < fields.size(); ++i)
      fields_.emplace(trim(names[i]), trim(fields[i]));
  }
  [[nodiscard]] int line() const { return line_; }
  [[nodiscard]] std::string text(const std::string& name) const {
    const auto found = fields_.find(name);
    return found == fields_.end() ? std::string() : found->second;
  }
  [[nodiscard]] Result<double> number(const std::string& name) const {
    if (const auto value = to_number(text(name))) return *value;
    return std::unexpected(Error{.file = file_,
                                 .line = line_,
                                 .key = name,
                                 .message = fmt::format("expected a number, found \"{}\"", text(name))});
  }
  [[nodiscard]] Result<std::int64_t> count(const std::string& name) const {
    TESSERA_TRY(const double value, number(name));
    return static_cast<std::int64_t>(value);
  }

 private:
  std::string file_;
  int line_;
  std::map<std::string, std::string> fields_;
};

Dtype dtype_of(const std::string& precision) {
  if (precision.contains("FP4")) return Dtype::nvfp4;
  if (precision.contains("MX")) return Dtype::mxfp8;
  if (precision.contains("FP8")) return Dtype::fp8;
  return Dtype::bf16;
}

Result<Run> read_run(const CsvRow& row) {
  Run run{.line = row.line(), .model = row.text("model"), .system = row.text("system")};
  if (run.system.starts_with("DGX-")) run.system.erase(0, 4);
  // "26.06.01" is a patch of 26.06.
  const std::string container = row.text("container");
  run.release = to_number(container.substr(0, 5)).value_or(0);
  TESSERA_TRY(run.gpus, row.count("gpus"));
  TESSERA_TRY(run.global_batch, row.count("gbs"));
  TESSERA_TRY(run.tokens_per_second_per_gpu, row.number("tokens_per_s_per_gpu"));
  Layout& l = run.layout;
  TESSERA_TRY(l.tp, row.count("tp"));
  TESSERA_TRY(l.pp, row.count("pp"));
  TESSERA_TRY(l.cp, row.count("cp"));
  TESSERA_TRY(l.vp, row.count("vp"));
  TESSERA_TRY(l.ep, row.count("ep"));
  TESSERA_TRY(l.microbatch_size, row.count("mbs"));
  TESSERA_TRY(l.sequence, row.count("seq"));
  l.dp = run.gpus / (l.tp * l.pp * l.cp);
  l.microbatches = run.global_batch / (l.microbatch_size * l.dp);
  l.dtype = dtype_of(row.text("precision"));
  return run;
}

Result<bool> matches(Cursor when, const Run& run) {
  TESSERA_CHECK(
      when.only_keys({"models", "systems", "precision", "from", "before", "ep", "tp", "vp", "mbs"}));
  const auto among = [&](std::string_view key, std::string_view value, bool prefix) -> Result<bool> {
    const auto list = when.present(key);
    if (!list) return true;
    for (std::size_t i = 0; i < list->size(); ++i) {
      TESSERA_TRY(const std::string entry, list->item(i).string());
      if (prefix ? value.starts_with(entry) : value == entry) return true;
    }
    return false;
  };
  TESSERA_TRY(const bool model, among("models", run.model, true));
  TESSERA_TRY(const bool system, among("systems", run.system, false));
  TESSERA_TRY(const std::string precision, when.string_or("precision", std::string(name(run.layout.dtype))));
  TESSERA_TRY(const double from, when.number_or("from", 0, 100, 0));
  TESSERA_TRY(const double before, when.number_or("before", 0, 100, 100));
  TESSERA_TRY(const std::int64_t ep, when.integer_or("ep", 1, 4096, run.layout.ep));
  TESSERA_TRY(const std::int64_t tp, when.integer_or("tp", 1, 4096, run.layout.tp));
  TESSERA_TRY(const std::int64_t vp, when.integer_or("vp", 1, 4096, run.layout.vp));
  TESSERA_TRY(const std::int64_t mbs, when.integer_or("mbs", 1, 4096, run.layout.microbatch_size));
  return model && system && precision == name(run.layout.dtype) && run.release >= from &&
         run.release < before && ep == run.layout.ep && tp == run.layout.tp && vp == run.layout.vp &&
         mbs == run.layout.microbatch_size;
}

// The settings of all rules that match, later over earlier, as the text of the sections a job would hold.
Status apply_recipes(Cursor rules, const Cluster& cluster, Run& run) {
  std::map<std::string, std::string> software;
  std::string recompute = "[]";
  for (std::size_t i = 0; i < rules.size(); ++i) {
    TESSERA_CHECK(rules.item(i).only_keys({"when", "set"}));
    TESSERA_TRY(const Cursor when, rules.item(i).required_map("when"));
    TESSERA_TRY(const Cursor set, rules.item(i).required_map("set"));
    TESSERA_TRY(const bool applies, matches(when, run));
    if (!applies) continue;
    for (std::size_t j = 0; j < set.size(); ++j) {
      const Cursor value = set.item(j);
      if (set.key(j) == "recompute") {
        std::vector<std::string> units;
        for (std::size_t u = 0; u < value.size(); ++u) {
          TESSERA_TRY(units.emplace_back(), value.item(u).string());
        }
        recompute = fmt::format("[{}]", fmt::join(units, ", "));
      } else if (value.is_boolean()) {
        TESSERA_TRY(const bool on, value.boolean());
        software[std::string(set.key(j))] = on ? "true" : "false";
      } else {
        TESSERA_TRY(software[std::string(set.key(j))], value.string());
      }
    }
  }
  std::string text = fmt::format("software: {{cuda_graphs: {}",
                                 software.contains("cuda_graphs") ? software["cuda_graphs"] : "none");
  for (const auto& [key, value] : software)
    if (key != "cuda_graphs") text += fmt::format(", {}: {}", key, value);
  text += fmt::format("}}\nlayout: {{recompute: {}, microbatches: 1}}\n", recompute);
  TESSERA_TRY(const Document document, Document::parse(text, "recipe", DocumentFormat::yaml));
  TESSERA_TRY(run.software, read_software(*document.root().find("software"), cluster));
  TESSERA_TRY(const Layout layout, read_layout(*document.root().find("layout"), 1));
  run.layout.recompute = layout.recompute;
  return {};
}

}  // namespace

Result<std::vector<Run>> read_runs(const std::string& directory) {
  TESSERA_TRY(const Document recipes, Document::read(directory + "/recipes.yaml"));
  TESSERA_TRY(const Cursor rules, recipes.root().required_list("rules"));
  const std::string path = directory + "/training-rows.csv";
  TESSERA_TRY(const std::string csv, read_file(path));
  const auto lines = split(csv, '\n');
  const auto names = split(lines.front(), ',');
  std::vector<Run> out;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) continue;
    TESSERA_TRY(Run run, read_run(CsvRow(path, static_cast<int>(i) + 1, names, lines[i])));
    TESSERA_TRY(const Cluster cluster, cluster_preset(run.system));
    TESSERA_CHECK(apply_recipes(rules, cluster, run));
    out.push_back(std::move(run));
  }
  return out;
}

}  // namespace tessera::bench
