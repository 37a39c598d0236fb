// Generated sequences: what is asked, what is right, and how it is laid out for each kind of model.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/data/data_sets.h"
#include "apps/data/tokenizer.h"
#include "tests/support/catch.h"

namespace norma {
namespace {

using Ids = std::vector<std::int64_t>;
constexpr std::int64_t kNo = kIgnored;

std::unique_ptr<DataSet> make(const std::string& json, SequenceForm form, std::uint64_t seed = 0) {
  return make_data_set(config::parse<DataConfig>(config::parse_json(json), "data"),
                       {.seed = seed, .form = form});
}

Ids row(const Tensor& x, std::int64_t r) {
  const Ids all = x.to_ids();
  return {all.begin() + r * x.size(1), all.begin() + (r + 1) * x.size(1)};
}

// The sources and answers of a batch, read back from the layout of an encoder-decoder.
struct Sample {
  Ids source, answer;
};
std::vector<Sample> samples(const DataSet& data, Part part, std::int64_t batches) {
  std::vector<Sample> all;
  for (std::int64_t i = 0; i < std::min(batches, data.num_batches(part, 64)); ++i) {
    const Batch b =
        part == Part::train ? data.train_batch(i, 64) : data.batch(Part::validation, i, 64);
    for (std::int64_t r = 0; r < b.samples(); ++r) {
      Ids source = row(b.source, r);
      if (b.source_mask.defined()) {
        const Ids mask = row(b.source_mask, r);
        source.resize(static_cast<std::size_t>(std::count(mask.begin(), mask.end(), 1)));
      }
      all.push_back({source, row(b.targets, r)});
    }
  }
  return all;
}

TEST_CASE("tasks: the layouts of a decoder, an encoder and an encoder-decoder") {
  const std::string task = R"({"type": "reverse", "vocab": 9, "length": 3})";
  const auto both = make(task, SequenceForm::encoder_decoder);
  const Batch batch = both->train_batch(0, 2);
  CHECK(both->spec().vocab == 10);
  CHECK(both->spec().classes == 9);
  CHECK(both->spec().answers);
  CHECK(both->spec().input == Shape{3});
  CHECK(both->spec().source == Shape{3});
  for (std::int64_t r = 0; r < 2; ++r) {
    const Ids s = row(batch.source, r);
    const Ids a = {s[2], s[1], s[0]};
    CHECK(row(batch.targets, r) == a);
    CHECK(row(batch.inputs, r) == Ids{9, a[0], a[1]});
    const Batch left = make(task, SequenceForm::decoder)->train_batch(0, 2);
    CHECK(row(left.inputs, r) == Ids{s[0], s[1], s[2], 9, a[0], a[1]});
    CHECK(row(left.targets, r) == Ids{kNo, kNo, kNo, a[0], a[1], a[2]});
    CHECK_FALSE(left.mask.defined());
    const auto encoder = make(task, SequenceForm::encoder);
    CHECK(encoder->spec().vocab == 9);
    CHECK(row(encoder->train_batch(0, 2).inputs, r) == s);
    CHECK(row(encoder->train_batch(0, 2).targets, r) == a);
  }
  // An answer of another length fills blanks.
  const Batch blanks = make(R"({"type": "modular", "modulus": 7})", SequenceForm::encoder)
                           ->batch(Part::validation, 0, 1);
  const Ids x = row(blanks.inputs, 0);
  CHECK(x.size() == 3);
  CHECK(x[2] == 7);
  CHECK(row(blanks.targets, 0) == Ids{kNo, kNo, (x[0] + x[1]) % 7});
}

TEST_CASE("tasks: every answer is right, in training and validation") {
  const auto check = [](const std::string& json, auto&& right) {
    INFO(json);
    const auto data = make(json, SequenceForm::encoder_decoder);
    for (const Part part : {Part::train, Part::validation}) {
      for (const Sample& s : samples(*data, part, 4)) REQUIRE(right(s.source) == s.answer);
    }
  };
  check(R"({"type": "copy", "vocab": 5, "length": 7})", [](Ids s) { return s; });
  check(R"({"type": "reverse", "vocab": 5, "length": 7})",
        [](Ids s) { return Ids(s.rbegin(), s.rend()); });
  check(R"({"type": "sort", "vocab": 5, "length": 7})", [](Ids s) {
    std::stable_sort(s.begin(), s.end());
    return s;
  });
  check(R"({"type": "shift", "vocab": 5, "length": 3})", [](const Ids& s) {
    return Ids{s[2], s[0], s[1]};
  });
  check(R"({"type": "addition", "digits": 3})", [](const Ids& s) {
    const std::int64_t a = s[0] * 100 + s[1] * 10 + s[2], b = s[4] * 100 + s[5] * 10 + s[6];
    const std::int64_t c = a + b;
    CHECK(s[3] == 10);
    return Ids{c / 1000, c / 100 % 10, c / 10 % 10, c % 10};
  });
  const auto modular = [&](const char* operation, auto&& apply) {
    check(fmt::format(R"({{"type": "modular", "modulus": 11, "operation": "{}"}})", operation),
          [&](const Ids& s) { return Ids{apply(s[0], s[1])}; });
  };
  modular("add", [](auto a, auto b) { return (a + b) % 11; });
  modular("subtract", [](auto a, auto b) { return (a + 11 - b) % 11; });
  modular("multiply", [](auto a, auto b) { return a * b % 11; });
  modular("divide", [](auto a, auto b) {
    std::int64_t c = 0;  // the c with b c = a
    while (b == 0 || b * c % 11 != a) ++c;
    return c;
  });
}

TEST_CASE("tasks: validation asks what training never does, the same for every seed") {
  for (const char* json : {R"({"type": "modular", "modulus": 13, "validation": 0.3})",
                           R"({"type": "addition", "digits": 2})"}) {
    INFO(json);
    const auto data = make(json, SequenceForm::encoder_decoder);
    std::set<Ids> asked, held;
    for (const Sample& s : samples(*data, Part::train, 200)) asked.insert(s.source);
    for (const Sample& s : samples(*data, Part::validation, 8)) held.insert(s.source);
    for (const Ids& source : held) REQUIRE(asked.count(source) == 0);
    CHECK(held.size() > 10);
    CHECK(data->batch(Part::validation, 0, 64).source.to_ids() ==
          make(json, SequenceForm::encoder_decoder, 5)
              ->batch(Part::validation, 0, 64)
              .source.to_ids());
    CHECK(data->train_batch(0, 64).source.to_ids() !=
          make(json, SequenceForm::encoder_decoder, 5)->train_batch(0, 64).source.to_ids());
  }
  // 169 pairs, 30 % of them held: the others are all asked in 12,800 draws.
  const auto all =
      make(R"({"type": "modular", "modulus": 13, "validation": 0})", SequenceForm::encoder_decoder);
  std::set<Ids> asked;
  for (const Sample& s : samples(*all, Part::train, 200)) asked.insert(s.source);
  CHECK(asked.size() == 169);
  CHECK(all->size(Part::validation) == 0);
}

TEST_CASE("tasks: what cannot be asked is refused") {
  NORMA_CHECK_ERROR(
      make(R"({"type": "modular", "modulus": 12, "operation": "divide"})", SequenceForm::decoder),
      "data.modulus: division needs a prime; got 12");
  NORMA_CHECK_ERROR(
      make(R"({"type": "modular", "modulus": 2, "validation": 0.01})", SequenceForm::decoder),
      "modular: of 4 questions, a validation share of 0.01 sets 0 aside, which leaves "
      "one part without any");
  NORMA_CHECK_ERROR(make(R"({"type": "addition", "digits": 10})", SequenceForm::decoder),
                    "data.digits");
  CHECK(make(R"({"type": "addition", "digits": 9})", SequenceForm::decoder)
            ->train_batch(0, 4)
            .inputs.shape() == Shape{4, 29});
}

TEST_CASE("dates: the forms, leap years and weekdays") {
  // 1987-03-05 was a Thursday; day 31839 from 1900-01-01.
  constexpr std::int64_t kDay = 31839;
  CHECK(iso_date(0) == "1900-01-01");
  CHECK(iso_date(kDay) == "1987-03-05");
  CHECK(iso_date(58) == "1900-02-28");  // 1900 was no leap year
  CHECK(iso_date(59) == "1900-03-01");
  CHECK(iso_date(73048) == "2099-12-31");
  std::set<std::string> forms;
  for (std::int64_t f = 0; f < num_date_forms(); ++f) forms.insert(write_date(kDay, f));
  CHECK(forms.size() == static_cast<std::size_t>(num_date_forms()));
  for (const char* form : {"March 5, 1987", "5 Mar 1987", "Thursday, March 5th, 1987",
                           "the 5th of March 1987", "3/5/1987", "05.03.1987", "19870305"}) {
    INFO(form);
    CHECK(forms.count(form) == 1);
  }
  CHECK(write_date(11, 7) == "January 12th, 1900");
  CHECK(write_date(21, 7) == "January 22nd, 1900");
}

TEST_CASE("dates: laid out with masks; the answer is the ISO form") {
  const auto data = make(R"({"type": "dates"})", SequenceForm::encoder_decoder);
  REQUIRE(data->tokenizer() != nullptr);
  const Tokenizer& t = *data->tokenizer();
  CHECK(data->spec().vocab == t.vocab() + 1);
  std::set<std::string> asked, held;
  std::size_t longest = 0;
  for (const Sample& s : samples(*data, Part::train, 100)) {
    const std::string text = t.decode(s.source), iso = t.decode(s.answer);
    longest = std::max(longest, text.size());
    REQUIRE(iso.size() == 10);
    REQUIRE(test::contains(text, iso.substr(0, 4)));
    asked.insert(iso);
  }
  CHECK(longest > 25);
  for (const Sample& s : samples(*data, Part::validation, 8)) held.insert(t.decode(s.answer));
  for (const std::string& iso : held) REQUIRE(asked.count(iso) == 0);

  // A decoder: the source, a separator, the answer but its last id, and padding that counts
  // nowhere.
  const Batch batch = make(R"({"type": "dates"})", SequenceForm::decoder)->train_batch(0, 8);
  const Batch apart = data->train_batch(0, 8);
  for (std::int64_t r = 0; r < 8; ++r) {
    const Ids mask = row(batch.mask, r), source_mask = row(apart.source_mask, r);
    const auto n = std::count(source_mask.begin(), source_mask.end(), 1);
    CHECK(std::count(mask.begin(), mask.end(), 1) == n + 10);
    CHECK(mask[static_cast<std::size_t>(n + 9)] == 1);
    const Ids x = row(batch.inputs, r), y = row(batch.targets, r), s = row(apart.source, r);
    CHECK(std::equal(s.begin(), s.begin() + n, x.begin()));
    CHECK(x[static_cast<std::size_t>(n)] == t.vocab());
    CHECK(Ids(y.begin() + n, y.begin() + n + 10) == row(apart.targets, r));
    CHECK(std::count(y.begin(), y.end(), kNo) == static_cast<std::int64_t>(y.size()) - 10);
  }
}

}  // namespace
}  // namespace norma
