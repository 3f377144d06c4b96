#include "tessera/train/schedule/hybrid_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/core/base/document.h"
#include "tessera/train/schedule/megatron_layout.h"
#include "tessera/train/schedule/titan_modules.h"
#include "train/random.h"
#include "train/testing_model.h"

namespace tessera::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string fault(std::string_view pattern, MegatronRelease release = MegatronRelease::v0_19_2) {
  const auto read = read_hybrid_pattern(pattern, release);
  return read ? "read" : read.error().text();
}

Layer layer_of(char mixer, char feed_forward) {
  Layer layer;
  if (mixer == 'M') layer.mixer = Mamba2{.heads = 2};
  if (mixer == 'G') layer.mixer = GatedDeltaNet{.key_heads = 2};
  if (mixer == '*') layer.mixer = SoftmaxAttention{.query_heads = 2};
  if (mixer == '+') layer.mixer = LatentAttention{.heads = 2};
  if (mixer == 'D') layer.mixer = LatentAttention{.heads = 2, .indexer = SparseIndexer{.heads = 1}};
  if (feed_forward == '-') layer.dense = DenseFeedForward{.width = 4};
  if (feed_forward == 'E') layer.moe = MixtureOfExperts{.experts = 4};
  return layer;
}

/// A block a word: "G E" are two blocks, "GE" is one.
ModelSpec model_of(const std::vector<std::string>& layers, const std::string& mtp = "", int mtp_layers = 0) {
  ModelSpec model;
  model.blocks.push_back({.kind = BlockKind::embedding});
  const auto add = [&](BlockKind kind, const std::string& word) {
    const bool mixer = std::string("MG*+D").find(word[0]) != std::string::npos;
    const char feed_forward = mixer ? (word.size() > 1 ? word[1] : ' ') : word[0];
    model.layer_types.push_back(layer_of(mixer ? word[0] : ' ', feed_forward));
    model.blocks.push_back({.kind = kind,
                            .layer = static_cast<std::int32_t>(model.blocks.size()) - 1,
                            .type = static_cast<std::int32_t>(model.layer_types.size()) - 1});
  };
  for (const std::string& word : layers) add(BlockKind::layer, word);
  for (int m = 0; m < mtp_layers; ++m) add(BlockKind::mtp, mtp);
  model.blocks.push_back({.kind = BlockKind::head});
  return model;
}

TEST(HybridPattern, AgreesWithTheReleasedParser) {
  const auto file = Document::read(TESSERA_TEST_DATA "/layouts/megatron_hybrid_pattern.json");
  ASSERT_TRUE(file) << file.error().text();
  const Cursor cases = file->root().find("cases").value();
  ASSERT_EQ(cases.size(), 9U);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Cursor c = cases.item(i);
    const std::string text = c.required_string("pattern").value();
    SCOPED_TRACE(text);
    const auto pattern = read_hybrid_pattern(text);
    ASSERT_EQ(pattern.has_value(), c.required_boolean("ok").value());
    if (!pattern) continue;
    EXPECT_EQ(pattern->entries(), c.required_integer("total_layers", 0, 1000).value());
    EXPECT_EQ(pattern->segments.size(), c.required_integer("segments", 1, 1000).value());
    EXPECT_EQ(pattern->mtp_layers, c.required_integer("depths", 0, 10).value());
    EXPECT_EQ(pattern->mtp, c.present("mtp") ? c.required_string("mtp").value() : "");
    const Cursor counts = c.find("counts").value();
    for (std::size_t k = 0; k < counts.size(); ++k)
      EXPECT_EQ(pattern->count(counts.key(k)[0]), counts.item(k).integer(0, 1000).value());
    const auto select = c.find("select_pp2");
    for (std::size_t rank = 0; select && rank < select->size(); ++rank)
      for (std::size_t chunk = 0; chunk < select->item(rank).size(); ++chunk) {
        const Cursor expected = select->item(rank).item(chunk);
        std::string entries;
        for (std::size_t e = 0; e < expected.item(0).size(); ++e)
          entries += expected.item(0).item(e).string().value();
        const auto segment =
            hybrid_segment(*pattern, 2, static_cast<std::int64_t>(select->item(rank).size()),
                           static_cast<std::int64_t>(rank), static_cast<std::int64_t>(chunk));
        ASSERT_TRUE(segment) << segment.error().text();
        EXPECT_EQ(segment->entries, entries);
        EXPECT_EQ(segment->first, expected.item(1).integer(0, 1000).value());
      }
  }
}

