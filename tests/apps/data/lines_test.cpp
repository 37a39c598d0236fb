// Lines, points, varied images, and what a run keeps of its data.
#include "apps/data/lines.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/data/data_sets.h"
#include "core/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace norma {
namespace {

using Ids = std::vector<std::int64_t>;
constexpr std::int64_t kNo = kIgnored;

std::unique_ptr<DataSet> make(const std::string& json, SequenceForm form = SequenceForm::decoder) {
  return make_data_set(config::parse<DataConfig>(config::parse_json(json), "data"), {.form = form});
}

TEST_CASE("lines: begun and ended by one id, filled up to the longest") {
  const TemporaryFolder folder;
  write_file(folder / "x.txt", "ab\r\n\ncab\nb");
  const std::string json =
      fmt::format(R"({{"type": "lines", "path": "{}/x.txt", "validation": 0, "shuffle": false}})",
                  folder.path());
  const auto data = make(json);
  CHECK(data->spec().vocab == 4);
  CHECK(data->spec().classes == 4);
  CHECK(data->spec().edge == 3);
  CHECK(data->spec().input == Shape{4});
  CHECK(data->size(Part::train) == 3);
  const Batch batch = data->train_batch(0, 3);
  CHECK(batch.inputs.to_ids() == Ids{3, 0, 1, 3, 3, 2, 0, 1, 3, 1, 3, 3});
  CHECK(batch.targets.to_ids() == Ids{0, 1, 3, kNo, 2, 0, 1, 3, 1, 3, kNo, kNo});
  CHECK(batch.mask.to_ids() == Ids{1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 0});
  // For an encoder, masked tokens.
  const Batch masked = make(json, SequenceForm::encoder)->train_batch(0, 3);
  const Ids targets = masked.targets.to_ids();
  CHECK(masked.inputs.shape() == Shape{3, 3});
  CHECK(masked.mask.to_ids() == Ids{1, 1, 0, 1, 1, 1, 1, 0, 0});
  CHECK(std::count(targets.begin(), targets.end(), kNo) == 9 - 3);
  NORMA_CHECK_ERROR(make(json, SequenceForm::encoder_decoder),
                    "lines: an encoder_decoder needs a source and an answer");
  write_file(folder / "x.txt", "\n\n");
  NORMA_CHECK_ERROR(make(json), "has no line that is not empty");
  NORMA_CHECK_ERROR(make(R"({"type": "lines", "path": "/nowhere"})"), "there is no file /nowhere");
}

TEST_CASE("lines: validation is drawn from the whole file, and training never sees it") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 100; i < 200; ++i) text += std::to_string(i) + "\n";
  write_file(folder / "x.txt", text);
  const auto data = make(fmt::format(R"({{"type": "lines", "path": "{}/x.txt"}})", folder.path()));
  CHECK(data->size(Part::train) == 90);
  CHECK(data->size(Part::validation) == 10);
  std::set<Ids> train, held;
  const auto add = [](std::set<Ids>& to, const Batch& b) {
    const Ids all = b.inputs.to_ids();
    for (std::size_t i = 0; i < all.size(); i += 4) to.insert({&all[i], &all[i] + 4});
  };
  add(train, data->batch(Part::train, 0, 90));
  add(held, data->batch(Part::validation, 0, 10));
  CHECK(train.size() == 90);
  for (const Ids& line : held) CHECK(train.count(line) == 0);
}

