#include "apps/data/sequence_task.h"

#include "core/config/sizes.h"

#include <algorithm>

namespace norma {

config::Fields SequenceOptions::sequence_fields() {
  using namespace config;
  return Fields{field("vocab", &SequenceOptions::vocab, "Ids are 0 to vocab - 1.", a_size()),
                field("length", &SequenceOptions::length, "Ids of a sample.", a_size())} +
         sample_fields();
}

SequenceTask::Layout SequenceTask::layout_of(const Sizes& sizes, SequenceForm form) {
  switch (form) {
    case SequenceForm::decoder:
      return sizes.in_place ? Layout::in_place : Layout::decoder;
    case SequenceForm::encoder_decoder:
      return Layout::encoder_decoder;
    default:
      return sizes.answer == sizes.source ? Layout::in_place : Layout::blanks;
  }
}

DataSpec SequenceTask::spec_of(const Sizes& sizes, SequenceForm form) {
  const Layout layout = layout_of(sizes, form);
  DataSpec spec;
  spec.classes = sizes.vocab;
  spec.vocab = layout == Layout::in_place ? sizes.vocab : sizes.vocab + 1;
  spec.answers = !sizes.in_place;
  if (layout == Layout::decoder || layout == Layout::encoder_decoder) spec.edge = sizes.vocab;
  if (layout == Layout::in_place) {
    spec.input = Shape{sizes.source};
  } else if (layout == Layout::encoder_decoder) {
    spec.input = Shape{sizes.answer};
    spec.source = Shape{sizes.source};
  } else {
    spec.input = Shape{sizes.source + sizes.answer};
  }
  spec.target = spec.input;
  return spec;
}

SequenceTask::SequenceTask(std::string_view name, const TaskOptions& options, const Sizes& sizes,
                           const DataContext& context)
    : DataSet(name, spec_of(sizes, context.form), options, context.seed,
              !options.limit.has_value()),
      name_(name),
      sizes_(sizes),
      layout_(layout_of(sizes, context.form)),
      seed_(context.seed),
      train_samples_(options.limit.value_or(kEndless)),
      validation_share_(options.validation_share(false)),
      validation_key_(random_key(0, fmt::format("data/{}/set aside", name))) {}

std::int64_t SequenceTask::size(Part part) const {
  switch (part) {
    case Part::train:
      return train_samples_;
    case Part::validation:
      return validation_share_ > 0 ? sizes_.validation_samples : 0;
    default:
      return 0;
  }
}

bool SequenceTask::set_aside(std::int64_t question) const {
  const auto bits = random_block(validation_key_, static_cast<std::uint64_t>(question));
  return uniform_f64(bits[0], bits[1]) < validation_share_;
}

std::int64_t SequenceTask::draw_question(Part part, RandomStream& stream, std::int64_t n) const {
  while (true) {
    const std::int64_t question = stream.below(n);
    if (set_aside(question) == (part == Part::validation)) return question;
  }
}

void SequenceTask::check_questions(std::int64_t n) const {
  constexpr std::int64_t kLooked = 10'000;
  if (validation_share_ == 0) return;
  std::int64_t aside = 0;
  const std::int64_t looked = std::min(n, kLooked);
  for (std::int64_t question = 0; question < looked; ++question) aside += set_aside(question);
  require(aside > 0 && aside < looked,
          "{}: of {} questions, a validation share of {} sets {} aside, which leaves one part "
          "without any; use another share (0 for none), or a larger task",
          name_, n, validation_share_, aside);
}

Batch SequenceTask::gather(Part part, std::span<const std::int64_t> samples, std::int64_t) const {
  const auto n = static_cast<std::int64_t>(samples.size());
  const std::int64_t length = spec().input[0];
  const std::int64_t filler = sizes_.vocab;
  const bool apart = layout_ == Layout::encoder_decoder;
  Batch batch{Tensor::empty({n, length}, DType::i64), Tensor::empty({n, length}, DType::i64)};
  if (apart) batch.source = Tensor::empty({n, sizes_.source}, DType::i64);
  Tensor& varying = apart ? batch.source_mask : batch.mask;
  if (sizes_.varies) varying = Tensor::empty({n, apart ? sizes_.source : length}, DType::u8);

  std::vector<std::int64_t> source, answer(static_cast<std::size_t>(sizes_.answer));
  for (std::int64_t s = 0; s < n; ++s) {
    RandomStream stream(random_key(
        part == Part::train ? seed_ : 0,
        fmt::format("data/{}/{} {}", name_, name_of(part), samples[static_cast<std::size_t>(s)])));
    source.resize(static_cast<std::size_t>(sizes_.source));
    make_sample(part, stream, source, answer);

    std::int64_t* inputs = batch.inputs.mutable_data<std::int64_t>() + s * length;
    std::int64_t* targets = batch.targets.mutable_data<std::int64_t>() + s * length;
    std::fill_n(inputs, length, filler);
    std::fill_n(targets, length, kIgnored);
    std::int64_t* sources =
        apart ? batch.source.mutable_data<std::int64_t>() + s * sizes_.source : inputs;
    if (apart) std::fill_n(sources, sizes_.source, filler);
    std::copy(source.begin(), source.end(), sources);
    // Where the answer begins among the targets; a decoder reads it one place later.
    const auto used = static_cast<std::int64_t>(source.size());
    const bool behind = layout_ == Layout::decoder || layout_ == Layout::blanks;
    const std::int64_t start = behind ? used : 0;
    std::copy(answer.begin(), answer.end(), targets + start);
    if (layout_ == Layout::decoder || apart) {
      std::copy(answer.begin(), answer.end() - 1, inputs + start + 1);
    }
    if (sizes_.varies) {
      std::uint8_t* mask = varying.mutable_data<std::uint8_t>() + s * varying.size(1);
      const std::int64_t counted = behind ? used + sizes_.answer : used;
      std::fill_n(mask, varying.size(1), std::uint8_t{0});
      std::fill_n(mask, counted, std::uint8_t{1});
    }
  }
  return batch;
}

}  // namespace norma
