// Data sets of arrays with labels, and what all data sets share. See
// Lightning-AI/pytorch-lightning#2924.
#include "apps/data/labelled_arrays.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/data/data_sets.h"
#include "apps/data/scaling.h"
#include "core/file.h"
#include "core/parallel.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace norma {
namespace {

using test::error_of;

// n images of 1 x 2: (i, 2 i), and label i mod 3. In f32, so that an input tells its sample.
LabelledArrays numbered(std::int64_t n, std::int64_t test_n = 0) {
  const auto make = [](std::int64_t count, double offset) {
    std::vector<double> inputs, labels;
    for (std::int64_t i = 0; i < count; ++i) {
      inputs.push_back(offset + static_cast<double>(i));
      inputs.push_back(2 * static_cast<double>(i));
      labels.push_back(static_cast<double>(i % 3));
    }
    return std::pair(Tensor::from({count, 1, 2}, inputs), Tensor::from({count}, labels, DType::u8));
  };
  LabelledArrays arrays;
  std::tie(arrays.inputs, arrays.labels) = make(n, 0);
  if (test_n > 0) std::tie(arrays.test_inputs, arrays.test_labels) = make(test_n, 1000);
  return arrays;
}

ArrayOptions plain() {
  ArrayOptions options;
  options.normalize = false;
  options.validation = 0;
  return options;
}

// The samples of a batch: their first element, which is their number.
std::vector<std::int64_t> samples_of(const Batch& batch) {
  std::vector<std::int64_t> samples;
  const float* x = batch.inputs.data<float>();
  const std::int64_t size = batch.inputs.numel() / batch.samples();
  for (std::int64_t i = 0; i < batch.samples(); ++i) {
    samples.push_back(static_cast<std::int64_t>(x[i * size]));
  }
  return samples;
}

std::vector<std::int64_t> epoch_of(const DataSet& data, std::int64_t epoch, std::int64_t size) {
  std::vector<std::int64_t> samples;
  const std::int64_t n = data.num_batches(Part::train, size);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto more = samples_of(data.train_batch(epoch * n + i, size));
    samples.insert(samples.end(), more.begin(), more.end());
  }
  return samples;
}

