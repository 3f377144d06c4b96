// Latency reduction of the pair kinds of Qwen3-Next-80B at 256K tokens on 128 H100, beside the published
// figures.
//
// Published are 41.6 % for complementary pairs and 14.0 % for pairs that are compute heavy on both sides, on
// 128 GPUs at 256K tokens; which TP, CP, EP, PP and chunk sizes is not said. The chunks of the former are
// drawn as Gated DeltaNet layers, those of the latter as softmax layers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "../report.h"
#include "grid.h"
#include "measure.h"
#include "parts.h"

namespace tessera::bench {
namespace {

struct Sizes {
  std::int64_t tp, cp, ep, pp;
};

constexpr std::int64_t kGpus = 128, kSequence = 262144;
constexpr Sizes kChosen{.tp = 1, .cp = 32, .ep = 32, .pp = 4};
constexpr std::array<Sizes, 9> kSizes{{kChosen,
                                       {1, 16, 32, 4},
                                       {2, 16, 32, 4},
                                       {1, 32, 16, 4},
                                       {1, 32, 8, 4},
                                       {1, 16, 16, 8},
                                       {1, 16, 8, 8},
                                       {1, 64, 64, 2},
                                       {2, 16, 64, 2}}};

Result<Cell> price(const Sizes& sizes) {
  return price_cell({.model = "qwen3-next-80b", .sequence = kSequence, .ep = sizes.ep},
                    {{"cluster.gpus", std::to_string(kGpus)},
                     {"layout.tp", std::to_string(sizes.tp)},
                     {"layout.cp", std::to_string(sizes.cp)},
                     {"layout.pp", std::to_string(sizes.pp)}});
}

/// A window of the 3:1 pattern, away from the ends of the model.
struct Kind {
  std::string name;  ///< "GGGA": G = Gated DeltaNet, A = softmax attention, each with its MoE
  Signature window;
  [[nodiscard]] std::size_t layers() const { return window.size(); }
  [[nodiscard]] bool softmax() const { return name.contains('A'); }
};

std::vector<Kind> kinds_of(const Cell& cell) {
  constexpr std::int64_t kPeriod = 4;
  std::vector<Kind> out;
  std::set<Signature> seen;
  for (const int layers : {2, 4})
    for (std::int64_t first = kPeriod; first < 2 * kPeriod; ++first) {
      Kind kind{.window = cell.window(first, layers)};
      if (!seen.insert(kind.window).second) continue;
      for (const std::int32_t block : kind.window)
        kind.name += cell.cost.kinds[static_cast<std::size_t>(block)].name.front();
      out.push_back(std::move(kind));
    }
  return out;
}

struct KindPair {
  Kind forward, backward;
  double reduction = 0;  ///< 1 − optimum / serial
  double ceiling = 0;    ///< the smaller of compute and communication / serial: no order saves more
};

std::vector<KindPair> solve(const Cell& cell, const std::vector<Kind>& kinds) {
  std::vector<KindPair> out;
  for (const Kind& forward : kinds)
    for (const Kind& backward : kinds) {
      const train::TaskGraph graph = train::pair_graph(cell.cost.kinds, {forward.window, backward.window});
      const train::PairResult exact = train::schedule_pair(graph);
      static_cast<void>(judge(graph, exact, fmt::format("F {} B {}", forward.name, backward.name)));
      const Seconds comp = graph.load(Resource::comp), comm = graph.load(Resource::comm);
      out.push_back({.forward = forward,
                     .backward = backward,
                     .reduction = 1 - exact.best_nominal / (comp + comm),
                     .ceiling = std::min(comp, comm) / (comp + comm)});
    }
  return out;
}

void print_kinds(const Cell& cell, const std::vector<Kind>& kinds) {
  Table table(
      {"chunk", "F compute ms", "F comm ms", "comm share", "B+W compute ms", "B comm ms", "comm share"});
  for (const Kind& kind : kinds) {
    std::vector<std::string> row{kind.name};
    const train::TaskGraph forward = train::pair_graph(cell.cost.kinds, {kind.window, {}}),
                           backward = train::pair_graph(cell.cost.kinds, {{}, kind.window});
    for (const train::TaskGraph* graph : {&forward, &backward}) {
      const Seconds comp = graph->load(Resource::comp), comm = graph->load(Resource::comm);
      row.push_back(fmt::format("{:.1f}", milliseconds(comp)));
      row.push_back(fmt::format("{:.1f}", milliseconds(comm)));
      row.push_back(percent(comm / (comp + comm)));
    }
    table.add(std::move(row));
  }
  table.print();
}

void print_matrix(const std::vector<Kind>& kinds, const std::vector<KindPair>& pairs) {
  std::vector<std::string> header{"F \\ B"};
  for (const Kind& kind : kinds) header.push_back(kind.name);
  Table table(header);
  for (std::size_t f = 0; f < kinds.size(); ++f) {
    std::vector<std::string> row{kinds[f].name};
    for (std::size_t b = 0; b < kinds.size(); ++b) {
      const KindPair& pair = pairs[f * kinds.size() + b];
      row.push_back(fmt::format("{:.1f} ({:.1f})", 100 * pair.reduction, 100 * pair.ceiling));
    }
    table.add(std::move(row));
  }
  table.print();
}

struct Class {
  std::string_view name, published;
  std::size_t layers;  ///< of both chunks; 0 = unequal
  int softmax;         ///< chunks that have a softmax layer; -1 = any
};
constexpr std::array<Class, 5> kClasses{{{"GDN only, 2+2", "41.6 % (complementary)", 2, 0},
                                         {"softmax on one side, 2+2", "", 2, 1},
                                         {"softmax on both sides, 2+2", "14.0 % (both compute heavy)", 2, 2},
                                         {"softmax on both sides, 4+4", "14.0 % (both compute heavy)", 4, 2},
                                         {"2+4 and 4+2", "", 0, -1}}};

struct Spread {
  double sum = 0, least = 1, most = 0, ceiling = 0;
  std::size_t pairs = 0;
  [[nodiscard]] double mean() const { return sum / static_cast<double>(pairs); }
};

Spread spread(const std::vector<KindPair>& pairs, const Class& which) {
  Spread out;
  for (const KindPair& pair : pairs) {
    const std::size_t layers = pair.forward.layers() == pair.backward.layers() ? pair.forward.layers() : 0;
    if (layers != which.layers) continue;
    if (which.softmax >= 0 && pair.forward.softmax() + pair.backward.softmax() != which.softmax) continue;
    out.sum += pair.reduction;
    out.least = std::min(out.least, pair.reduction);
    out.most = std::max(out.most, pair.reduction);
    out.ceiling += pair.ceiling;
    ++out.pairs;
  }
  out.ceiling /= static_cast<double>(out.pairs);
  return out;
}

void print_classes(const std::vector<KindPair>& pairs) {
  Table table({"pairs of", "kinds", "mean", "least", "most", "ceiling", "published"});
  for (const Class& which : kClasses) {
    const Spread s = spread(pairs, which);
    table.add({std::string(which.name), fmt::format("{}", s.pairs), percent(s.mean()), percent(s.least),
               percent(s.most), percent(s.ceiling), std::string(which.published)});
  }
  table.print();
}

std::string text(const Sizes& s, const Layout& layout) {
  return fmt::format("TP{} CP{} EP{} PP{} DP{}", s.tp, s.cp, s.ep, s.pp, layout.dp);
}

// Why these and not the published ones, from the loads themselves.
void print_reasons(const Cell& cell, const std::vector<KindPair>& pairs) {
  const auto block = [&](char symbol) -> const BlockCost& {
    return *std::ranges::find_if(cell.cost.kinds,
                                 [&](const BlockCost& kind) { return kind.name.front() == symbol; });
  };
  const auto attention = [](const BlockCost& cost) {
    Seconds sum;
    for (const Pass pass : {Pass::forward, Pass::backward, Pass::weight})
      sum += cost.task(pass, TaskKind::attention).duration.time;
    return milliseconds(sum);
  };
  Seconds comm;
  for (const Pass pass : {Pass::forward, Pass::backward})
    for (const TaskKind kind : {TaskKind::dispatch, TaskKind::combine})
      comm += block('G').task(pass, kind).duration.time;
  const Spread gdn = spread(pairs, kClasses[0]), two = spread(pairs, kClasses[2]),
               four = spread(pairs, kClasses[3]);
  const train::TaskGraph forward = train::pair_graph(cell.cost.kinds, {pairs.front().forward.window, {}}),
                         backward = train::pair_graph(cell.cost.kinds, {{}, pairs.front().forward.window});
  const auto share = [](const train::TaskGraph& graph) {
    const Seconds wire = graph.load(Resource::comm);
    return 100 * (wire / (wire + graph.load(Resource::comp)));
  };
  fmt::print(
      "Every layer sends {:.1f} ms in F + B, whatever its mixer. A Gated DeltaNet mixer computes {:.1f} ms,\n"
      "a softmax one {:.1f} ms.\n"
      "Complementary (published 41.6 %): two GDN chunks are, for F is {:.0f} % communication and B+W\n"
      "{:.0f} %. Of {:.1f} % that could hide, {:.1f} % do.\n"
      "Both compute heavy (published 14.0 %): the softmax core is so long that no order saves more than\n"
      "{:.1f} % with one GDN layer beside each softmax layer and {:.1f} % with three; {:.1f} % and {:.1f} %\n"
      "are saved. The ceiling is the communication there is beside the softmax core, so the rest of the\n"
      "difference lies in what is not published: layers a chunk, EP and CP. With EP in one or two nodes\n"
      "there is less to hide, and with EP64 more, as below.\n",
      milliseconds(comm), attention(block('G')), attention(block('A')), share(forward), share(backward),
      100 * gdn.ceiling, 100 * gdn.mean(), 100 * two.ceiling, 100 * four.ceiling, 100 * two.mean(),
      100 * four.mean());
}

}  // namespace

Status run_kinds(Figures& figures) {
  TESSERA_TRY(const Cell cell, price(kChosen));
  const std::vector<Kind> kinds = kinds_of(cell);
  const std::vector<KindPair> pairs = solve(cell, kinds);
  fmt::print(
      "\nQwen3-Next-80B, 256K tokens, 128 H100, {}, {} tokens a rank, bf16; VP6 for chunks of 2 layers, VP3 "
      "for 4.\nG = Gated DeltaNet, A = softmax attention, each with its MoE\n\n",
      text(kChosen, cell.layout), kSequence / kChosen.cp);
  print_kinds(cell, kinds);
  fmt::print(
      "\nLatency reduction in %, 1 - overlapped / serial; in brackets what no order can exceed, the smaller "
      "of "
      "compute and\ncommunication / serial\n\n");
  print_matrix(kinds, pairs);
  fmt::print("\n");
  print_classes(pairs);
  fmt::print("\n");
  print_reasons(cell, pairs);

  fmt::print("\nThe same under other layouts: mean reduction (ceiling)\n\n");
  Table table({"layout", "GDN only, 2+2", "softmax one side, 2+2", "softmax both, 2+2", "softmax both, 4+4"});
  for (const Sizes& sizes : kSizes) {
    TESSERA_TRY(const Cell other, price(sizes));
    const std::vector<KindPair> solved = solve(other, kinds_of(other));
    std::vector<std::string> row{text(sizes, other.layout)};
    for (const Class& which : kClasses) {
      if (which.softmax < 0) continue;
      const Spread s = spread(solved, which);
      row.push_back(fmt::format("{:.1f} % ({:.1f})", 100 * s.mean(), 100 * s.ceiling));
    }
    table.add(std::move(row));
  }
  table.add({"published", "41.6 %", "", "14.0 %", "14.0 %"});
  table.print();
  figures["kinds_complementary"] = spread(pairs, kClasses[0]).mean();
  figures["kinds_compute_heavy_2"] = spread(pairs, kClasses[2]).mean();
  figures["kinds_compute_heavy_4"] = spread(pairs, kClasses[3]).mean();
  return {};
}

}  // namespace tessera::bench
