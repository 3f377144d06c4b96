#include "tessera/train/schedule/torch_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/core/base/document.h"
#include "train/schedule/lists.h"

namespace tessera::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Random;
using testing::rounds;
using ::testing::StartsWith;
using testing::test_file;

std::string read_fault(std::string_view text) {
  const auto csv = read_torch_csv(text, "x.csv");
  return csv ? "read" : csv.error().text();
}
std::string verdict(std::string_view text) {
  const auto csv = read_torch_csv(text, "x.csv");
  if (!csv) return csv.error().text();
  const auto facts = check_torch_csv(*csv);
  return facts ? "sound" : facts.error().text();
}
std::vector<std::string> cells_of(const std::vector<Cell>& row) {
  std::vector<std::string> out;
  for (const Cell& cell : row) out.push_back(text(cell));
  return out;
}

TEST(TorchCsv, ReadsBothForms) {
  const auto compute = read_torch_csv("0F0, 0F1 ,,(0F2;1B0)OVERLAP_F_B\r\n,1F0,1I0\r\n", "x.csv");
  ASSERT_FALSE(compute);  // stage 1 is on both ranks
  const auto sound = read_torch_csv("0F0, 0F1 ,,0I0\r\n,1F0,1I0,1W3\r\n", "x.csv");
  ASSERT_TRUE(sound) << sound.error().text();
  EXPECT_EQ(sound->form, CsvForm::compute_only);
  EXPECT_EQ(sound->grammar, CsvGrammar::current);
  EXPECT_EQ(sound->idle_cells, 2);
  EXPECT_EQ(sound->list.microbatches, 4);
  EXPECT_THAT(cells_of(sound->list.ranks[0]), ElementsAre("0F0", "0F1", "0I0"));
  EXPECT_THAT(sound->list.rank_of_stage, ElementsAre(RankId(0), RankId(1)));
  const auto comms = read_torch_csv("0UNSHARD,0F0,0SEND_F0\n1RECV_F0,1F0", "x.csv");
  ASSERT_TRUE(comms) << comms.error().text();
  EXPECT_EQ(comms->form, CsvForm::compute_comms);
}

// The same file at two commits of its project: before and after the letters changed.
TEST(TorchCsv, TellsTheAgesOfTheGrammarApart) {
  const auto of_2024 =
      read_torch_csv(test_file("pytorch-zb1p-2rank-2stage-8mb.comms-notation-B-BW.csv"), "old.csv");
  const auto current =
      read_torch_csv(test_file("pytorch-zb1p-2rank-2stage-8mb.comms-notation-I-B.csv"), "new.csv");
  ASSERT_TRUE(of_2024) << of_2024.error().text();
  ASSERT_TRUE(current) << current.error().text();
  EXPECT_EQ(of_2024->grammar, CsvGrammar::of_2024);
  EXPECT_EQ(current->grammar, CsvGrammar::current);
  EXPECT_EQ(of_2024->list, current->list);
  EXPECT_EQ(write_torch_csv(of_2024->list).value(),
            test_file("pytorch-zb1p-2rank-2stage-8mb.comms-notation-I-B.csv"));
  EXPECT_EQ(verdict(test_file("pytorch-zb1p-2rank-2stage-8mb.comms-notation-B-BW.csv")), "sound");
  EXPECT_EQ(read_torch_csv("0F0,0B0\n1F0,1B0\n", "x").value().grammar, CsvGrammar::current);
  EXPECT_THAT(read_fault("0F0,0I0,0W0\n1F0,1BW0\n"),
              StartsWith("x.csv:2: cell 2: BW belongs to the grammar of 2024, but line 1 cell 2 has the I"));
}

