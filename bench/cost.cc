// How far the cost model's kernel times are off: each measured row left out and predicted from the others.
// Then whole layers of Qwen3-Next, softmax attention against Gated DeltaNet, over the sequence length.
//
//   make bench BENCH=cost

#include <map>
#include <tuple>

#include "report.h"
#include "tessera/core/base/text.h"
#include "tessera/core/cost/block_cost.h"
#include "tessera/core/cost/kernel_table.h"
#include "tessera/core/model/import.h"

namespace {

using namespace tessera;
using bench::percent;
using bench::quantile;
using bench::verify;

constexpr const char* kTable = TESSERA_SOURCE "/data/kernels/measured-kernels.csv";
constexpr const char* kModel = TESSERA_SOURCE "/data/models/Qwen3-Next-80B-A3B.json";

Gpu device(std::string_view name) {
  Gpu gpu;
  gpu.name = name;
  return gpu;
}

// A row of the file, read without the product's own reader, and asked through the public face.
struct FileRow {
  std::string_view op, device, dtype, shape;
  Seconds time;

  [[nodiscard]] double axis(std::string_view key) const {
    for (const std::string_view pair : split(shape, ';'))
      if (pair.starts_with(key) && pair.substr(key.size()).starts_with('='))
        return to_number(pair.substr(key.size() + 1)).value_or(0);
    return 0;
  }
  [[nodiscard]] std::optional<Estimate> ask(const KernelTable& table) const {
    const Gpu gpu = ::device(device);
    if (op == "gemm") {
      if (dtype == "fp8_block") return std::nullopt;
      const Dtype type = dtype == "bfloat16" ? Dtype::bf16 : dtype == "fp8" ? Dtype::fp8 : Dtype::nvfp4;
      return table.gemm(gpu, type, axis("m"), axis("n"), axis("k"));
    }
    if (op == "attention_fwd_causal")
      return table.attention(gpu, axis("nq"), axis("nkv"), axis("hd"), axis("s"), axis("b"));
    if (op == "deepep_dispatch_1node")
      return table.expert_dispatch(gpu, axis("h"), axis("k"), axis("E"), axis("tokens"), axis("sms"));
    if (op == "deepep_combine_1node")
      return table.expert_combine(gpu, axis("h"), axis("k"), axis("E"), axis("tokens"), axis("sms"));
    return std::nullopt;
  }
};

// Measured points come back as measured; and a table that never saw a row says of it what leave_one_out says.
void verify_table(const KernelTable& table, const std::vector<KernelTable::LeaveOneOut>& left_out) {
  const auto csv = read_file(kTable);
  verify(csv.has_value(), "the shipped table can be read");
  const std::vector<std::string_view> lines = split(*csv, '\n');
  std::size_t exact = 0, held_out = 0, row = 0;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    const auto cells = split(lines[i], ',');
    verify(cells.size() == 6, "six columns");
    const FileRow file_row{cells[0], cells[1], cells[2], cells[3],
                           Seconds(to_number(cells[4]).value_or(0) * 1e-6)};
    const KernelTable::LeaveOneOut& entry = left_out[row++];
    verify(entry.op == file_row.op && entry.measured == file_row.time, "rows are in the file's order");
    const auto full = file_row.ask(table);
    if (!full) continue;
    verify(std::abs(full->time / file_row.time - 1) < 1e-9,
           fmt::format("line {} comes back as {} us", i + 1, microseconds(full->time)));
    ++exact;
    if (exact % 25 != 0) continue;
    std::string rest;
    for (std::size_t j = 0; j < lines.size(); ++j)
      if (j != i && (j == 0 || lines[j].starts_with(file_row.op))) rest.append(lines[j]).append("\n");
    const auto without = KernelTable::parse(rest, "held out");
    verify(without.has_value(), "a table without one row can be read");
    const auto blind = file_row.ask(*without);
    verify(blind && std::abs(blind->time / entry.predicted - 1) < 1e-9,
           fmt::format("line {} held out is predicted as left out", i + 1));
    ++held_out;
  }
  verify(exact > 1000 && held_out > 40, "enough rows were checked");
  fmt::print(
      "verified: {} measured points come back exactly, {} held-out rows agree with a table without them\n\n",
      exact, held_out);
}

struct Errors {
  std::vector<double> all, training;
  void add_to(bench::Table& table, std::vector<std::string> cells) const {
    for (const std::vector<double>* set : {&all, &training}) {
      cells.push_back(fmt::format("{}", set->size()));
      for (const double share : {0.5, 0.95, 1.0})
        cells.push_back(set->empty() ? "" : percent(quantile(*set, share)));
    }
    table.add(std::move(cells));
  }
};