TEST_CASE("text: an encoder gets masked tokens, anew in each epoch") {
  const TemporaryFolder folder;
  write_file(folder / "x.txt", std::string(50, 'a') + std::string(50, 'b'));
  const std::string json = fmt::format(
      R"({{"type": "text", "path": "{}/x.txt", "context": 20, "validation": 0, "shuffle": false}})",
      folder.path());
  const auto data = make(json, SequenceForm::encoder);
  CHECK(data->spec().vocab == 3);
  CHECK(data->spec().classes == 2);
  const Batch first = data->train_batch(0, 4);
  const Ids x = first.inputs.to_ids(), y = first.targets.to_ids();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t text = i < 50 ? 0 : 1;
    CHECK((y[i] == kNo ? x[i] == text : y[i] == text));
  }
  CHECK(std::count(y.begin(), y.end(), kNo) == 80 - 4 * 3);
  CHECK(data->train_batch(1, 4).targets.to_ids() != y);
  CHECK(make(json, SequenceForm::encoder)->train_batch(0, 4).targets.to_ids() == y);
  NORMA_CHECK_ERROR(make(json, SequenceForm::encoder_decoder), "text: an encoder_decoder needs");
}

TEST_CASE("spirals and gaussians: classes in turn, the same points for every seed") {
  const auto spirals = make(
      R"({"type": "spirals", "samples": 300, "noise": 0, "normalize": false, "validation": 0})");
  CHECK(spirals->spec().classes == 3);
  const Batch all = spirals->batch(Part::train, 0, 300);
  const std::vector<double> x = all.inputs.to_vector();
  const Ids labels = all.targets.to_ids();
  for (std::size_t i = 0; i < 300; ++i) {
    CHECK(labels[i] == static_cast<std::int64_t>(i % 3));
    const double r = std::hypot(x[2 * i], x[2 * i + 1]);
    const double angle = 2 * 3.14159265358979 * static_cast<double>(i % 3) / 3 + 4 * r;
    CHECK(x[2 * i] == Approx(r * std::sin(angle)).margin(1e-5));
  }
  const auto clouds = make(
      R"({"type": "gaussians", "classes": 2, "features": 5, "samples": 4000, "normalize": false, "validation": 0})");
  CHECK(clouds->spec().input == Shape{5});
  // The deviation around a center is 1.
  const std::vector<double> p = clouds->batch(Part::train, 0, 4000).inputs.to_vector();
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < 4000; i += 2) {
    sum += p[5 * i];
    squares += p[5 * i] * p[5 * i];
  }
  CHECK(squares / 2000 - sum / 2000 * sum / 2000 == Approx(1).epsilon(0.1));
}

// Two images of 2 x 3, told apart by their pixels.
LabelledArrays two_images() {
  LabelledArrays arrays{.inputs = Tensor::empty({2, 2, 3}, DType::u8),
                        .labels = Tensor::empty({2}, DType::u8)};
  for (std::uint8_t i = 0; i < 12; ++i) {
    arrays.inputs.mutable_data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i + 1);
  }
  arrays.labels.mutable_data<std::uint8_t>()[0] = 0;
  arrays.labels.mutable_data<std::uint8_t>()[1] = 1;
  return arrays;
}

TEST_CASE("augment: mirrored and moved, zeros come in; a function of seed, epoch and image") {
  ImageOptions options;
  options.normalize = false;
  options.validation = 0;
  options.shuffle = false;
  const auto images = [&](const Augment& augment, std::int64_t epoch, std::uint64_t seed = 0) {
    const LabelledArraysDataSet data("x", two_images(), options, seed, augment);
    std::vector<double> x = data.train_batch(epoch, 2).inputs.to_vector();
    for (double& v : x) v = std::round(v * 255);
    return x;
  };
  const std::vector<double> plain = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const std::vector<double> mirrored = {3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10};
  CHECK(images({}, 0) == plain);
  int flips = 0;
  std::set<std::vector<double>> seen;
  for (std::int64_t epoch = 0; epoch < 40; ++epoch) {
    const std::vector<double> x = images({.flip = true}, epoch);
    for (std::size_t i = 0; i < 12; i += 6) {
      const bool flipped = x[i] == mirrored[i];
      flips += flipped;
      const auto& expected = flipped ? mirrored : plain;
      REQUIRE(std::equal(x.begin() + static_cast<std::ptrdiff_t>(i),
                         x.begin() + static_cast<std::ptrdiff_t>(i) + 6,
                         expected.begin() + static_cast<std::ptrdiff_t>(i)));
    }
    const std::vector<double> moved = images({.crop = 1}, epoch);
    seen.insert({moved.begin(), moved.begin() + 6});
    CHECK(moved == images({.crop = 1}, epoch));
  }
  CHECK(flips > 20);
  CHECK(flips < 60);
  CHECK(seen.size() == 9);
  CHECK(seen.count({0, 0, 0, 0, 1, 2}) == 1);  // down and right by one
  CHECK(seen.count({5, 6, 0, 0, 0, 0}) == 1);
  CHECK(images({.crop = 1}, 0) != images({.crop = 1}, 0, 7));
  // Never outside of training, and never of what is no image.
  const LabelledArraysDataSet data("x", two_images(), options, 0, {.crop = 1});
  CHECK(std::round(data.batch(Part::train, 0, 2).inputs.to_vector()[0] * 255) >= 0);
  LabelledArrays rows{.inputs = Tensor::zeros({2, 3}), .labels = two_images().labels};
  NORMA_CHECK_ERROR(LabelledArraysDataSet("x", rows, options, 0, {.flip = true}),
                    "x: augment is for images (height, width); the samples have shape (3)");
}