TEST(HybridPattern, ReadsThePatternsPeopleUse) {
  const auto file = Document::read(TESSERA_TEST_DATA "/layouts/hybrid-patterns.json");
  ASSERT_TRUE(file) << file.error().text();
  const Cursor patterns = file->root().find("patterns").value();
  ASSERT_EQ(patterns.size(), 6U);
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const Cursor of = patterns.item(i), derived = of.find("derived").value();
    SCOPED_TRACE(of.required_string("id").value());
    const auto pattern = read_hybrid_pattern(of.required_string("pattern").value());
    ASSERT_TRUE(pattern) << pattern.error().text();
    EXPECT_EQ(pattern->entries(), derived.required_integer("main_layers", 0, 1000).value());
    EXPECT_EQ(pattern->mtp_layers, derived.required_integer("mtp_depths", 0, 10).value());
    const std::int64_t moe = derived.required_integer("moe_main", 0, 1000).value() +
                             derived.required_integer("moe_mtp", 0, 1000).value();
    EXPECT_EQ(pattern->count('E'), moe);
    const Cursor sizes = derived.find("segment_layers").value();
    ASSERT_EQ(pattern->segments.size(), sizes.size());
    for (std::size_t s = 0; s < sizes.size(); ++s)
      EXPECT_EQ(pattern->segments[s].size(), sizes.item(s).integer(0, 1000).value());
  }
}

TEST(HybridPattern, KnowsItsReleases) {
  EXPECT_EQ(fault("M-M*E", MegatronRelease::v0_16_1), "read");
  EXPECT_THAT(fault("GE*E", MegatronRelease::v0_16_1),
              HasSubstr("'G' at position 0 of the main part is no layer of Megatron-Core 0.16.1\n"
                        "  Its letters are M, *, - and E."));
  EXPECT_THAT(fault("ME|ME", MegatronRelease::v0_16_1), HasSubstr("cannot cut stages with |"));
  EXPECT_THAT(fault("MEME/*E", MegatronRelease::v0_16_1), HasSubstr("no MTP part"));
  EXPECT_EQ(megatron_release("0.16.1").value(), MegatronRelease::v0_16_1);
  EXPECT_EQ(megatron_release("0.19.2").value(), MegatronRelease::v0_19_2);
  EXPECT_THAT(megatron_release("0.17").error().text(), HasSubstr("Known are 0.16.1 and 0.19.2"));
}

TEST(HybridPattern, TellsTheTwoNotationsApart) {
  EXPECT_THAT(fault("E|t*3|(t|)*5mL"),
              HasSubstr("this is a pipeline layout string, not a hybrid layer pattern"));
  for (const std::string pattern : {"M-M-M-M*-M-|M-M-M*-M-M-", "E*E|E*E"}) {
    EXPECT_EQ(fault(pattern), "read");
    const auto layout = expand_megatron_layout(pattern);
    ASSERT_FALSE(layout);
    EXPECT_THAT(layout.error().text(),
                HasSubstr("this is a hybrid layer pattern, not a pipeline layout string"));
  }
  const auto convert = [](std::string_view text) {
    const auto layout = layout_of_hybrid_pattern(read_hybrid_pattern(text).value());
    return layout ? *layout : layout.error().text();
  };
  EXPECT_EQ(convert("*E*E|*E*E"), "Ett|ttL");
  EXPECT_EQ(convert("GE*E||G-/*E/*E"), "Ett||tmmL");
  EXPECT_THAT(convert("*E*|E*E"),
              HasSubstr("the cut after stage 0 splits a block behind its mixer, entry 2 (*)"));
  EXPECT_THAT(convert("MEM*E"), HasSubstr("entry 2 (M) stands without a feed-forward part"));
  EXPECT_THAT(convert("E*E|E*E"), HasSubstr("entry 0 (E) stands without a mixer"));
}

