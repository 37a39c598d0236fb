// The shift task: T1 of the studies.
#include "apps/data/shift.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/data/data_sets.h"
#include "tests/support/catch.h"

namespace norma {
namespace {

using Ids = std::vector<std::int64_t>;

TEST_CASE("shift: the target is the row rotated right by one") {
  ShiftConfig config;
  config.vocab = 7;
  config.length = 5;
  const auto data = config.make({.seed = 3});
  CHECK(data->spec().vocab == 7);
  CHECK(data->spec().classes == 7);
  CHECK(data->spec().input == Shape{5});
  std::vector<int> counts(7);
  for (std::int64_t i = 0; i < 100; ++i) {
    const Batch batch = data->train_batch(i, 4);
    const Ids x = batch.inputs.to_ids(), y = batch.targets.to_ids();
    REQUIRE(x.size() == 20);
    for (std::size_t row = 0; row < 20; row += 5) {
      REQUIRE(y[row] == x[row + 4]);
      for (std::size_t k = 1; k < 5; ++k) REQUIRE(y[row + k] == x[row + k - 1]);
    }
    for (const std::int64_t id : x) ++counts.at(static_cast<std::size_t>(id));
  }
  // Uniform: 2000 ids, each within 5 deviations of its share.
  for (const int count : counts) CHECK(std::abs(count - 2000.0 / 7) < 5 * std::sqrt(2000.0 / 7));
}

TEST_CASE("shift: endless, a function of seed and index, one validation part for all") {
  const ShiftConfig config;
  const auto a = config.make({}), b = config.make({}), other = config.make({.seed = 1});
  CHECK(a->size(Part::train) == DataSet::kEndless);
  CHECK(a->num_batches(Part::train, 8) == DataSet::kEndless);
  CHECK(a->train_batch(149, 8).inputs.to_ids() == b->train_batch(149, 8).inputs.to_ids());
  CHECK(a->train_batch(149, 8).inputs.to_ids() != a->train_batch(148, 8).inputs.to_ids());
  CHECK(a->train_batch(149, 8).inputs.to_ids() != other->train_batch(149, 8).inputs.to_ids());
  CHECK(a->size(Part::validation) == 128);
  CHECK(a->batch(Part::validation, 0, 128).inputs.to_ids() ==
        other->batch(Part::validation, 0, 128).inputs.to_ids());
  CHECK(a->batch(Part::validation, 0, 8).inputs.to_ids() != a->train_batch(0, 8).inputs.to_ids());
}

TEST_CASE("shift: limited, the samples come again each epoch; the edges of its sizes") {
  ShiftConfig config;
  config.limit = 3;
  config.shuffle = false;
  const auto data = config.make({.seed = 0});
  CHECK(data->num_batches(Part::train, 2) == 2);
  CHECK(data->train_batch(0, 2).inputs.to_ids() == data->train_batch(2, 2).inputs.to_ids());
  CHECK(data->train_batch(1, 2).samples() == 1);
  config.length = 1;
  config.vocab = 1;
  CHECK(config.make({.seed = 0})->train_batch(0, 2).targets.to_ids() == Ids{0, 0});
  NORMA_CHECK_ERROR(
      config::parse<DataConfig>(config::parse_json(R"({"type": "shift", "vocab": 0})"), "data"),
      "data.vocab");
}

}  // namespace
}  // namespace norma