TEST(TorchCsv, NamesFileLineAndCell) {
  EXPECT_THAT(read_fault("0F0,0B0\n1F0,,1b0\n"), StartsWith("x.csv:2: cell 3: \"1b0\" is no action\n"));
  EXPECT_THAT(read_fault("0F0junk,0B0\n"), StartsWith("x.csv:1: cell 1: \"0F0junk\" is no action"));
  for (const std::string cell :
       {"0F", "F0", "0FOO", "0F0;0B0", "()OVERLAP_F_B", "(0F0)OVERLAP_F_B", "(0F1;0B0)F",
        "(0B0;0F1)OVERLAP_F_B", "(0F1;0W0)OVERLAP_F_B", "((0F1;0B0)OVERLAP_F_B;0B1)OVERLAP_F_B", "0F-1",
        "0F99999999999", "0UNSHARD0", "(0F1;0B0;0W0)OVERLAP_F_B", "\"0F0\"", "0 F0"})
    EXPECT_THAT(read_fault("0F0," + cell + "\n"), StartsWith("x.csv:1: cell 2: \"")) << cell;
  EXPECT_THAT(read_fault(""), StartsWith("x.csv:1: the file is empty"));
  EXPECT_THAT(read_fault("0F0,0B0\n\n"), StartsWith("x.csv:2: rank 1 has no actions"));
  EXPECT_THAT(read_fault("0F0,0B0\n,,\n1F0\n"), StartsWith("x.csv:2: rank 1 has no actions"));
  EXPECT_THAT(read_fault("0F0,0B0\n0F1,1F0\n"),
              StartsWith("x.csv:2: cell 1: stage 0 is on rank 1 here, but on rank 0 in line 1 cell 1"));
  EXPECT_THAT(read_fault("0F0,2F0\n"),
              StartsWith("x.csv:1: cell 2: there is a stage 2, but no rank runs stage 1"));
  EXPECT_THAT(read_fault("0F0,0F2147483647\n"), HasSubstr("2147483648 microbatches"));
  EXPECT_THAT(read_fault("0F0,2147483647F0\n"), HasSubstr("there is a stage 2147483647"));
}

TEST(TorchCsv, VerdictsEqualTheReferences) {
  const Document document =
      Document::read(std::string(TESSERA_TEST_DATA) + "/schedules/csv/torch_csv_validation.json").value();
  int cases = 0;
  const auto boolean = [](Cursor of) { return of.boolean().value(); };
  const auto whole = [](Cursor of, std::string_view key) {
    return of.find(key).value().integer(0, 1 << 20).value();
  };
  const Cursor all = document.root().find("cases").value();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Cursor of = all.item(i);
    const std::string label = of.find("case")->string().value();
    // The texts are rows joined by line ends; a file ends with one more.
    const std::string text = of.find("csv")->string().value() + "\n";
    const TorchVerdict torch = torch_loads(text, {.ranks = whole(of, "ranks"),
                                                  .stages = whole(of, "stages"),
                                                  .microbatches = whole(of, "microbatches"),
                                                  .form = {}});
    EXPECT_EQ(torch.accepted, boolean(of.find("torch_accepts").value())) << label << ": " << torch.reason;
    const std::string expected = of.find("torch_message")->string().value();
    if (!torch.accepted) {
      EXPECT_THAT(torch.reason, StartsWith(expected.substr(0, expected.find(':') + 1))) << label;
    }
    const Cursor strict = of.find("should_accept").value();
    if (!strict.is_null()) {
      EXPECT_EQ(verdict(text) == "sound", boolean(strict)) << label << ": " << verdict(text);
    }
    ++cases;
  }
  EXPECT_EQ(cases, 14);
}

TEST(TorchLoads, IsAsLenientAsTorch) {
  const auto accepts = [](std::string_view text) { return torch_loads(text).accepted; };
  EXPECT_TRUE(accepts("0F0junk,0B0\n"));
  EXPECT_TRUE(accepts("0FOO,0BAR\n"));    // no microbatch at all
  EXPECT_TRUE(accepts("0F0;0B0,0B0\n"));  // the rest of the cell is not read
  EXPECT_TRUE(accepts("0F0,0F1,0B0,0B1,()OVERLAP_F_B\n"));
  EXPECT_TRUE(accepts("0F0,1F0,(0F1;1B0)F,1F1,1B1,0B0,0B1\n"));
  EXPECT_TRUE(accepts("0F0,0F0,0B0\n"));
  EXPECT_FALSE(accepts("0F0,0B0\n\n"));
  EXPECT_FALSE(accepts("0F0,0B0,(0F1;0B1)X\n"));
  EXPECT_FALSE(accepts("0F0,,0B0,0REDUCE_GRAD\n"));  // with communication, an empty cell is refused
  EXPECT_TRUE(accepts("0F0,0B0,0REDUCE_GRAD\n"));
  EXPECT_TRUE(accepts("0F0,0B0,0SEND_F0\n"));  // which no rank receives
  EXPECT_FALSE(accepts(""));
  EXPECT_FALSE(torch_loads("0F0,0B0\n", {.ranks = 1, .stages = 2, .microbatches = {}, .form = {}}).accepted);
  EXPECT_THAT(torch_loads("0F0,0SEND_F0\n1F0\n", {.form = CsvForm::compute_only}).reason,
              HasSubstr("expected 1 total backwards"));
  EXPECT_THAT(torch_loads("0F0,0B0\n0F0,0B0\n").reason,
              HasSubstr("Stage 0 is assigned to both rank 1 and rank 0"));
  EXPECT_FALSE(accepts("999999999999999999999F0,0B0\n"));
}