TEST(HybridPattern, SharesOutEntriesWithoutCuts) {
  const HybridPattern pattern = read_hybrid_pattern("MEMEM*").value();
  EXPECT_EQ(hybrid_segment(pattern, 2, 1, 1, 0)->entries, "EM*");
  EXPECT_EQ(hybrid_segment(pattern, 2, 1, 1, 0)->first, 3);
  EXPECT_EQ(hybrid_segment(pattern, 1, 1, 0, 0)->entries, "MEMEM*");
  EXPECT_THAT(hybrid_segment(pattern, 4, 1, 0, 0).error().text(), HasSubstr("6 entries without cuts"));
  EXPECT_THAT(hybrid_segment(pattern, 3, 2, 0, 0).error().text(), HasSubstr("no virtual stages, but vp = 2"));
  EXPECT_THAT(hybrid_segment(read_hybrid_pattern("M|E|M").value(), 2, 1, 0, 0).error().text(),
              HasSubstr("3 segments, but pp = 2 and vp = 1 need 2"));
  EXPECT_FALSE(hybrid_segment(pattern, 2, 1, 2, 0));
}

TEST(HybridPattern, WritesAndReadsPartitions) {
  const ModelSpec model = model_of({"GE", "GE", "*E", "G-"}, "*E", 2);
  const Partition partition{{{0, 3}, {3, 3}, {3, 5}, {5, 8}}};
  const auto text = write_hybrid_pattern(model, partition, 2);
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_EQ(*text, "GEGE||*EG-|/*E/*E");
  const auto again = read_hybrid_partition(read_hybrid_pattern(*text).value(), model, 2);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(*again, partition);
  const auto of = [&](std::string_view pattern, std::int64_t pp) {
    const auto read = read_hybrid_partition(read_hybrid_pattern(pattern).value(), model, pp);
    return read ? "read" : read.error().text();
  };
  EXPECT_THAT(of("GEG|E*EG-/*E/*E", 2), HasSubstr("the cut after stage 0 splits layer 1 (\"GE\")"));
  EXPECT_THAT(of("GEGE*EGE/*E/*E", 2), HasSubstr("they differ from entry 7 on"));
  EXPECT_THAT(of("GEGE*EG-/*E", 2), HasSubstr("1 MTP layers \"*E\" where the model has 2 \"*E\""));
  EXPECT_THAT(of("GE|GE|*EG-/*E/*E", 2), HasSubstr("3 segments cannot be spread over pp = 2"));
  EXPECT_EQ(of("GEGE*EG-/*E/*E", 2), "read");
}

// One sublayer a block, as in Nemotron-H: a cut may stand anywhere.
TEST(HybridPattern, CutsBetweenSublayersWhereTheyAreBlocks) {
  const ModelSpec model = model_of({"M", "E", "M", "*", "E", "-"});
  const Partition partition{{{0, 2}, {2, 4}, {4, 5}, {5, 8}}};
  const std::string text = write_hybrid_pattern(model, partition, 4).value();
  EXPECT_EQ(text, "M|EM|*|E-");
  EXPECT_EQ(read_hybrid_partition(read_hybrid_pattern(text).value(), model, 4).value(), partition);
  EXPECT_EQ(write_hybrid_pattern(model, {{{0, 4}, {4, 8}}}, 2, MegatronRelease::v0_16_1).value(), "MEM*E-");
  EXPECT_THAT(write_hybrid_pattern(model, {{{0, 3}, {3, 8}}}, 2, MegatronRelease::v0_16_1).error().text(),
              HasSubstr("one equal share of the entries; this partition has 2 stages of 2 to 4 entries"));
}

TEST(HybridPattern, SaysWhatItCannotHold) {
  const auto write = [](const ModelSpec& model, const Partition& partition,
                        MegatronRelease release = MegatronRelease::v0_19_2) {
    const auto text = write_hybrid_pattern(model, partition, 1, release);
    return text ? *text : text.error().text();
  };
  ModelSpec model = model_of({"GE"}, "*E", 1);
  EXPECT_THAT(write(model, {{{0, 3}, {3, 4}}}), HasSubstr("MTP layer 1 is in stage 0"));
  EXPECT_THAT(write(model, {{{0, 4}}}, MegatronRelease::v0_16_1),
              HasSubstr("0.16.1 has no letter for Gated DeltaNet"));
  EXPECT_THAT(write(model_of({"*E", "+E"}), {{{0, 4}}}), HasSubstr("attention (*) beside MLA"));
  model.layer_types[0].dense = DenseFeedForward{.width = 4};
  EXPECT_THAT(write(model, {{{0, 4}}}), HasSubstr("a dense part beside its experts"));
  model.layer_types[0] = {.mixer = ShortConvolution{.kernel = 3}, .dense = DenseFeedForward{.width = 4}};
  EXPECT_THAT(write(model, {{{0, 4}}}), HasSubstr("0.19.2 has no letter for"));
  EXPECT_EQ(write(model_of({"D-", "DE", "+E"}), {{{0, 5}}}), "D-DE+E");
}