TEST_CASE("what is kept of the data: enough to go without them, and to notice others") {
  const TemporaryFolder folder;
  write_file(folder / "x.txt", "hello hello hello");
  const std::string json =
      fmt::format(R"({{"type": "text", "path": "{}/x.txt", "context": 3, "tokenizer": "bpe",
                     "vocab": 258, "validation": 0}})",
                  folder.path());
  const auto data = make(json);
  const std::string path = folder / "data.json";
  write_data_record(path, data->record());
  const DataRecord kept = read_data_record(path);
  CHECK(kept.hash == checksum("hello hello hello"));
  CHECK(spec_of(kept).vocab == 258);
  CHECK(spec_of(kept).input == Shape{3});
  CHECK(Tokenizer::from(kept).encode("hello") == data->tokenizer()->encode("hello"));
  check_same_data(kept, data->record(), "run");
  write_file(folder / "x.txt", "hello hello hellp");
  NORMA_CHECK_ERROR(check_same_data(kept, make(json)->record(), "run"),
                    "data: what run was trained on has changed");
  // Images: every pixel counts.
  const LabelledArraysDataSet a("x", two_images(), ArrayOptions(), 0);
  LabelledArrays other = two_images();
  other.inputs.mutable_data<std::uint8_t>()[11] = 99;
  const LabelledArraysDataSet b("x", other, ArrayOptions(), 0);
  CHECK(a.record().hash != b.record().hash);
  CHECK(a.record().hash.size() == 16);
}

TEST_CASE("the order of an epoch depends on seed and epoch alone; every sample once an epoch") {
  const std::string json = R"({"type": "spirals", "samples": 23, "validation": 0})";
  const auto ids = [](const DataSet& data, std::int64_t epoch, std::int64_t batch) {
    std::vector<double> all;
    const std::int64_t n = data.num_batches(Part::train, batch);
    for (std::int64_t i = 0; i < n; ++i) {
      const Batch b = data.train_batch(epoch * n + i, batch);
      CHECK(b.samples() == (i + 1 < n ? batch : 23 - (n - 1) * batch));
      for (const double x : b.inputs.to_vector()) all.push_back(x);
    }
    return all;
  };
  const auto data = make(json), again = make(json);
  (void)again->train_batch(50, 4);  // what was asked for before does not count
  for (std::int64_t epoch : {3, 0, 2}) {
    const std::vector<double> order = ids(*data, epoch, 4);
    CHECK(order == ids(*again, epoch, 4));
    CHECK(order == ids(*again, epoch, 7));
    std::vector<double> sorted = order, first = ids(*data, 1, 4);
    CHECK(order != first);
    std::sort(sorted.begin(), sorted.end());
    std::sort(first.begin(), first.end());
    CHECK(sorted == first);
  }
}

}  // namespace
}  // namespace norma
