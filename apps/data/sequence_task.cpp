#include "apps/data/sequence_task.h"

namespace norma {
namespace {

constexpr std::int64_t kValidationSamples = 128;

}  // namespace

config::Fields SequenceOptions::sequence_fields() {
  using namespace config;
  return Fields{field("vocab", &SequenceOptions::vocab, "Ids are 0 to vocab - 1.", at_least(1)),
                field("length", &SequenceOptions::length, "Ids of a sample.", at_least(1))} +
         sample_fields();
}

SequenceTask::SequenceTask(std::string_view name, const SequenceOptions& options,
                           std::uint64_t seed)
    : DataSet(name, {{options.length}, {options.length}, options.vocab, options.vocab}, options,
              seed, !options.limit.has_value()),
      name_(name),
      seed_(seed),
      train_samples_(options.limit.value_or(kEndless)),
      validation_samples_(options.validation_share(false) > 0 ? kValidationSamples : 0) {}

std::int64_t SequenceTask::size(Part part) const {
  switch (part) {
    case Part::train:
      return train_samples_;
    case Part::validation:
      return validation_samples_;
    default:
      return 0;
  }
}

Batch SequenceTask::gather(Part part, std::span<const std::int64_t> samples) const {
  const auto n = static_cast<std::int64_t>(samples.size());
  const std::int64_t length = spec().input[0];
  Batch batch{Tensor::empty({n, length}, DType::i64), Tensor::empty({n, length}, DType::i64),
              Tensor()};
  std::int64_t* inputs = batch.inputs.mutable_data<std::int64_t>();
  std::int64_t* targets = batch.targets.mutable_data<std::int64_t>();
  const auto row = static_cast<std::size_t>(length);
  for (std::int64_t s = 0; s < n; ++s) {
    RandomStream stream(random_key(
        part == Part::train ? seed_ : 0,
        fmt::format("data/{}/{} {}", name_, name_of(part), samples[static_cast<std::size_t>(s)])));
    make_sample(stream, {inputs + s * length, row}, {targets + s * length, row});
  }
  return batch;
}

}  // namespace norma