TEST_CASE("an epoch holds every sample once, in an order of its own") {
  const LabelledArraysDataSet data("idx", numbered(10), plain(), 7);
  CHECK(data.num_batches(Part::train, 4) == 3);
  const auto first = epoch_of(data, 0, 4), second = epoch_of(data, 1, 4);
  CHECK(first != second);
  for (auto epoch : {first, second}) {
    std::sort(epoch.begin(), epoch.end());
    CHECK(epoch == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  }
  // The last batch is smaller; labels stay with their samples.
  const Batch last = data.train_batch(2, 4);
  CHECK(last.samples() == 2);
  CHECK(last.inputs.shape() == Shape{2, 1, 1, 2});
  for (std::int64_t i = 0; i < 2; ++i) {
    CHECK(last.targets.to_ids()[static_cast<std::size_t>(i)] ==
          samples_of(last)[static_cast<std::size_t>(i)] % 3);
  }
  // A function of seed and index alone: the same after other calls, and in another object.
  CHECK(epoch_of(data, 0, 4) == first);
  CHECK(epoch_of(LabelledArraysDataSet("idx", numbered(10), plain(), 7), 1, 4) == second);
  CHECK(epoch_of(LabelledArraysDataSet("idx", numbered(10), plain(), 8), 0, 4) != first);
}

TEST_CASE("shuffle, drop_last and limit") {
  ArrayOptions options = plain();
  options.shuffle = false;
  CHECK(epoch_of(LabelledArraysDataSet("idx", numbered(5), options, 1), 3, 2) ==
        std::vector<std::int64_t>{0, 1, 2, 3, 4});
  options.limit = 3;
  CHECK(epoch_of(LabelledArraysDataSet("idx", numbered(5), options, 1), 0, 2) ==
        std::vector<std::int64_t>{0, 1, 2});
  options.limit = 100;
  options.drop_last = true;
  CHECK(epoch_of(LabelledArraysDataSet("idx", numbered(5), options, 1), 0, 2) ==
        std::vector<std::int64_t>{0, 1, 2, 3});
}

TEST_CASE("batches of 522 samples (Lightning-AI/pytorch-lightning#2924)") {
  ArrayOptions options = plain();
  const LabelledArraysDataSet all("idx", numbered(522), options, 1);
  CHECK(all.num_batches(Part::train, 256) == 3);
  CHECK(all.train_batch(2, 256).samples() == 10);
  CHECK(all.train_batch(3, 256).samples() == 256);
  CHECK(all.num_batches(Part::train, 1000) == 1);
  CHECK(all.train_batch(5, 1000).samples() == 522);
  options.drop_last = true;
  const LabelledArraysDataSet whole("idx", numbered(522), options, 1);
  CHECK(whole.num_batches(Part::train, 256) == 2);
  CHECK(whole.train_batch(2, 256).samples() == 256);
  CHECK(error_of([&] { (void)whole.train_batch(0, 1000); }) ==
        "idx: with drop_last, expected at least one batch of 1000 samples; the train part has 522; "
        "use a smaller batch, or drop_last false");
  CHECK(error_of([&] { (void)whole.batch(Part::test, 0, 8); }) ==
        "idx: the test part has no samples");
  CHECK(error_of([&] { (void)whole.batch(Part::train, 3, 256); }) ==
        "idx: expected a batch index in 0..1; got 3");
  CHECK(error_of([&] { (void)whole.train_batch(0, 0); }) ==
        "idx: expected a batch of at least 1 sample; got 0");
}

TEST_CASE("the validation part is set aside at random, for all seeds alike") {
  ArrayOptions options = plain();
  options.validation = 0.2;
  const auto parts = [&](std::uint64_t seed) {
    const LabelledArraysDataSet data("idx", numbered(50, 4), options, seed);
    auto train = epoch_of(data, 0, 7);
    std::sort(train.begin(), train.end());
    return std::pair(train, samples_of(data.batch(Part::validation, 0, 100)));
  };
  const auto [train, validation] = parts(1);
  CHECK(train.size() == 40);
  CHECK(validation.size() == 10);
  std::set<std::int64_t> both(train.begin(), train.end());
  both.insert(validation.begin(), validation.end());
  CHECK(both.size() == 50);
  CHECK(validation.front() < 25);  // and not the file's end
  CHECK(parts(2) == std::pair(train, validation));

  const LabelledArraysDataSet data("idx", numbered(50, 4), options, 1);
  CHECK(data.size(Part::test) == 4);
  CHECK(samples_of(data.batch(Part::test, 1, 3)) == std::vector<std::int64_t>{1003});
  CHECK(data.spec().input == Shape{1, 1, 2});
  CHECK(data.spec().classes == 3);
  CHECK(data.spec().vocab == 0);
}

TEST_CASE("normalize uses the training part's mean and deviation, by channel") {
  // Two channels of 1 x 2 in u8; mean 2 and 100, deviation 1 and 0.
  LabelledArrays arrays;
  arrays.inputs = Tensor::from({2, 2, 1, 2}, {1, 3, 100, 100, 3, 1, 100, 100}, DType::u8);
  arrays.labels = Tensor::from({2}, {0, 1}, DType::u8);
  arrays.test_inputs = Tensor::from({1, 2, 1, 2}, {5, 2, 101, 0}, DType::u8);
  arrays.test_labels = Tensor::from({1}, {1}, DType::u8);
  ArrayOptions options = plain();
  options.shuffle = false;
  const auto values = [&](Part part) {
    return LabelledArraysDataSet("idx", arrays, options, 1).batch(part, 0, 9).inputs.to_vector();
  };
  options.normalize = true;
  CHECK(values(Part::train) == std::vector<double>{-1, 1, 0, 0, 1, -1, 0, 0});
  CHECK(values(Part::test) == std::vector<double>{3, 0, 1, -100});
  options.normalize = false;
  CHECK(values(Part::test)[0] == static_cast<double>(5 * (1.0f / 255)));
  // Features, (N, F): each by itself.
  arrays = {Tensor::from({2, 2}, {1, 10, 3, 30}), Tensor::from({2}, {0, 1}, DType::i64), {}, {}};
  options.normalize = true;
  CHECK(values(Part::train) == std::vector<double>{-1, -1, 1, 1});
}

TEST_CASE("batches are the same bits at any number of threads") {
  LabelledArrays arrays;
  arrays.inputs = Tensor::empty({300, 40, 40}, DType::u8);
  std::uint8_t* x = arrays.inputs.mutable_data<std::uint8_t>();
  for (unsigned i = 0; i < 300 * 1600; ++i) x[i] = static_cast<std::uint8_t>(i * 7919 >> 3);
  arrays.labels = Tensor::zeros({300}, DType::u8);
  arrays.labels.mutable_data<std::uint8_t>()[0] = 1;
  const int before = num_threads();
  std::vector<std::vector<double>> results;
  for (const int threads : {1, 2, 3, 8}) {
    set_num_threads(threads);
    const LabelledArraysDataSet data("idx", arrays, ArrayOptions{}, 1);
    results.push_back(data.train_batch(0, 300).inputs.to_vector());
  }
  set_num_threads(before);
  for (const auto& result : results) CHECK(result == results[0]);
}

TEST_CASE("inputs that are no finite numbers are refused, with their sample") {
  for (const double bad : {std::nan(""), HUGE_VAL, 1e300}) {
    std::vector<double> values(12, 0.5);
    values[7] = bad;
    const Tensor inputs = Tensor::from({4, 3}, values, DType::f64);
    NORMA_CHECK_ERROR(check_numbers("x.idx", inputs), "x.idx: expected finite numbers");
    NORMA_CHECK_ERROR(check_numbers("x.idx", inputs), "sample 3 has");
  }
}

TEST_CASE("arrays that do not belong together are refused") {
  const auto error = [](LabelledArrays arrays, ArrayOptions options = plain()) {
    return error_of([&] { LabelledArraysDataSet("idx", arrays, options, 1); });
  };
  LabelledArrays arrays = numbered(4, 2);
  arrays.labels = Tensor::zeros({3}, DType::u8);
  CHECK(error(arrays) ==
        "idx: expected a label for each of the 4 train inputs; got labels of shape (3)");
  arrays = numbered(4, 2);
  arrays.test_inputs = Tensor::zeros({2, 3, 3});
  CHECK(error(arrays) ==
        "idx: expected test inputs like the training ones, f32 (4, 1, 2); got f32 "
        "(2, 3, 3)");
  arrays = numbered(4);
  arrays.labels = Tensor::zeros({4});
  CHECK(error(arrays) == "idx: expected labels that are whole numbers; got f32");
  arrays.labels = Tensor::full({4}, -1, DType::i32);
  CHECK(error(arrays) == "idx: expected labels from 0; got -1");
  arrays = numbered(4);
  arrays.inputs = Tensor::zeros({0, 1, 2});
  CHECK(error(arrays) == "idx: the train inputs are empty: shape (0, 1, 2)");
  ArrayOptions options;
  CHECK(error(numbered(1), options) ==
        "idx: 1 samples leave none to train on beside the validation part of 1");
}

TEST_CASE("fashion_mnist: the Debian package's files, and folders without them") {
  FashionMnistConfig config;
  config.path = "/nowhere";
  CHECK(
      error_of([&] { (void)config.make({.seed = 0}); }) ==
      "fashion_mnist: expected train-images-idx3-ubyte or train-images-idx3-ubyte.gz in /nowhere; "
      "neither is there; install the package dataset-fashion-mnist, or give the folder as "
      "data.path");
  const auto data = make_data_set(FashionMnistConfig{}, {.seed = 3});
  CHECK(data->size(Part::train) == 60000);
  CHECK(data->size(Part::validation) == 0);  // it has a test part of its own
  CHECK(data->size(Part::test) == 10000);
  CHECK(data->spec().input == Shape{1, 28, 28});
  CHECK(data->spec().classes == 10);
  // Over the whole training part the mean is 0 and the deviation 1.
  double sum = 0, squares = 0, count = 0;
  for (std::int64_t i = 0; i < 10; ++i) {
    const Batch batch = data->batch(Part::train, i, 6000);
    const float* x = batch.inputs.data<float>();
    for (std::int64_t k = 0; k < batch.inputs.numel(); ++k) {
      sum += x[k];
      squares += static_cast<double>(x[k]) * x[k];
    }
    count += static_cast<double>(batch.inputs.numel());
  }
  CHECK(std::abs(sum / count) < 1e-5);
  CHECK(std::abs(squares / count - 1) < 1e-5);
  // The first test labels, as the package's files have them.
  const auto labels = data->batch(Part::test, 0, 8).targets.to_ids();
  CHECK(labels == std::vector<std::int64_t>{9, 2, 1, 1, 6, 1, 4, 6});
}

TEST_CASE("idx: from files, and its configuration") {
  const TemporaryFolder folder;
  write_file(folder / "x", std::string("\0\0\x08\x03\0\0\0\2\0\0\0\1\0\0\0\2\1\2\3\4", 20));
  write_file(folder / "y", std::string("\0\0\x08\x01\0\0\0\2\0\1", 10));
  const auto parse = [&](const std::string& text) {
    return config::parse<DataConfig>(config::parse_json(text), "data");
  };
  const DataConfig good = parse(
      fmt::format(R"({{"type": "idx", "images": "{0}/x", "labels": "{0}/y", "validation": 0}})",
                  folder.path()));
  const auto data = make_data_set(good, {});
  CHECK(data->size(Part::train) == 2);
  CHECK(data->size(Part::test) == 0);
  CHECK(data->size(Part::validation) == 0);
  const auto error = [&](const std::string& text) { return error_of([&] { (void)parse(text); }); };
  CHECK(
      test::contains(error(R"({"type": "idx", "images": "a", "labels": "b", "test_images": "c"})"),
                     "data.test_labels: is needed with test_images"));
  CHECK(test::contains(error(R"({"type": "idx", "images": "a"})"), "data.labels"));
  CHECK(test::contains(error(R"({"type": "idx", "images": "a", "labels": "b", "validation": 1})"),
                       "data.validation"));
}

}  // namespace
}  // namespace norma