// Real files of two projects, with what is known of them.
TEST(TorchCsv, ReadsTheFilesOfTheField) {
  struct Known {
    std::string file;
    std::int32_t microbatches;
    std::vector<std::int32_t> until_weight, live;
  };
  for (const Known& known : {Known{"torchtitan-custom-2rank-4stage-8mb.csv", 8, {16, 16}, {16, 16}},
                             Known{"torchtitan-4rank-8stage-6mb.csv", 6, {12, 12, 12, 12}, {12, 12, 10, 7}},
                             Known{"pytorch-zb1p-2rank-2stage-8mb.compute.csv", 8, {4, 4}, {4, 3}},
                             Known{"pytorch-dualpipev-4rank-10mb.csv", 10, {9, 9, 9, 9}, {9, 9, 9, 9}}}) {
    const auto csv = read_torch_csv(test_file(known.file), known.file);
    ASSERT_TRUE(csv) << csv.error().text();
    EXPECT_EQ(csv->form, CsvForm::compute_only);
    EXPECT_EQ(csv->list.microbatches, known.microbatches);
    const auto facts = check_torch_csv(*csv);
    ASSERT_TRUE(facts) << known.file << ": " << facts.error().text();
    EXPECT_EQ(facts->compute.peak_until_weight, known.until_weight) << known.file;
    EXPECT_EQ(facts->compute.peak_live, known.live) << known.file;
    EXPECT_TRUE(torch_loads(test_file(known.file)).accepted) << known.file;
    const auto again = read_torch_csv(write_torch_csv(csv->list).value(), "again");
    EXPECT_EQ(again.value().list, csv->list);
  }
}

// The file holds DualPipeV: 80 forwards, 58 whole backwards and 22 split ones, in a V.
TEST(TorchCsv, ReadsARealDualPipeV) {
  const auto csv = read_torch_csv(test_file("pytorch-dualpipev-4rank-10mb.csv"), "dualpipev").value();
  int forwards = 0, whole = 0, inputs = 0, weights = 0;
  for (const auto& row : csv.list.ranks)
    for (const Cell& cell : row) {
      const bool pair = cell.action.kind == ActionKind::overlap;
      const ActionKind kind = pair ? cell.action.backward_kind : cell.action.kind;
      forwards += pair || kind == ActionKind::forward;
      whole += kind == ActionKind::full_backward;
      inputs += kind == ActionKind::input_gradient;
      weights += kind == ActionKind::weight_gradient;
    }
  EXPECT_THAT((std::array{forwards, whole, inputs, weights}), ElementsAre(80, 58, 22, 22));
  for (std::int64_t s = 0; s < 8; ++s)
    EXPECT_EQ(csv.list.rank_of_stage[static_cast<std::size_t>(s)],
              rank_of_stage(Template::dual_pipe_v, 4, StageId(s)));
  const auto made = make_schedule(Template::dual_pipe_v, {.pp = 4, .vp = 2, .microbatches = 10});
  EXPECT_EQ(without_communication(csv.list), made.value());
}

TEST(TorchCsv, SaysWhatItCannotHold) {
  const ActionList dual = make_schedule(Template::dual_pipe, {.pp = 4, .vp = 2, .microbatches = 8}).value();
  const auto text = write_torch_csv(dual);
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().text(), HasSubstr("2 pipelines side by side"));
  EXPECT_FALSE(write_torch_csv(lower(dual).value()));
}

TEST(TorchCsv, RoundTripsRandomLists) {
  Random random(33);
  for (int round = rounds(1'000, 20'000); round > 0; --round) {
    const LoweredList lowered = testing::random_lowered(random);
    const auto comms = read_torch_csv(write_torch_csv(lowered).value(), "x");
    ASSERT_TRUE(comms) << comms.error().text();
    ASSERT_EQ(comms->list, lowered);
    const ActionList actions = without_communication(lowered);
    const std::string text = write_torch_csv(actions).value();
    const auto compute = read_torch_csv(text, "x");
    ASSERT_TRUE(compute) << compute.error().text();
    ASSERT_EQ(without_communication(compute->list), actions);
    ASSERT_TRUE(torch_loads(text).accepted) << torch_loads(text).reason << "\n" << text;
    ASSERT_TRUE(check_torch_csv(*compute));
  }
}

}  // namespace
}  // namespace tessera::train