// Forward times of one layer: its mixer, the mixer and the experts, and those with the all-to-all in the
// open.
struct LayerTime {
  Seconds mixer, compute, serial;
};
struct LayerTimes {
  LayerTime softmax, delta;
};
LayerTimes layer_times(const ModelSpec& model, const Cluster& cluster, std::int64_t sequence) {
  const Layout layout{.ep = 16, .dp = 16, .sequence = sequence};
  CostInput input{.model = &model, .cluster = &cluster, .layout = &layout};
  input.software = default_software(cluster);
  input.table = &KernelTable::builtin();
  const auto cost = price_model(input);
  verify(cost.has_value(), cost ? "" : cost.error().text());
  LayerTimes out;
  for (const Block& block : model.blocks) {
    if (block.kind != BlockKind::layer) continue;
    const auto index = static_cast<std::size_t>(&block - model.blocks.data());
    const BlockCost& kind = cost->kinds[static_cast<std::size_t>(cost->kind_of_block[index])];
    LayerTime& time =
        std::holds_alternative<SoftmaxAttention>(model.layer_of(block).mixer) ? out.softmax : out.delta;
    time.mixer = kind.task(Pass::forward, TaskKind::attention).duration.time;
    time.compute = time.mixer + kind.task(Pass::forward, TaskKind::mlp).duration.time;
    time.serial = kind.serial(Pass::forward);
  }
  verify(out.softmax.mixer.value() > 0 && out.delta.mixer.value() > 0, "the model has layers of both kinds");
  return out;
}

// Prints the comparison; gives the sequence at which the sign flips, and the ratio at 256K.
std::pair<double, double> compare_layers() {
  const auto model = import_model_file(kModel);
  verify(model.has_value(), model ? "" : model.error().text());
  const auto cluster = cluster_preset("H100");
  verify(cluster.has_value(), cluster ? "" : cluster.error().text());

  fmt::print(
      "\nQwen3-Next-80B on H100, forward of one layer, milliseconds (EP 16, one sequence a microbatch)\n"
      "layer = mixer and experts, the all-to-all hidden; serial = with the all-to-all in the open\n\n");
  bench::Table print({"tokens", "softmax mixer", "GDN mixer", "softmax layer", "GDN layer", "ratio",
                      "softmax serial", "GDN serial", "ratio"});
  double ratio = 0;
  for (const std::int64_t thousands : {4, 16, 64, 256}) {
    const auto [softmax, delta] = layer_times(*model, *cluster, thousands * 1024);
    ratio = softmax.compute / delta.compute;
    std::vector<std::string> cells{fmt::format("{}K", thousands)};
    for (const Seconds time : {softmax.mixer, delta.mixer, softmax.compute, delta.compute})
      cells.push_back(fmt::format("{:.2f}", milliseconds(time)));
    cells.push_back(fmt::format("{:.2f}", ratio));
    for (const Seconds time : {softmax.serial, delta.serial})
      cells.push_back(fmt::format("{:.2f}", milliseconds(time)));
    cells.push_back(fmt::format("{:.2f}", softmax.serial / delta.serial));
    print.add(std::move(cells));
  }
  print.print();

  double low = 1024, high = 256 * 1024;
  while (high - low > 16) {
    const double middle = 0.5 * (low + high);
    const LayerTimes t = layer_times(*model, *cluster, static_cast<std::int64_t>(middle));
    (t.softmax.compute < t.delta.compute ? low : high) = middle;
  }
  fmt::print("\nthe softmax layer is the cheaper one below {:.1f}K tokens\n", high / 1024);
  return {high, ratio};
}

}  // namespace

int main() {
  const KernelTable& table = KernelTable::builtin();
  const auto left_out = table.leave_one_out();
  verify(left_out.size() == table.rows(), "every row can be left out");
  verify_table(table, left_out);

  std::map<std::tuple<std::string, std::string, std::string, std::string>, Errors> groups;
  Errors total;
  for (const auto& row : left_out) {
    const double error = std::abs(row.predicted / row.measured - 1);
    Errors& group = groups[{std::string(row.op), std::string(row.device), std::string(row.dtype),
                            std::string(row.source)}];
    for (Errors* set : {&group, &total}) {
      set->all.push_back(error);
      if (row.training && row.interior) set->training.push_back(error);
    }
  }

  fmt::print(
      "Leave-one-out error |predicted/measured - 1|; the goal set is training kernels with at least 512 "
      "tokens\n"
      "and measured neighbours on both sides of an axis.\n\n");
  bench::Table print(
      {"op", "device", "dtype", "source", "rows", "median", "p95", "max", "goal set", "median", "p95", "max"},
      4);
  for (const auto& [key, errors] : groups) {
    const auto& [op, gpu, dtype, source] = key;
    errors.add_to(print, {op, gpu, dtype, source});
  }
  total.add_to(print, {"all", "", "", ""});
  print.print();

  const auto [flip, ratio] = compare_layers();
  bench::Json()
      .add("median_error", quantile(total.training, 0.5))
      .add("p95_error", quantile(total.training, 0.95))
      .add("rows", total.training.size())
      .add("layer_flip_tokens", flip)
      .add("layer_ratio_256k", ratio)
      .print();
}
