// Tokenizers and the windows of a text. See karpathy/nanoGPT#292, karpathy/minbpe#72 (unseen
// characters).
#include "apps/data/text.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/data/data_sets.h"
#include "core/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace norma {
namespace {

using test::error_of;
using Ids = std::vector<std::int64_t>;

Ids numbers(std::int64_t n) {
  Ids ids;
  for (std::int64_t i = 0; i < n; ++i) ids.push_back(i);
  return ids;
}

DataRecord kept(const Tokenizer& tokenizer) {
  DataRecord record;
  tokenizer.keep(record);
  return record;
}

TextConfig make_config(std::int64_t context, double validation) {
  TextConfig config;
  config.path = "x.txt";
  config.context = context;
  config.validation = validation;
  return config;
}

// A text of the bytes 0, 1, 2, ..., so that an id tells its place.
TextDataSet make(std::int64_t n, const TextConfig& config, std::uint64_t seed = 1) {
  return TextDataSet(config, Tokenizer::bytes(), numbers(n), {.seed = seed});
}

TEST_CASE("Tokenizer: characters are numbered in the order of their code points") {
  const Tokenizer t = Tokenizer::characters("b\xc3\xa9\n a\xe2\x82\xac b\xf0\x9f\x98\x80", "x");
  CHECK(t.vocab() == 7);
  CHECK(kept(t).characters == "\n ab\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  const std::string text = "\xf0\x9f\x98\x80 b\xc3\xa9\n";
  CHECK(t.encode(text) == Ids{6, 1, 3, 4, 0});
  CHECK(t.decode(t.encode(text)) == text);
  CHECK(Tokenizer::from(kept(t)).encode(text) == t.encode(text));
  CHECK(
      error_of([&] { (void)t.encode("ab\xc3\xa0", "prompt"); }) ==
      "prompt: the character \"\xc3\xa0\" (U+00E0, at byte 2) does not stand in the training text, "
      "so the model has no id for it; leave it out");
  CHECK(error_of([&] { (void)t.decode(Ids{7}); }) == "decode: expected ids in 0..6; got 7");
  CHECK(error_of([&] { (void)t.decode(Ids{-1}); }) == "decode: expected ids in 0..6; got -1");
  CHECK(error_of([] { (void)Tokenizer::characters("", "x.txt"); }) == "x.txt: the text is empty");
}

TEST_CASE("Tokenizer: what is not UTF-8 is refused with its place") {
  for (const char* text : {"ab\xff", "ab\xc3", "ab\xc0\x80", "ab\xe0\x80\x80", "ab\xed\xa0\x80",
                           "ab\xf4\x90\x80\x80", "ab\xe2\x82", "ab\x80"}) {
    INFO(text);
    CHECK(test::contains(error_of([&] { (void)Tokenizer::characters(text, "x.txt"); }),
                         "x.txt: not UTF-8 at byte 2: 0x"));
  }
}

TEST_CASE("Tokenizer: bytes of any kind come back") {
  const Tokenizer t = Tokenizer::bytes();
  CHECK(t.vocab() == 256);
  const std::string text("\0\xff\r\n\x80z", 6);
  CHECK(t.encode(text) == Ids{0, 255, 13, 10, 128, 122});
  CHECK(t.decode(t.encode(text)) == text);
  CHECK(t.encode("").empty());
  CHECK(Tokenizer::from(kept(t)).vocab() == 256);
}

TEST_CASE("text: windows start anywhere from 0 to N-T-1 (karpathy/nanoGPT#292)") {
  const std::int64_t context = 4;
  for (const std::int64_t n : {5, 6, 9}) {
    INFO(n);
    const TextDataSet data = make(n, make_config(context, 0));
    std::map<std::int64_t, int> starts;
    for (std::int64_t i = 0; i < 250; ++i) {
      const Batch batch = data.train_batch(i, 8);
      const Ids inputs = batch.inputs.to_ids(), targets = batch.targets.to_ids();
      REQUIRE(batch.inputs.shape() == Shape{8, context});
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        REQUIRE(inputs[k] == inputs[k / 4 * 4] + static_cast<std::int64_t>(k % 4));
        REQUIRE(targets[k] == inputs[k] + 1);
      }
      for (std::size_t k = 0; k < inputs.size(); k += 4) ++starts[inputs[k]];
    }
    CHECK(starts.begin()->first == 0);
    CHECK(starts.rbegin()->first == n - context - 1);
    CHECK(static_cast<std::int64_t>(starts.size()) == n - context);
    // Uniform: 2000 draws, each start within 5 deviations of its share.
    const double share = 2000.0 / static_cast<double>(n - context);
    for (const auto& [start, count] : starts) {
      CHECK(std::abs(count - share) <= 5 * std::sqrt(share));
    }
  }
}

TEST_CASE("text: a part of fewer than T+1 tokens is refused (karpathy/nanoGPT#292)") {
  const auto error = [](std::int64_t n, double validation) {
    return error_of([&] { make(n, make_config(4, validation)); });
  };
  for (const std::int64_t n : {0, 1, 3, 4}) {
    CHECK(error(n, 0) ==
          fmt::format("text: expected at least context + 1 = 5 tokens in the train part of x.txt; "
                      "got {}; use a longer text, a smaller context",
                      n));
  }
  CHECK(error(5, 0).empty());
  CHECK(
      error(40, 0.1) ==
      "text: expected at least context + 1 = 5 tokens in the validation part of x.txt; got 4; use "
      "a longer text, a smaller context, or a larger validation share (0 for none)");
  CHECK(error(50, 0.1).empty());
}

TEST_CASE("text: validation is the end of the text, in windows that do not overlap") {
  const TextDataSet data = make(100, make_config(4, 0.1));
  CHECK(data.size(Part::validation) == 2);  // of 10 tokens: 90..93, 94..97
  const Batch batch = data.batch(Part::validation, 0, 8);
  CHECK(batch.inputs.to_ids() == Ids{90, 91, 92, 93, 94, 95, 96, 97});
  CHECK(batch.targets.to_ids() == Ids{91, 92, 93, 94, 95, 96, 97, 98});
  CHECK(data.size(Part::test) == 0);
  // Training never sees it.
  for (std::int64_t i = 0; i < 100; ++i) {
    for (const std::int64_t id : data.train_batch(i, 8).targets.to_ids()) REQUIRE(id < 90);
  }
  CHECK(data.size(Part::train) == 22);
  CHECK(data.num_batches(Part::train, 4) == 6);
  CHECK(make(100, make_config(4, 0)).size(Part::validation) == 0);
}

TEST_CASE("text: batches are functions of seed and index") {
  const TextDataSet a = make(200, make_config(8, 0.1)), b = make(200, make_config(8, 0.1));
  const auto other = make(200, make_config(8, 0.1), 2);
  CHECK(a.train_batch(5, 4).inputs.to_ids() == b.train_batch(5, 4).inputs.to_ids());
  CHECK(a.train_batch(5, 4).inputs.to_ids() != a.train_batch(6, 4).inputs.to_ids());
  CHECK(a.train_batch(5, 4).inputs.to_ids() != other.train_batch(5, 4).inputs.to_ids());
  // Two batches of 4 are one of 8: accumulating changes nothing.
  Ids both = a.train_batch(6, 4).inputs.to_ids();
  const Ids next = a.train_batch(7, 4).inputs.to_ids();
  both.insert(both.end(), next.begin(), next.end());
  CHECK(a.train_batch(3, 8).inputs.to_ids() == both);
}

TEST_CASE("text: without shuffle in order, and limited to the first windows") {
  TextConfig config = make_config(4, 0.1);
  config.shuffle = false;
  config.limit = 2;
  const TextDataSet data = make(100, config);
  CHECK(data.size(Part::train) == 2);
  CHECK(data.train_batch(0, 2).inputs.to_ids() == Ids{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(data.train_batch(1, 2).inputs.to_ids() == Ids{0, 1, 2, 3, 4, 5, 6, 7});
  config.shuffle = true;
  const TextDataSet drawn = make(100, config);
  for (std::int64_t i = 0; i < 50; ++i) {
    for (const std::int64_t id : drawn.train_batch(i, 2).targets.to_ids()) REQUIRE(id <= 8);
  }
}

TEST_CASE("text: from a file, and its configuration") {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "hello world, hello\n");
  const auto make_text = [&](const std::string& more) {
    return make_data_set(
        config::parse<DataConfig>(config::parse_json(fmt::format(
            R"({{"type": "text", "path": "{}/a.txt", "context": 3 {}}})", folder.path(), more))),
        {});
  };
  const auto data = make_text(R"(, "validation": 0)");
  CHECK(data->spec().vocab == 10);
  CHECK(data->spec().classes == 10);
  CHECK(data->spec().input == Shape{3});
  REQUIRE(data->tokenizer() != nullptr);
  CHECK(kept(*data->tokenizer()).characters == "\n ,dehlorw");
  CHECK(make_text(R"(, "tokenizer": "byte", "validation": 0)")->spec().vocab == 256);
  NORMA_CHECK_ERROR(make_text(R"(, "tokenizer": "words")"), "tokenizer");
}

}  // namespace
}  // namespace norma