TEST(TitanModules, WritesAndReads) {
  const ModelSpec model = model_of({"GE", "GE", "*E"});
  const Partition partition{{{0, 2}, {2, 2}, {2, 3}, {3, 5}}};
  const std::string text = write_titan_modules(model, partition).value();
  EXPECT_EQ(text, R"([["tok_embeddings", "layers.0"], [], ["layers.1"], ["layers.2", "norm", "lm_head"]])");
  EXPECT_EQ(read_titan_modules(text, model).value(), partition);
  EXPECT_EQ(read_titan_modules(
                R"([["tok_embeddings", "layers.0", "layers.1", "layers.2", "norm", "output"]])", model)
                .value(),
            (Partition{{{0, 5}}}));
  const auto of = [&](std::string_view list) {
    const auto read = read_titan_modules(list, model, "x.json");
    return read ? "read" : read.error().text();
  };
  EXPECT_THAT(of(R"([["tok_embeddings"], ["layers.1"]])"),
              HasSubstr("expected \"layers.0\", found \"layers.1\""));
  EXPECT_THAT(of(R"([["tok_embeddings", "layers.0", "layers.1", "layers.2"]])"),
              HasSubstr("\"norm\" is in no stage"));
  EXPECT_THAT(of(R"([["tok_embeddings", "layers.0", "layers.1", "layers.2", "norm"], ["lm_head"]])"),
              HasSubstr("the final norm and the head are in different stages"));
  EXPECT_THAT(of(R"([["tok_embeddings", "layers.0", "layers.1", "layers.2", "norm", "output", "layers.3"]])"),
              HasSubstr("\"layers.3\" comes after the model's end"));
  EXPECT_THAT(of(R"({"a": 1})"), HasSubstr("expected a list of lists"));
  EXPECT_THAT(of(R"([1])"), HasSubstr("x.json:1: "));
  EXPECT_THAT(write_titan_modules(model_of({"GE"}, "*E", 1), {{{0, 4}}}).error().text(),
              HasSubstr("no module for multi-token prediction"));
}

// All three notations hold any partition of a model without MTP.
TEST(Partitions, SurviveEveryNotation) {
  testing::Random random(12);
  for (int round = testing::rounds(1'000, 20'000); round > 0; --round) {
    const int pp = random.between(1, 4), vp = random.between(1, 3), layers = random.between(1, 12);
    std::vector<std::string> words;
    for (int l = 0; l < layers; ++l) {
      std::string word(1, "MG*"[random.below(3)]);
      words.push_back(word + "-E"[random.below(2)]);
    }
    const ModelSpec model = model_of(words);
    std::vector<std::int32_t> cuts{1, layers + 1};
    for (int s = 1; s < pp * vp; ++s) cuts.push_back(random.between(1, layers + 1));
    std::ranges::sort(cuts);
    Partition partition;
    for (int s = 0; s < pp * vp; ++s)
      partition.stages.push_back({s == 0 ? 0 : cuts[static_cast<std::size_t>(s)],
                                  s + 1 == pp * vp ? layers + 2 : cuts[static_cast<std::size_t>(s) + 1]});
    ASSERT_TRUE(check_partition(model, partition));
    const std::string pattern = write_hybrid_pattern(model, partition, pp).value();
    ASSERT_EQ(read_hybrid_partition(read_hybrid_pattern(pattern).value(), model, pp).value(), partition)
        << pattern;
    const std::string layout = write_megatron_layout(model, partition, pp).value();
    ASSERT_EQ(read_megatron_layout(layout, model, {.pp = pp, .layers = layers}).value(), partition) << layout;
    ASSERT_EQ(layout_of_hybrid_pattern(read_hybrid_pattern(pattern).value()).value(), layout);
    const std::string modules = write_titan_modules(model, partition).value();
    ASSERT_EQ(read_titan_modules(modules, model).value(), partition) << modules;
  }
}

}  // namespace
}  // namespace tessera::train
