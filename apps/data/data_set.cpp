#include "apps/data/data_set.h"

#include <algorithm>
#include <numeric>

#include "core/config/sizes.h"
#include "core/random.h"

namespace norma {

std::string_view name_of(Part part) {
  switch (part) {
    case Part::train:
      return "train";
    case Part::validation:
      return "validation";
    default:
      return "test";
  }
}

config::Fields SampleOptions::sample_fields() {
  using namespace config;
  return {
      field("shuffle", &SampleOptions::shuffle,
            "A new random order each epoch; of a text, windows at random places."),
      field("drop_last", &SampleOptions::drop_last,
            "Leave out the last batch of an epoch where it is smaller."),
      field("limit", &SampleOptions::limit,
            "Take the first samples of the training file alone (windows, of a text).", a_size()),
      field("validation", &SampleOptions::validation,
            "Share of the training samples that is set aside; of a text, its end. null: 0.1, or 0 "
            "where the source has a test part of its own.",
            at_least(0), below(1))};
}

DataSet::DataSet(std::string_view name, DataSpec spec, const SampleOptions& options,
                 std::uint64_t seed, bool drawn)
    : name_(name),
      spec_(spec),
      shuffle_(options.shuffle),
      drop_last_(options.drop_last),
      drawn_(drawn),
      seed_(seed) {
  record_.type = name;
  record_.input.assign(spec_.input.begin(), spec_.input.end());
  record_.target.assign(spec_.target.begin(), spec_.target.end());
  record_.source.assign(spec_.source.begin(), spec_.source.end());
  record_.vocab = spec_.vocab;
  record_.classes = spec_.classes;
  record_.edge = spec_.edge;
  record_.answers = spec_.answers;
}

DataSpec spec_of(const DataRecord& record) {
  return {.input = Shape(std::span(record.input)),
          .target = Shape(std::span(record.target)),
          .vocab = record.vocab,
          .classes = record.classes,
          .edge = record.edge,
          .answers = record.answers,
          .source = Shape(std::span(record.source))};
}

Split split_samples(std::string_view name, std::int64_t n, double share) {
  auto aside = static_cast<std::int64_t>(static_cast<double>(n) * share);
  if (share > 0) aside = std::max<std::int64_t>(aside, 1);
  require(aside < n, "{}: {} samples leave none to train on beside the validation part of {}", name,
          n, aside);
  Split split;
  // At random, since files are often sorted by class.
  split.train = random_permutation(n, random_key(0, "data/validation"));
  split.validation.assign(split.train.end() - aside, split.train.end());
  split.train.resize(static_cast<std::size_t>(n - aside));
  std::sort(split.train.begin(), split.train.end());
  std::sort(split.validation.begin(), split.validation.end());
  return split;
}

std::int64_t DataSet::num_batches(Part part, std::int64_t batch_size) const {
  require(batch_size >= 1, "{}: expected a batch of at least 1 sample; got {}", name_, batch_size);
  const std::int64_t samples = size(part);
  if (samples == kEndless) return kEndless;
  require(samples > 0, "{}: the {} part has no samples", name_, name_of(part));
  if (part != Part::train || !drop_last_) return (samples - 1) / batch_size + 1;
  require(samples >= batch_size,
          "{}: with drop_last, expected at least one batch of {} samples; the train part has {}; "
          "use a smaller batch, or drop_last false",
          name_, batch_size, samples);
  return samples / batch_size;
}

Batch DataSet::train_batch(std::int64_t index, std::int64_t batch_size) const {
  const std::int64_t batches = num_batches(Part::train, batch_size);
  require(index >= 0, "{}: expected a batch index from 0; got {}", name_, index);
  if (drawn_) {
    std::vector<std::int64_t> samples(static_cast<std::size_t>(batch_size));
    std::iota(samples.begin(), samples.end(), index * batch_size);
    return gather(Part::train, samples, 0);
  }
  const std::int64_t begin = index % batches * batch_size;
  const std::int64_t end = std::min(size(Part::train), begin + batch_size);
  const std::int64_t epoch = index / batches;
  const auto order = epoch_order(epoch);
  return gather(Part::train,
                std::span(*order).subspan(static_cast<std::size_t>(begin),
                                          static_cast<std::size_t>(end - begin)),
                epoch);
}

Batch DataSet::batch(Part part, std::int64_t index, std::int64_t batch_size) const {
  const std::int64_t batches = num_batches(part, batch_size);
  require(index >= 0 && index < batches, "{}: expected a batch index in 0..{}; got {}", name_,
          batches - 1, index);
  const std::int64_t begin = index * batch_size;
  const std::int64_t end = std::min(size(part), begin + batch_size);
  std::vector<std::int64_t> samples(static_cast<std::size_t>(end - begin));
  std::iota(samples.begin(), samples.end(), begin);
  return gather(part, samples, 0);
}

std::shared_ptr<const std::vector<std::int64_t>> DataSet::epoch_order(std::int64_t epoch) const {
  const std::lock_guard lock(order_mutex_);
  if (order_ == nullptr || (shuffle_ && order_epoch_ != epoch)) {
    const std::int64_t n = size(Part::train);
    std::vector<std::int64_t> order;
    if (shuffle_) {
      order = random_permutation(n, random_key(seed_, fmt::format("data/epoch {}", epoch)));
    } else {
      order.resize(static_cast<std::size_t>(n));
      std::iota(order.begin(), order.end(), 0);
    }
    order_ = std::make_shared<const std::vector<std::int64_t>>(std::move(order));
    order_epoch_ = epoch;
  }
  return order_;
}

}  // namespace norma
